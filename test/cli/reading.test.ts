import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place: Place;
/** Ids of the runs, in the order in which they were made. */
let demo: string;
let agents: string;
let hostile: string;

beforeAll(async () => {
  place = new Place({
    "demo.yaml": `name: demo
inputs: { publish: { type: boolean, default: false } }
steps:
  prep: { set: { n: 3 } }
  each:
    foreach: [1, 2, 3, 4, 5, 6, 7, 8]
    fail-fast: false
    parallel: 1
    continue-on-error: true
    run: if [ "$N" = 5 ]; then echo five is bad >&2; exit 3; fi
    env: { N: "\${{ item }}" }
  flaky:
    needs: [each]
    run: if [ ! -e tried ]; then touch tried; exit 9; fi
    retry: { max: 2, backoff: 10ms }
  loop:
    repeat: { until: iteration == 2, max: 5 }
    steps: { inner: { run: echo turn } }
  sub: { workflow: sub.yaml }
  publish: { if: inputs.publish && steps.prep.outputs.n > 2, run: echo never }
  broken: { needs: [sub, flaky, loop], run: "echo first >&2; echo last words >&2; exit 4" }
  after: { needs: [broken], run: echo never }
  later: { needs: [after], run: echo never }
  always: { if: always(), needs: ["*"], run: echo done }
`,
    "sub.yaml": "name: sub\nsteps:\n  hello: { run: echo hello }\n  bye: { needs: [hello], run: echo bye }\n",
    "agents.yaml": `name: talk
agents: { writer: { instructions: Write., tools: [Read] } }
steps:
  draft: { agent: writer, prompt: Write about notes.md., model: scripted/replies.yaml }
`,
    "replies.yaml": `agents:
  writer:
    - calls: [{ name: Read, args: { file_path: notes.md } }]
    - text: All done.
`,
    "notes.md": "notes\n",
    "hostile.yaml": `name: "evil \\e[2J name"
steps:
  loud: { run: "printf '\\\\033]0;owned\\\\007\\\\033[31mred\\\\033[0m\\\\n::error::x\\\\n' >&2; exit 1" }
`,
  });
  const idOf = async (file: string): Promise<string> => {
    await place.flow(["run", file, "-q"]);
    return place.runs().at(-1) ?? "";
  };
  demo = await idOf("demo.yaml");
  agents = await idOf("agents.yaml");
  hostile = await idOf("hostile.yaml");
});
afterAll(() => place.remove());

/** Without what differs from run to run. */
function masked(text: string): string {
  return text
    .replaceAll(/\d{8}-\d{6}-\w{5}/g, "RUN")
    .replaceAll(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{3}Z)?)?/g, "DATE")
    .replaceAll(/\d\d:\d\d\.\d/g, "00:00.0")
    .replaceAll(/\b\d+\.\ds/g, "0.0s")
    .replaceAll(/\b\d+ ms\b/g, "0 ms");
}

async function shown(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await place.flow(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).not.toContain("\u001B");
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(args[0] === "logs" ? 400 : 100);
  return masked(stdout);
}

async function refused(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await place.flow(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^flow: .*\n$/);
  return masked(stderr.slice("flow: ".length, -1)).replaceAll(place.folder, "HERE");
}

