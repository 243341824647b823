import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { during } from "./flow.ts";
import { Repository, untouched } from "./repository.ts";

const within = <T>(files: Readonly<Record<string, string>>, work: (place: Repository) => Promise<T>): Promise<T> =>
  during(new Repository(files), work);

/** Adds a line: whoever does it twice is found out. Outside of the repository it counts how often it ran. */
const adds = {
  ".gitignore": "count\n",
  "a.txt": "start\n",
  "w.yaml": `
steps:
  add: { isolation: worktree, run: 'echo line >> a.txt; echo x >> "$C/count"; echo done', env: { C: "\${{ inputs.top }}" } }
  after: { needs: [add], run: 'echo "$O" "$F"', env: { O: "\${{ steps.add.outputs.stdout }}", F: "\${{ steps.add.outputs.files }}" } }
inputs: { top: { type: string } }
`,
};

/** What a kill leaves: the log ends behind the first line of that type. */
function cutBehind(place: Repository, type: LogLine["type"]): void {
  const file = join(place.folder, ".flow/runs", place.runs()[0] ?? "", "log.jsonl");
  const lines = readFileSync(file, "utf8").split("\n");
  const at = lines.findIndex((line) => line.includes(`"type":"${type}"`));
  writeFileSync(file, `${lines.slice(0, at + 1).join("\n")}\n`);
}

function started(place: Repository): Promise<{ readonly code: number | null }> {
  return place.flow(["run", "w.yaml", "--input", `top=${place.folder}`]);
}

const big = `${Array.from({ length: 3000 }, (_, index) => `line ${index}`).join("\n")}\n`;

describe.concurrent("a patch that was on its way when flow died", () => {
  const states: readonly [string, LogLine["type"], (place: Repository) => void][] = [
    ["had not begun to be written", "worktree.applying", (place) => void place.git("checkout", "--quiet", ".")],
    ["had been written half, a file cut off", "worktree.applying", (place) => place.write("a.txt", "sta")],
    ["had been written half, a file gone", "worktree.applying", (place) => rmSync(join(place.folder, "a.txt"))],
    ["had been written, and not said to be", "worktree.applying", () => undefined],
    ["had been applied, and the step had no end", "worktree.closed", () => undefined],
  ];
  test.each(states)("%s: it is there once, and the step does not run again", (_, type, change) =>
    within(adds, async (place) => {
      expect((await started(place)).code).toBe(0);
      cutBehind(place, type);
      change(place);
      const resumed = await place.flow(["resume", "latest"]);
      expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
      expect([place.read("a.txt"), place.read("count"), place.traces]).toEqual(["start\nline\n", "x\n", untouched]);
      const after = place.events().findLast((it) => it.type === "step.finished" && it.step === "after");
      expect(after).toMatchObject({ outputs: { stdout: 'done ["a.txt"]' } });
    }),
  );

  test("meets a workspace that somebody has changed: a conflict, and the step runs again", () =>
    within(adds, async (place) => {
      await started(place);
      cutBehind(place, "worktree.applying");
      place.write("a.txt", "somebody else\n");
      const resumed = await place.flow(["resume", "latest"]);
      expect([resumed.code, place.read("a.txt"), place.read("count")]).toEqual([0, "somebody else\nline\n", "x\nx\n"]);
      expect(place.events()).toContainEqual(expect.objectContaining({ type: "worktree.closed", status: "conflict" }));
    }));

  test("is applied before a step whose definition has changed runs again", () =>
    within(adds, async (place) => {
      await started(place);
      cutBehind(place, "worktree.applying");
      place.git("checkout", "--quiet", ".");
      place.write("w.yaml", adds["w.yaml"].replace("echo line", "echo more"));
      const resumed = await place.flow(["resume", "latest"]);
      expect([resumed.code, place.read("a.txt"), place.read("count")]).toEqual([0, "start\nline\nmore\n", "x\nx\n"]);
    }));
});

const waits = {
  "a.txt": "start\n",
  "w.yaml": `
steps:
  add: { isolation: worktree, run: 'echo line >> a.txt; echo new > b.txt; test -e "$C/.flow/go" || sleep 60', env: { C: "\${{ inputs.top }}" } }
inputs: { top: { type: string } }
`,
  "other.yaml": "steps: { a: { run: 'true' } }\n",
};

