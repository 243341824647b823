import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { killAll, uniqueSleep } from "../process/leftovers.ts";
import { type Ended, Place, type Running } from "./flow.ts";

const mib = 1024 * 1024;
const torture = process.env["FLOW_TORTURE"] !== undefined;
/** The size that is promised, and a tenth of it in the normal suite. */
const bytes = (promised: number): number => (torture ? promised : Math.round(promised / 10));

function placeOf(files: Readonly<Record<string, string>>): Place {
  const place = new Place(files);
  onTestFinished(() => place.remove());
  return place;
}

/** How a run ended, and the most memory it had, in bytes. */
async function withPeak(run: Running): Promise<Ended & { readonly peak: number }> {
  let peak = 0;
  let over = false;
  const ended = run.ended.finally(() => (over = true));
  while (!over) {
    peak = Math.max(peak, highWater(run.pid));
    await delay(20);
  }
  return { ...(await ended), peak };
}

/** 0 when the process is gone. */
function highWater(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

describe.skipIf(process.platform !== "linux")("memory", () => {
  const quiet = "echo a; sleep 0.3";
  const half = bytes(1024 * mib);
  const floods = [
    ["2 GiB of text", `yes 'a line of text that is not very short' | head -c ${bytes(2048 * mib)} || true`],
    ["300 MB of NUL", `head -c ${bytes(300_000_000)} /dev/zero`],
    ["one line of 200 MB", `head -c ${bytes(200_000_000)} /dev/zero | tr '\\0' x`],
    [
      "300 MB of NUL on both streams together",
      `head -c ${bytes(300_000_000)} /dev/zero & head -c ${bytes(300_000_000)} /dev/zero >&2; wait`,
    ],
    ["both streams together", `(yes | head -c ${half} || true) & (yes error | head -c ${half} >&2 || true); wait`],
    // It cleared its environment and left its group, so nothing ends it but that nobody reads any more.
    ["a pipe that a daemon fills for ever", "( env -i setsid yes & ); sleep 0.5"],
  ] as const;

  it.each(floods)("stays flat through %s, and the step ends", { timeout: 300_000 }, async (_, script) => {
    const place = placeOf({ "flood.sh": script, "quiet.sh": quiet });
    const of = (file: string): string => `steps: { a: { run: . ./${file} } }\n`;
    place.write("flood.yaml", of("flood.sh"));
    place.write("quiet.yaml", of("quiet.sh"));
    const calm = await withPeak(place.start(["run", "quiet.yaml", "-q"]));
    const flood = await withPeak(place.start(["run", "flood.yaml", "-q"], { patience: 280_000 }));
    expect([calm.code, flood.code, flood.stderr]).toEqual([0, 0, ""]);
    expect(flood.peak - calm.peak).toBeLessThan(64 * mib);
  });

  it(
    "and time bound a thousand steps at once, `set` and `run`, by the usual limit on open files",
    {
      timeout: 200_000,
    },
    async () => {
      const place = placeOf({
        "many.yaml": `limits: { parallel: 1000 }
inputs: { list: { type: array } }
steps:
  set: { foreach: "\${{ inputs.list }}", set: { v: "\${{ item }}" } }
  run: { foreach: "\${{ inputs.list }}", parallel: 1000, run: 'echo "$ITEM"; sleep 0.2', env: { ITEM: "\${{ item }}" } }
outputs: { set: "\${{ length(steps.set.outputs.items) }}", run: "\${{ steps.run.outputs.items[999].stdout }}" }
`,
        "inputs.json": JSON.stringify({ list: Array.from({ length: 1000 }, (_, index) => index) }),
      });
      const command = 'ulimit -n 1024; exec "$NODE" "$FLOW" run many.yaml --inputs inputs.json -q';
      const { code, stdout, stderr } = await place.shell(
        `${command} & pid=$!; peak=0
       while kill -0 $pid 2>/dev/null; do
         now=$(sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$pid/status 2>/dev/null); [ -n "$now" ] && peak=$now; sleep 0.1
       done; wait $pid; code=$?; echo "peak: $peak"; exit $code`,
        { patience: 190_000 },
      );
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("run: 999");
      expect(stdout).toContain("set: 1000");
      expect(Number(/peak: (\d+)/.exec(stdout)?.[1]) * 1024).toBeLessThan(512 * mib);
    },
  );
});

describe.skipIf(process.platform !== "linux")("a thousand agents at once", () => {
  it("all answer, in less than 512 MB", { timeout: 120_000 }, async () => {
    const place = placeOf({
      "many.yaml": `limits: { parallel: 1000 }
inputs: { list: { type: array } }
model: scripted/replies.yaml
steps:
  ask: { foreach: "\${{ inputs.list }}", parallel: 1000, agent: { instructions: Answer. }, prompt: "\${{ item }}" }
outputs: { answers: "\${{ length(steps.ask.outputs.items) }}" }
`,
      "replies.yaml": "steps: { ask: [{ text: Yes., delay: 500ms }] }\n",
      "inputs.json": JSON.stringify({ list: Array.from({ length: 1000 }, (_, index) => `question ${index}`) }),
    });
    const args = ["run", "many.yaml", "--inputs", "inputs.json", "-q"];
    const { code, stdout, stderr, peak } = await withPeak(place.start(args, { patience: 100_000 }));
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("answers: 1000");
    expect(peak).toBeLessThan(512 * mib);
  });
});

describe("a timeout ends, within its grace time and a second, a command that", () => {
  const grace = 5000;
  const commands = [
    ["hears no SIGTERM", "trap '' TERM; while :; do sleep 0.1; done"],
    ["is stopped", "kill -STOP $$; sleep HOURS"],
    ["is silent", "exec sleep HOURS"],
    ["drips", "while :; do echo drop; sleep 0.2; done"],
    ["closed its streams", "exec >&- 2>&-; sleep HOURS"],
  ] as const;

  it.concurrent.each(commands)("%s", async (_, script) => {
    const hours = uniqueSleep();
    const files = {
      "slow.sh": script.replace("HOURS", hours),
      "slow.yaml": "steps: { a: { run: . ./slow.sh, timeout: 1s } }\n",
    };
    const place = new Place(files);
    try {
      const { code, stderr } = await place.flow(["run", "slow.yaml"]);
      expect(stderr).toContain("timeout: it did not end within its timeout of 1 s");
      expect(code).toBe(1);
      const end = place.events().find((event) => event.type === "step.finished");
      expect(end).toMatchObject({ outcome: "failure", error: { kind: "timeout" } });
      if (end?.type === "step.finished") expect(end.duration).toBeLessThan(1000 + grace + 1000);
    } finally {
      place.remove();
      killAll(hours);
    }
  });

  it.concurrent.each([1, -1])("sleeps while the clock on the wall jumps by %s day", async (days) => {
    const hours = uniqueSleep();
    const place = new Place({
      "jump.mjs": `import { existsSync } from "node:fs";
const real = Date.now;
Date.now = () => real() + (existsSync("running") ? ${days * 86_400_000} : 0);`,
      "slow.yaml": `steps: { a: { run: 'echo > running; exec sleep ${hours}', timeout: 2s } }\n`,
    });
    try {
      const { code } = await place.flow(["run", "slow.yaml"], { node: ["--import", join(place.folder, "jump.mjs")] });
      expect(code).toBe(1);
      const events = place.events();
      const jump = Date.parse(events.at(-1)?.time ?? "") - Date.parse(events[0]?.time ?? "");
      expect(Math.abs(jump)).toBeGreaterThan(86_000_000);
      for (const event of events) if ("duration" in event) expect(event.duration).toBeGreaterThanOrEqual(0);
      const end = events.find((event) => event.type === "step.finished");
      if (end?.type === "step.finished") expect(end.duration).toBeLessThan(2000 + 1000);
      expect(end).toMatchObject({ error: { kind: "timeout" } });
    } finally {
      place.remove();
    }
  });
});

describe.skipIf(process.platform !== "linux")("want of", () => {
  const list = JSON.stringify({ list: Array.from({ length: 40 }, (_, index) => index) });
  const each = `inputs: { list: { type: array } }
steps:
  each: { foreach: "\${{ inputs.list }}", parallel: 40, run: 'echo "$ITEM"', env: { ITEM: "\${{ item }}" } }
  last: { needs: [each], run: 'echo > ran' }
`;

  it("descriptors slows a run down before it fails it", async () => {
    const place = placeOf({ "each.yaml": each, "list.json": list });
    const { code, stderr } = await place.shell("ulimit -n 64; flow run each.yaml --inputs list.json -q");
    expect([code, stderr]).toEqual([0, ""]);
    expect(place.events().filter((event) => event.type === "step.attempt.finished")).toHaveLength(41);
  });

  it("descriptors is said, never a bug, and leaves a log that can be read", { timeout: 120_000 }, async () => {
    const place = placeOf({ "each.yaml": each, "list.json": list });
    const codes = new Set<number | null>();
    // From where the command itself can just be loaded to where a step finds room.
    for (let limit = 22; limit <= 32; limit++) {
      const { code, stderr } = await place.shell(`ulimit -n ${limit}; flow run each.yaml --inputs list.json -q`);
      codes.add(code);
      if (code === 0) break;
      expect(stderr, `ulimit -n ${limit}`).toMatch(/EMFILE|too many files/i);
      if (code === 3) expect(stderr).toMatch(/^flow: /m);
      expect(code, stderr).not.toBe(70);
      expect(existsSync(join(place.folder, "ran"))).toBe(false);
    }
    expect([...codes]).toContain(3);
    const { code, stdout, stderr } = await place.flow(["runs", "--json"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).not.toContain("damaged");
    place.events();
  });

  it.each([
    ["deleted", "rm -rf .flow"],
    ["replaced by a file", "rm -rf .flow/runs && echo > .flow/runs"],
  ])("a log, that a step has %s, stops the run before the next step does anything", async (_, harm) => {
    const place = placeOf({
      "flow.yaml": `steps:\n  harm: { run: '${harm}' }\n  next: { needs: [harm], run: 'echo > ran' }\n`,
    });
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(stderr).toMatch(/log: cannot write .*log\.jsonl: somebody deleted it/);
    expect(code).toBe(3);
    expect(existsSync(join(place.folder, "ran"))).toBe(false);
  });

  it("room on a disk, in the middle of a run, stops it, and the log stays whole", async ({ skip }) => {
    const place = placeOf({
      "long.yaml": `steps:
  a: { run: "head -c 30000 /dev/zero | tr '\\\\0' x" }
  b: { needs: [a], foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9], run: "head -c 30000 /dev/zero | tr '\\\\0' y", parallel: 1 }
  c: { needs: [b], run: "echo > ran" }
`,
    });
    const disk = join(place.folder, "disk");
    mkdirSync(disk);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], { stdio: "ignore" });
    } catch {
      return skip("a small disk can be made only by root");
    }
    try {
      const { code, stderr } = await place.flow(["run", "long.yaml", "--runs-dir", "disk/runs"]);
      expect(stderr).toMatch(/log: cannot write .*ENOSPC/);
      expect(code).toBe(3);
      expect(existsSync(join(place.folder, "ran"))).toBe(false);
      const text = place.log("disk/runs");
      expect(text.endsWith("}\n")).toBe(true);
      expect(place.events("disk/runs").map(({ type }) => type)).not.toContain("run.finished");
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });

  it("the right to write is said before anything runs", async ({ skip }) => {
    const place = placeOf({ "flow.yaml": "steps: { a: { run: 'echo > ran' } }\n" });
    const disk = join(place.folder, "disk");
    mkdirSync(disk);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "ro", "tmpfs", disk], { stdio: "ignore" });
    } catch {
      return skip("a disk that is read-only for root too can be made only by root");
    }
    try {
      const { code, stderr } = await place.flow(["run", "flow.yaml", "--runs-dir", "disk/runs"]);
      expect(stderr).toMatch(/^flow: .*EROFS/m);
      expect(code).toBe(3);
      expect(existsSync(join(place.folder, "ran"))).toBe(false);
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });
});