describe("flow runs", () => {
  it("lists the runs, the newest first", async () => {
    expect(await shown("runs")).toMatchInlineSnapshot(`
      "run                    workflow        outcome  started (UTC)     took  ok/fail/skip  tokens  cost
      RUN  evil \\x1b[2J …  failed   DATE  0.0s  0/1/0
      RUN  talk            ok       DATE  0.0s  1/0/0            510    $0
      RUN  demo            failed   DATE  0.0s  6/1/3
      "
    `);
  });

  it("gives the same as data", async () => {
    const { stdout } = await place.flow(["runs", "--json"]);
    const { schemaVersion, runs } = JSON.parse(stdout) as { schemaVersion: number; runs: Record<string, unknown>[] };
    expect(schemaVersion).toBe(1);
    expect(runs.map(({ run, state }) => [run, state])).toEqual([
      [hostile, "failure"],
      [agents, "success"],
      [demo, "failure"],
    ]);
    expect(runs[2]).toMatchObject({ workflow: "demo.yaml", steps: { ok: 6, failed: 1, skipped: 3, cancelled: 0 } });
    expect(runs[1]).toMatchObject({ tokens: expect.any(Number) as number, cost: 0, problem: null });
  });

  it("says that there are none, and refuses a folder that is not there", async () => {
    mkdirSync(join(place.folder, "none"));
    const { code, stdout, stderr } = await place.flow(["runs", "--runs-dir", "none"]);
    expect([code, stdout, stderr]).toEqual([0, "", "flow: no runs yet in none; `flow run FILE` makes one\n"]);
    expect((await place.flow(["runs", "--runs-dir", "none", "--json"])).stdout).toContain('"runs": []');
    expect(await refused("runs", "--runs-dir", "absent")).toBe("there is no folder HERE/absent");
  });

  it("tells damaged, empty, newer, cut and unfinished logs apart, and breaks at none", async () => {
    const text = logOf(demo);
    const lines = text.split("\n");
    const logs: Record<string, string> = {
      "20250101-000001-aaaaa": "",
      "20250101-000002-aaaaa": "not a log\n",
      "20250101-000003-aaaaa": text.replace('"log":1', '"log":2'),
      "20250101-000004-aaaaa": [...lines.slice(0, 10), "\0\0\0", ...lines.slice(11)].join("\n"),
      "20250101-000005-aaaaa": lines.slice(0, 10).join("\n"),
      "20250101-000006-aaaaa": '{"seq":1,"ti',
    };
    for (const [id, log] of Object.entries(logs)) place.write(`odd/${id}/log.jsonl`, log);
    const { code, stdout } = await place.flow(["runs", "--runs-dir", "odd", "--json"]);
    expect(code).toBe(0);
    const { runs } = JSON.parse(stdout) as { runs: { state: string; problem: string | null }[] };
    expect(runs.reverse().map(({ state, problem }) => `${state}: ${problem}`)).toEqual([
      "damaged: the log is empty",
      "damaged: not the log of a run",
      "newer: the log has version 2, and this flow reads version 1",
      "damaged: line 11 is damaged",
      "interrupted: null",
      "damaged: the log has no whole line",
    ]);
    expect((await place.flow(["runs", "--runs-dir", "odd"])).stdout).toContain("\n  line 11 is damaged\n");
  });
});