async function killed(place: Repository, said = "start run"): Promise<string> {
  const running = place.start(["run", "w.yaml", "--input", `top=${place.folder}`]);
  await running.said(said);
  const [run = ""] = place.runs();
  const file = join(place.folder, ".flow/runs", run, "worktrees/add-1/b.txt");
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 10));
  running.kill("SIGKILL");
  await running.ended;
  return run;
}

describe.concurrent("a worktree that was open when flow died", () => {
  test("is kept as a patch and removed by a resume, which begins with a new one", () =>
    within(waits, async (place) => {
      const run = await killed(place);
      expect(place.traces[0]).toBe("2 worktree");
      place.write(".flow/go", "");
      const resumed = await place.flow(["resume", "latest"]);
      expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining("patch not applied (2 files)")]);
      expect([place.read("a.txt"), place.status, place.traces]).toEqual([
        "start\nline\n",
        [" M a.txt", "?? b.txt"],
        untouched,
      ]);
      expect(place.read(`.flow/runs/${run}/files/add-1.patch`)).toContain("+line");
      const shown = await place.flow(["show", "latest"]);
      expect(shown.stdout).toMatch(/ add +ok +run, start 2 [^]*patch not applied[^]*add-1\.patch[^]*patch applied/);
    }));

  test("is kept and removed by the next run in the repository, whatever that does", () =>
    within(waits, async (place) => {
      const run = await killed(place);
      const next = await place.flow(["run", "other.yaml"]);
      expect([next.code, next.stderr]).toEqual([
        0,
        expect.stringContaining(
          `removed the worktree add-1, which run ${run} had left behind; what was in it is kept in`,
        ),
      ]);
      expect(place.read(`.flow/runs/${run}/files/add-1.patch`)).toContain("+line");
      expect([place.status, place.traces]).toEqual([[], untouched]);
      place.write(".flow/go", "");
      expect((await place.flow(["resume", run])).code).toBe(0);
      expect(place.read("a.txt")).toBe("start\nline\n");
    }));

  test("is not touched while its run lives", () =>
    within(waits, async (place) => {
      const running = place.start(["run", "w.yaml", "--input", `top=${place.folder}`]);
      await running.said("start run");
      const file = join(place.folder, ".flow/runs", place.runs()[0] ?? "", "worktrees/add-1/b.txt");
      while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 10));
      const next = await place.flow(["run", "other.yaml"]);
      expect([next.stderr.includes("removed"), existsSync(file)]).toEqual([false, true]);
      running.kill("SIGINT");
      expect((await running.ended).code).toBe(130);
      expect([place.status, place.traces]).toEqual([[], untouched]);
    }));

  test("is left for the next run when everything has to end at once", () =>
    within(
      {
        ...waits,
        "w.yaml": waits["w.yaml"]
          .replace("run: '", "run: 'trap : TERM; ")
          .replace("sleep 60", "while :; do sleep 1 || :; done"),
      },
      async (place) => {
        const running = place.start(["run", "w.yaml", "--input", `top=${place.folder}`]);
        await running.said("start run");
        const run = place.runs()[0] ?? "";
        while (!existsSync(join(place.folder, ".flow/runs", run, "worktrees/add-1/b.txt")))
          await new Promise((resolve) => setTimeout(resolve, 10));
        running.kill("SIGINT");
        await new Promise((resolve) => setTimeout(resolve, 300));
        const second = performance.now();
        running.kill("SIGINT");
        expect([(await running.ended).code, performance.now() - second < 3000]).toEqual([130, true]);
        await place.flow(["run", "other.yaml"]);
        expect(place.read(`.flow/runs/${run}/files/add-1.patch`)).toContain("+line");
        expect([place.status, place.traces]).toEqual([[], untouched]);
      },
    ));

  test("of a run whose folder was deleted is forgotten by git as well", () =>
    within(waits, async (place) => {
      await killed(place);
      rmSync(join(place.folder, ".flow"), { recursive: true });
      expect((await place.flow(["run", "other.yaml"])).code).toBe(0);
      expect(place.traces).toEqual(untouched);
    }));
});

