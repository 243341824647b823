import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Marks } from "../../src/process/marks.ts";
import { namespaceLaunch } from "../../src/process/namespace.ts";
import { Pipes } from "../../src/process/pipes.ts";
import { type ProcessOptions, type ProcessResult, runProcess } from "../../src/process/run.ts";
import { hasNamespaces, killAll, leftAfter, stubborn, uniqueSleep, untilRunning } from "./leftovers.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "flow-namespace-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = process.env["PATH"] ?? "";

function run(argv: readonly string[], more: Partial<ProcessOptions> = {}): Promise<ProcessResult> {
  const launch = namespaceLaunch(path);
  const marks = new Marks("namespace-test", launch && { launch });
  return runProcess({ argv, cwd: folder, env: { PATH: path }, marks, grace: 300, ...more });
}

describe.skipIf(!hasNamespaces)("a command in a pid namespace", () => {
  it("has the user, the folder, the files and the network it would have", async () => {
    writeFileSync(join(folder, "mine"), "");
    const script = "id -u; pwd; echo here > made; ls; readlink /proc/self/ns/net; cat /proc/self/stat | cut -d' ' -f7";
    const [inside, outside] = [
      await run(["bash", "-c", script]),
      await run(["bash", "-c", script], { launch: noLaunch }),
    ];
    if (inside.kind !== "exited" || outside.kind !== "exited") throw new Error(JSON.stringify([inside, outside]));
    expect(inside.stdout.text).toBe(outside.stdout.text);
    // Without a terminal to take words from.
    expect(inside.stdout.text.split("\n").at(-2)).toBe("0");
    expect(readFileSync(join(folder, "made"), "utf8")).toBe("here\n");
  });

  it("has exactly the environment it is given, and so has what keeps it", async () => {
    const script = "cat /proc/self/environ; echo; cat /proc/1/environ";
    const result = await run(["bash", "-c", script], { env: { PATH: path, ONLY: "this" } });
    if (result.kind !== "exited") throw new Error(JSON.stringify(result));
    const names = new Set(result.stdout.text.split(/[\0\n]/).map((pair) => pair.split("=")[0]?.replace(/_test$/, "")));
    expect(names).toEqual(new Set(["", "FLOW_MARK_namespace", "ONLY", "PATH", ...bashAdds]));
  });

  it.each([0, 1, 44, 255])("keeps its exit code %i", async (code) => {
    expect(await run(["bash", "-c", `exit ${code}`])).toMatchObject({ kind: "exited", code });
  });

  it("exits with 128 and the signal's number when one ends it", async () => {
    expect(await run(["bash", "-c", "kill -TERM $$"])).toMatchObject({ kind: "exited", code: 143 });
  });

  it("reads its stdin and writes both streams, on real pipes too", async () => {
    for (const more of [{}, { pipes: new Pipes(folder) }])
      expect(await run(["sh", "-c", "cat; echo no >&2"], { stdin: "text", ...more })).toMatchObject({
        stdout: { text: "text" },
        stderr: { text: "no\n" },
      });
  });

  it("that is cancelled before it has begun is given no time to tidy up, for nobody hears that it should", async () => {
    const sleep = uniqueSleep();
    for (let wait = 0; wait < 24; wait++) {
      const start = performance.now();
      const signal = AbortSignal.timeout(wait);
      await run(["sleep", sleep], { signal, grace: 5_000 });
      expect(performance.now() - start, `cancelled after ${wait} ms`).toBeLessThan(2_500);
    }
    expect(await leftAfter(sleep, 2_000)).toBe(0);
  });

  it("that cannot start says why in the same words as without", async () => {
    const plain = join(folder, "plain");
    writeFileSync(plain, "echo");
    chmodSync(plain, 0o644);
    for (const [argv, cwd] of [
      [["no-such-program-x"], folder],
      [[plain], folder],
      [["true"], "/no/such"],
    ] as const) {
      const outside = await run(argv, { cwd, launch: noLaunch });
      expect(outside.kind).toBe("spawn_failed");
      expect(await run(argv, { cwd })).toEqual(outside);
    }
  });

  it("takes its whole tree with it, a daemon that cleared its environment too, and nothing of another", async () => {
    const [time, other] = [uniqueSleep(), uniqueSleep()];
    const [abort, end] = [new AbortController(), new AbortController()];
    try {
      const daemon = `( env -i setsid sleep ${time} >/dev/null 2>&1 & )`;
      const running = run(["bash", "-c", `${stubborn(time)}\n${daemon}\ntrap '' TERM; wait; sleep 600`], {
        signal: abort.signal,
      });
      const neighbour = run(["bash", "-c", `sleep ${other}; true`], { signal: end.signal });
      await untilRunning(`sleep\0${time}`, 6);
      await untilRunning(`sleep\0${other}`, 1);
      abort.abort();
      expect((await running).kind).toBe("aborted");
      expect(await leftAfter(time, 0)).toBe(0);
      expect(await leftAfter(`sleep\0${other}`, 0, 1)).toBe(1);
      end.abort();
      await neighbour;
    } finally {
      [time, other].forEach(killAll);
    }
  });

  it("hears SIGTERM and may tidy up, as without", async () => {
    const time = uniqueSleep();
    const abort = new AbortController();
    const script = `trap 'echo tidy; exit 0' TERM; sleep ${time} & wait`;
    const running = run(["bash", "-c", script], { signal: abort.signal, grace: 20_000 });
    await untilRunning(`sleep\0${time}`, 1);
    abort.abort();
    const result = await running;
    expect(result).toMatchObject({ kind: "aborted", stdout: { text: "tidy\n" } });
    if (result.kind === "aborted") expect(result.duration).toBeLessThan(5000);
  });

  it.skipIf(process.getuid?.() !== 0)("can be made by a plain user as well", () => {
    const source = `
      import { namespaceLaunch } from ${JSON.stringify(new URL("../../src/process/namespace.ts", import.meta.url).href)};
      console.log(process.getuid(), namespaceLaunch(process.env.PATH) !== undefined);`;
    const args = ["--input-type=module-typescript", "-e", source];
    const { stdout } = spawnSync(process.execPath, args, { uid: 65534, gid: 65534, encoding: "utf8", cwd: "/" });
    expect(stdout).toBe("65534 true\n");
  });
});

it("no namespace is promised where bubblewrap is not, or is no bubblewrap", () => {
  expect(namespaceLaunch("/nowhere:")).toBeUndefined();
  const fake = mkdtempSync(join(folder, "fake-"));
  writeFileSync(join(fake, "bwrap"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  expect(namespaceLaunch(fake)).toBeUndefined();
});

/** As if the marks had none. */
const noLaunch = { prefix: [] };
/** What bash sets by itself. */
const bashAdds = ["PWD", "SHLVL", "_"];