describe("flow show", () => {
  it("draws the tree: items in numbers and those that failed, attempts, iterations, what is inside", async () => {
    expect(await shown("show", demo)).toMatchInlineSnapshot(`
      "✗ failed demo RUN
        file    demo.yaml
        started DATE UTC, took 0.0s
        steps   6 ok, 1 failed, 3 skipped

      ✓ prep        ok      set         0.0s
      ✗ each        failed  run ×8      0.0s
          because each[4] failed
          the run goes on: continue-on-error
          7 ok, 1 failed; 7 not shown
        ✗ [4]       failed  run         0.0s
            exit: exited with 3: five is bad (demo.yaml:5:3)
      ✓ flaky       ok      run         0.0s
        ✗ attempt 1 failed              0.0s
            exit: exited with 9
            the next one 0 ms later
        ✓ attempt 2 ok                  0.0s
      ✓ loop        ok      steps ↻2    0.0s
        ✓ #1        ok      steps       0.0s
          ✓ inner   ok      run         0.0s
        ✓ #2        ok      steps       0.0s
          ✓ inner   ok      run         0.0s
      ✓ sub         ok      workflow    0.0s
        ✓ hello     ok      run         0.0s
        ✓ bye       ok      run         0.0s
      ⊘ publish     skipped run
          inputs.publish && steps.prep.outputs.n > 2 is false (inputs.publish = false,
          steps.prep.outputs.n = 3)
      ✗ broken      failed  run         0.0s
          exit: exited with 4: last words (demo.yaml:21:3)
      ⊘ after       skipped run
          \`broken\` failed (exit: exited with 4: last words)
      ⊘ later       skipped run
          \`after\` was skipped: \`broken\` failed (exit: exited with 4: last words)
      ✓ always      ok      run         0.0s
      "
    `);
  });

  it("shows an agent with its turns and tokens", async () => {
    expect((await shown("show", agents)).replaceAll(/\d+ tok/g, "N tok").replace(/tokens .*/, "tokens"))
      .toMatchInlineSnapshot(`
        "✓ ok talk RUN
          file    agents.yaml
          started DATE UTC, took 0.0s
          steps   1 ok
          tokens

        ✓ draft          ok agent                      0.0s    N tok       $0
          ✓ agent writer ok 2 turns scripted/repli…    0.0s    N tok       $0
        "
      `);
  });

  it("gives the same as data, with every item", async () => {
    const { stdout } = await place.flow(["show", "latest", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ schemaVersion: 1, run: hostile, state: "failed", exitCode: 1 });
    const tree = JSON.parse((await place.flow(["show", demo, "--json"])).stdout) as {
      steps: Record<string, unknown>[];
    };
    const each = tree.steps[1] as { path: string; state: string; conclusion: string; inner: Record<string, unknown>[] };
    expect([each.path, each.state, each.conclusion, each.inner.length]).toEqual(["each", "failed", "success", 8]);
    expect(each.inner[4]).toMatchObject({ path: "each[4]", error: { kind: "exit" }, attempts: [{ attempt: 1 }] });
    expect(tree.steps[5]).toMatchObject({ state: "skipped", reason: { kind: "condition" } });
  });

  it("shows what a log that ends in the middle of a line still says", async () => {
    const lines = logOf(demo).split("\n");
    place.write("torn/20250101-000001-aaaaa/log.jsonl", `${lines.slice(0, 30).join("\n")}\n${lines[30]?.slice(0, 20)}`);
    const { code, stdout, stderr } = await place.flow(["show", "latest", "--runs-dir", "torn"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/log\.jsonl:31: the last line is not complete \(20 bytes\); it is left out\n$/);
    expect(stdout).toMatch(/^! interrupted demo /);
    expect(stdout).toMatch(/^○ broken +not started run$/m);
  });

  it("shows what comes before a damaged line, and exits with 2", async () => {
    const lines = logOf(demo).split("\n");
    place.write("bent/20250101-000001-aaaaa/log.jsonl", [...lines.slice(0, 30), "{", ...lines.slice(31)].join("\n"));
    const { code, stdout, stderr } = await place.flow(["show", "latest", "--runs-dir", "bent"]);
    expect(code).toBe(2);
    expect(stderr).toContain("log.jsonl:31: the line is damaged");
    expect(stdout).toMatch(/^✓ prep +ok/m);
  });

  it("passes over events that it does not know or that are not what they should be", async () => {
    const lines = logOf(demo).split("\n").slice(0, 2);
    const odd = [
      { type: "moon.rose", step: "prep" },
      { type: "step.finished", step: 5 },
      { type: "step.skipped", step: "prep", reason: { kind: "boredom" } },
      { type: "step.finished", step: "prep", outcome: "splendid", conclusion: "success", duration: 1 },
    ];
    const text = odd.map((event, index) =>
      JSON.stringify({ seq: index + 3, time: "2026-11-21T00:00:00.000Z", ...event }),
    );
    place.write("odd-events/20250101-000001-aaaaa/log.jsonl", `${[...lines, ...text].join("\n")}\n`);
    const { code, stdout, stderr } = await place.flow(["show", "latest", "--runs-dir", "odd-events"]);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: "flow: 4 events of the log could not be understood (`flow logs` shows them)\n",
    });
    expect(stdout).toMatch(/^! prep +interrupted/m);
    expect((await place.flow(["logs", "latest", "--runs-dir", "odd-events"])).stdout).toContain(
      "00:00:00 prep       moon.rose\n",
    );
  });
});