describe("an agent that was cut off", () => {
  const files = {
    "w.yaml": `
model: scripted/replies.yaml
permissions: { Write: allow, Edit: allow, Bash: allow }
steps: { work: { agent: { instructions: You., tools: [Read, Write, Bash], prompt: hi }, isolation: worktree } }
`,
    "replies.yaml": `
agents:
  work:
    - { calls: [{ name: Write, args: { file_path: one.txt, content: "1\\n" } }] }
    - { calls: [{ name: Bash, args: { command: "cat one.txt > two.txt" } }], delay: DELAY }
    - { text: done }
`,
  };

  test.each(["SIGINT", "SIGKILL"] as const)(
    "by %s finds its files as it had left them, and asks for nothing twice",
    async (signal) => {
      const replies = files["replies.yaml"];
      await within({ ...files, "replies.yaml": replies.replace("DELAY", "30s") }, async (place) => {
        const running = place.start(["run", "w.yaml", "-v"]);
        await running.said("tool Write ok");
        running.kill(signal);
        await running.ended;
        place.write("replies.yaml", replies.replace("DELAY", "1ms"));
        const resumed = await place.flow(["resume", "latest"]);
        expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
        expect([place.read("one.txt"), place.read("two.txt"), place.traces]).toEqual(["1\n", "1\n", untouched]);
        const events = place.events();
        expect(events.filter((it) => it.type === "tool.started" && it.name === "Write")).toHaveLength(1);
        expect(events.filter((it) => it.type === "worktree.opened").map((it) => "restored" in it)).toEqual([
          false,
          true,
        ]);
      });
    },
  );

  test("finds them although another run has tidied up, and git has forgotten what was not named", async () => {
    const replies = files["replies.yaml"];
    const other = { "other.yaml": "steps: { a: { run: 'true' } }\n" };
    await within({ ...files, ...other, "replies.yaml": replies.replace("DELAY", "30s") }, async (place) => {
      const running = place.start(["run", "w.yaml", "-v"]);
      await running.said("tool Write ok");
      running.kill("SIGKILL");
      await running.ended;
      const [run = ""] = place.runs();
      await place.flow(["run", "other.yaml"]);
      place.git("gc", "--quiet", "--prune=now");
      appendFileSync(join(place.folder, "replies.yaml"), "\n");
      place.write("replies.yaml", replies.replace("DELAY", "1ms"));
      const resumed = await place.flow(["resume", run]);
      expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
      expect([place.read("one.txt"), place.read("two.txt")]).toEqual(["1\n", "1\n"]);
    });
  });
});

describe("flow killed at any moment", () => {
  const rounds = Math.ceil(Number(process.env["FLOW_TORTURE"] ?? 50) / 8);
  const workflow = `
steps:
  one: { isolation: worktree, run: "echo one >> one.txt; echo one > big-one.txt; seq 20000 >> big.txt" }
  two: { isolation: worktree, run: "sleep 0.1; echo two >> two.txt" }
  items:
    needs: [one]
    isolation: worktree
    foreach: [a, b, c]
    run: 'echo "$X" >> "$X.txt"; sed -i "s/^line ${"$N"}00$/$X/" lines.txt'
    env: { X: "\${{ item }}", N: "\${{ index }}" }
  last: { needs: [items, two], isolation: worktree, run: "cat *.txt | wc -l > count.txt" }
`;

  test(`applies every patch once, ${rounds} times`, { timeout: rounds * 30_000 }, async () => {
    let state = 7;
    const random = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
    const files = { "w.yaml": workflow, "lines.txt": big };
    // How long it takes here, now: moments of a quiet machine would be all too early or too late on another.
    const whole = await within(files, async (place) => {
      const begun = performance.now();
      expect((await place.flow(["run", "w.yaml", "--quiet"])).code).toBe(0);
      return performance.now() - begun;
    });
    let cut = 0;
    for (let round = 0; round < rounds; round++) {
      await within(files, async (place) => {
        const running = place.start(["run", "w.yaml", "--quiet"]);
        await new Promise((resolve) => setTimeout(resolve, whole * (0.15 + random())));
        running.kill("SIGKILL");
        const { code } = await running.ended;
        if (code === null) cut++;
        if (place.runs().length === 0 || !place.log().includes("\n")) return;
        const resumed = await place.flow(["resume", "latest"]);
        expect([round, resumed.code, resumed.stderr]).toEqual([round, 0, expect.anything()]);
        for (const name of ["one", "two", "a", "b", "c"])
          expect([round, place.read(`${name}.txt`)]).toEqual([round, `${name}\n`]);
        expect(place.read("big.txt").length).toBe(108_894);
        expect([place.read("count.txt").trim(), place.traces]).toEqual(["23006", untouched]);
        place.events();
      });
    }
    expect(cut).toBeGreaterThan(0);
  });
});