describe("flow why", () => {
  const cases = [
    "publish",
    "after",
    "later",
    "broken",
    "each",
    "each[4]",
    "flaky",
    "loop",
    "sub/bye",
    "always",
    "prep",
  ];
  it.each(cases)("explains %s", async (path) => {
    expect(await shown("why", demo, path)).toMatchSnapshot();
  });

  it("explains an agent", async () => {
    expect(await shown("why", agents, "draft")).toMatchSnapshot();
  });

  it("gives the same as data", async () => {
    const { stdout } = await place.flow(["why", demo, "broken", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      schemaVersion: 1,
      run: demo,
      step: "broken",
      state: "failed",
      sources: [
        { step: "sub", state: "ok", needed: true },
        { step: "flaky", state: "ok", needed: true },
        { step: "loop", state: "ok", needed: true },
      ],
      error: { kind: "exit", position: { file: "demo.yaml", line: 21 } },
      wrote: ["first", "last words"],
    });
  });

  it("says when the file is not what it was, or is gone", async () => {
    const other = new Place();
    other.write("a.yaml", "name: a\nsteps:\n  a: { run: exit 1 }\n");
    await other.flow(["run", "a.yaml"]);
    other.write("a.yaml", "name: a\nsteps:\n  # new\n  a: { run: exit 1 }\n");
    expect((await other.flow(["why", "latest", "a"])).stdout).toContain(
      "a.yaml:3:3 (the file has changed since; this is its line now)",
    );
    other.write("a.yaml", "");
    expect((await other.flow(["why", "latest", "a"])).stdout).toContain(
      "a.yaml:3:3 (the file has changed and is shorter now)",
    );
    other.remove();
  });

  it("names the nearest steps for one that is not there", async () => {
    expect(await refused("why", demo, "brokn")).toBe("the run RUN has no step brokn; did you mean broken?");
    expect(await refused("why", demo, "bye")).toBe("the run RUN has no step bye; did you mean sub/bye?");
    expect(await refused("why", demo, "each[40]")).toMatch(
      /^the run RUN has no step each\[40\]; did you mean each\[\d\], each\[\d\], each\[\d\]\?$/,
    );
    expect(await refused("why", demo, "zzzzzzzz")).toBe("the run RUN has no step zzzzzzzz; `flow show` lists them");
  });

  it("is what a failed run tells to type next", async () => {
    const { stderr } = await place.flow(["run", "hostile.yaml"]);
    const [, next = ""] = /^ {2}next {4}(.*)$/m.exec(stderr) ?? [];
    const { code, stdout } = await place.shell(next.replace(/^node /, '"$NODE" '));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^loud: failed/);
    hostile = place.runs().at(-1) ?? "";
  });
});

describe("flow logs", () => {
  it("tells the log in words, with the last words of what failed", async () => {
    const text = await shown("logs", demo);
    expect(text).toContain("00:00.0 run        RUN demo.yaml (10 steps)\n");
    expect(text).toContain(
      "        broken     | first\n        broken     | last words\n00:00.0 broken     failed exit: exited with 4: last words 0.0s\n",
    );
    expect(text).not.toContain("| turn");
  });

  it("shows one step with what is inside it and all that it wrote", async () => {
    expect(await shown("logs", demo, "--step", "loop#1")).toBe(
      [
        "00:00.0 loop#1     start steps",
        "00:00.0 loop#1/inner start run",
        "        loop#1/inner | turn",
        "00:00.0 loop#1/inner ok 0.0s",
        "00:00.0 loop#1     ok 0.0s",
        "",
      ].join("\n"),
    );
    expect(await shown("logs", demo, "--step", "each[4]", "--type", "step.finished")).toContain("five is bad");
  });

  it("shows the types that are asked for, each event a line", async () => {
    const lines = (await shown("logs", demo, "--type", "step.attempt,run.finished", "--step", "flaky"))
      .trim()
      .split("\n");
    expect(lines).toHaveLength(4);
    const types = (await place.flow(["logs", demo, "--json", "--type", "run"])).stdout;
    expect(
      types
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { type: string }).type),
    ).toEqual(["run.started", "run.finished"]);
    expect(await refused("logs", demo, "--type", "step.finishd")).toBe(
      'there are no events of the type "step.finishd"; did you mean step.finished?',
    );
    expect(await refused("logs", demo, "--step", "brokn")).toBe("the run RUN has no step brokn; did you mean broken?");
  });

  it("is the log itself with --json, and the messages of agents with -v", async () => {
    expect((await place.flow(["logs", demo, "--json"])).stdout).toBe(logOf(demo));
    expect(await shown("logs", agents)).toContain("tool Read");
    expect(await shown("logs", agents)).not.toContain("All done.");
    expect(await shown("logs", agents, "-v")).toContain("assistant: All done.");
  });

  it("ends quietly when nobody reads any more", async () => {
    place.write("long/20250101-000001-aaaaa/log.jsonl", manyLines(20_000));
    const { stdout, stderr } = await place.shell('flow logs latest --runs-dir long | head -1; echo "${PIPESTATUS[0]}"');
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^00:00\.0 run .*\n0\n$/);
  });

  it("streams 200,000 events in flat memory, at the speed of its reader", async () => {
    place.write("huge/20250101-000001-aaaaa/log.jsonl", manyLines(200_000));
    const line =
      'NODE_OPTIONS=--max-old-space-size=48 flow logs latest --runs-dir huge | (sleep 1; tail -1); echo "${PIPESTATUS[0]}"';
    const { stdout, stderr } = await place.shell(line);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/each\[\d+\] .*\n0\n$/);
  });

  it("follows a run to its end, and shows it as running meanwhile", async () => {
    const other = new Place({
      "slow.yaml":
        "name: slow\nsteps:\n  one: { run: 'while [ ! -e go ]; do sleep 0.05; done' }\n  two: { needs: [one], run: echo }\n",
    });
    const run = other.start(["run", "slow.yaml"]);
    await run.said("one        start run");
    const follow = other.start(["logs", "latest", "-f"]);
    const { stdout: list } = await other.flow(["runs"]);
    expect(list).toContain("  running  ");
    expect((await other.flow(["show", "latest"])).stdout).toMatch(/^● one +running run/m);
    expect((await other.flow(["why", "latest", "two"])).stdout).toContain(
      "It has not started yet.\nIt waits for:\n  one  running",
    );
    other.write("go", "");
    expect((await run.ended).code).toBe(0);
    const { code, stdout, stderr } = await follow.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/run +ok \d+\.\ds\n$/);
    other.remove();
  });

  it("stops following a run that was killed", async () => {
    const other = new Place({ "slow.yaml": "name: slow\nsteps:\n  one: { run: exec sleep 63.21 }\n" });
    const run = other.start(["run", "slow.yaml"]);
    await run.said("one        start run");
    const follow = other.start(["logs", "latest", "-f"]);
    run.kill("SIGKILL");
    await run.ended;
    expect((await follow.ended).code).toBe(0);
    expect((await other.flow(["runs"])).stdout).toContain("interrupted");
    expect((await other.flow(["why", "latest", "one"])).stdout).toMatch(/^one: interrupted/);
    other.remove();
  });
});

describe("the run that is meant", () => {
  it("may be latest, an id, its beginning, its folder or its log", async () => {
    const file = `.flow/runs/${demo}/log.jsonl`;
    for (const name of [demo, demo.slice(0, -1), `.flow/runs/${demo}`, file, join(place.folder, file)])
      expect((await place.flow(["show", name])).stdout).toMatch(/^✗ failed demo /);
    expect((await place.flow(["show", "latest"])).stdout).toMatch(/^✗ failed evil/);
  });

  it.each(["show", "logs", "why"])("is refused in its own words by %s when there is none such", async (command) => {
    const rest = command === "why" ? ["x"] : [];
    const beginning = demo.slice(0, 4);
    expect(await refused(command, "1999", ...rest)).toMatch(
      /^no run in HERE\/\.flow\/runs begins with "1999"; the newest are RUN, RUN, RUN/,
    );
    expect(await refused(command, beginning, ...rest)).toMatch(/^"\d{4}" is the beginning of \d runs: RUN, RUN, RUN/);
    mkdirSync(join(place.folder, "none"), { recursive: true });
    expect(await refused(command, "latest", ...rest, "--runs-dir", "none")).toBe("there are no runs in HERE/none");
    expect(await refused(command, "./demo", ...rest)).toBe("./demo is not a run: there is no HERE/demo/log.jsonl");
    place.write("no-run/log.jsonl", '{"seq":1,"time":"","type":"diary"}\n');
    expect(await refused(command, "no-run/", ...rest)).toBe(
      "HERE/no-run/log.jsonl is not the log of a run: it does not begin with `run.started`",
    );
    mkdirSync(join(place.folder, "newer"), { recursive: true });
    copyFileSync(join(place.folder, `.flow/runs/${demo}/log.jsonl`), join(place.folder, "newer/log.jsonl"));
    writeFileSync(join(place.folder, "newer/log.jsonl"), logOf(demo).replace('"log":1', '"log":2'));
    expect(await refused(command, "newer/", ...rest)).toBe(
      "HERE/newer/log.jsonl has log version 2, and this flow reads version 1; a newer flow wrote it",
    );
    writeFileSync(join(place.folder, "newer/log.jsonl"), "");
    expect(await refused(command, "newer/", ...rest)).toBe("HERE/newer/log.jsonl is empty");
  });
});

describe("a run that was resumed", () => {
  it("says what was reused, what ran again and why", async () => {
    const other = new Place({
      "again.yaml": `name: again
steps:
  a: { run: echo a }
  group:
    needs: [a]
    steps:
      x: { run: echo x }
      y: { needs: [x], run: "test -e go" }
  z: { needs: [group], run: echo z }
`,
    });
    await other.flow(["run", "again.yaml", "-q"]);
    other.write("go", "");
    expect((await other.flow(["resume", "latest", "-q"])).code).toBe(0);
    const tree = (await other.flow(["show", "latest"])).stdout;
    expect(tree).toContain("  resumed once\n  steps   3 ok\n");
    for (const line of [/✓ a +ok run, reused/, /✓ x +ok run, reused/, /✓ y +ok run, start 2/, /✓ z +ok run +\d/])
      expect(tree).toMatch(line);
    expect((await other.flow(["why", "latest", "a"])).stdout).toMatch(
      /It was not run again by the resume: its end in line \d+ /,
    );
    expect((await other.flow(["why", "latest", "group/y"])).stdout).toContain(
      "It was run again by the resume, because it had failed.",
    );
    expect((await other.flow(["runs"])).stdout).toMatch(/again +ok .* 3\/0\/0\n$/);
    other.remove();
  });
});

it("a plan that lies beside its log is read, and one that is gone is told", async () => {
  const steps = Array.from({ length: 500 }, (_, index) => `  s${index}: { set: { v: x } }\n`);
  const other = new Place({ "big.yaml": `name: big\nsteps:\n${steps.join("")}` });
  await other.flow(["run", "big.yaml", "-q"]);
  expect((await other.flow(["show", "latest"])).stdout).toContain("  steps   500 ok\n");
  rmSync(join(other.folder, ".flow/runs", other.runs()[0] ?? "", "blobs"), { recursive: true });
  const { code, stdout, stderr } = await other.flow(["show", "latest"]);
  expect(code).toBe(0);
  expect(stdout).toContain("  steps   500 ok\n");
  expect(stderr).toMatch(/^flow: line 1: .*blobs\/[0-9a-f]{64}: ENOENT.*\n$/);
  other.remove();
});

describe("the guide", () => {
  const guide = readFileSync(new URL("../../docs/runs.md", import.meta.url), "utf8");
  const [release = "", cached = ""] = [...guide.matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = ""]) => yaml);
  const examples = [...guide.matchAll(/^\$ flow (.*)\n([^]*?)(?=\n\n\$ |```)/gm)];
  const isOfCache = (called: string | undefined): boolean => called === "why latest build";

  it("shows what its workflow gives", async () => {
    const other = new Place({ "release.yaml": release });
    await other.flow(["run", "release.yaml", "-q"]);
    expect(examples.length).toBe(6);
    for (const [, line = "", text = ""] of examples.filter(([, called]) => called !== "runs" && !isOfCache(called))) {
      const { stdout } = await other.shell(`flow ${line}`);
      expect(masked(stdout).trim(), line).toBe(masked(text).trim());
    }
    other.remove();
  });

  it("shows what a step with `cache` gives after a change", async () => {
    const other = new Place({ "cached.yaml": cached, "source.txt": "old\n" });
    await other.flow(["run", "cached.yaml", "-q"]);
    other.write("source.txt", "new\n");
    await other.flow(["run", "cached.yaml", "-q", "--input", "mode=slow"]);
    const { stdout } = await other.flow(["why", "latest", "build"]);
    const [, , text = ""] = examples.find(([, called]) => isOfCache(called)) ?? [];
    expect(masked(stdout).trim()).toBe(masked(text).trim());
    other.remove();
  });
});

it("text of steps and files cannot reach the terminal's controls", async () => {
  for (const args of [
    ["runs"],
    ["show", hostile],
    ["why", hostile, "loud"],
    ["logs", hostile],
    ["logs", hostile, "--step", "loud"],
  ]) {
    const { code, stdout } = await place.flow(args);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f]/);
    expect(stdout).not.toMatch(/^::/m);
  }
});

function logOf(run: string): string {
  return readFileSync(join(place.folder, ".flow/runs", run, "log.jsonl"), "utf8");
}

function manyLines(count: number): string {
  const [first = ""] = logOf(demo).split("\n");
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({ seq: index + 2, time: "2026-11-21T00:00:00.000Z", type: "step.ready", step: `each[${index}]` }),
  );
  return `${[first, ...lines].join("\n")}\n`;
}
