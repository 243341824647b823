import { afterEach, describe, expect, test } from "vitest";
import type { ApprovalRequest, LogLine } from "../../src/model/event.ts";
import { type Ended, type Options, Place } from "./flow.ts";

const gate = `
name: gate
inputs: { version: { type: string, default: "1.2" } }
steps:
  build: { run: 'echo "$FLOW_STEP" >> count' }
  ok:
    needs: [build]
    approve: "Ship \${{ inputs.version }}?"
    form:
      type: object
      required: [reason]
      properties:
        reason: { type: string, minLength: 3, description: Why now }
        window: { enum: [now, tonight], default: tonight }
        nodes: { type: integer, default: 2 }
  beside: { run: 'sleep 0.3; echo "$FLOW_STEP" >> count' }
  deploy:
    needs: [ok]
    run: 'echo "$FLOW_STEP" >> count; echo "$WHAT"'
    env: { WHAT: "\${{ toJSON(steps.ok.outputs) }}" }
outputs: { deployed: "\${{ fromJSON(steps.deploy.outputs.stdout) }}" }
`;

const places: Place[] = [];
function place(files: Readonly<Record<string, string>> = { "gate.yaml": gate }): Place {
  const made = new Place(files);
  places.push(made);
  return made;
}
afterEach(() => {
  for (const made of places.splice(0)) made.remove();
});

const types = (events: readonly LogLine[]): string[] => events.map(({ type }) => type);
const count = (here: Place): string[] => here.read("count").split("\n").filter(Boolean);

async function waiting(
  files?: Readonly<Record<string, string>>,
  options?: Options,
): Promise<{ here: Place; ended: Ended }> {
  const here = place(files);
  const ended = await here.flow(["run", Object.keys(files ?? { "gate.yaml": "" })[0] ?? ""], options);
  expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining("waiting")]);
  return { here, ended };
}

describe("without a terminal an approval", () => {
  test("waits: all else ends first, and the end says what is asked and what to type", async () => {
    const { here, ended } = await waiting();
    const run = here.runs()[0] ?? "";
    expect(ended.stderr.slice(ended.stderr.indexOf("waiting ok:"))).toMatch(
      new RegExp(
        [
          "^waiting ok: Ship 1\\.2\\?",
          "  form    reason \\(text\\) Why now",
          "          window \\(one of now, tonight; default tonight\\)",
          "          nodes \\(integer; default 2\\)",
          `  yes     node .*flow\\.cjs resume ${run} --approve ok --form 'reason=…'`,
          `  no      node .*flow\\.cjs resume ${run} --deny ok`,
        ].join("\n"),
      ),
    );
    expect(count(here)).toEqual(["build", "beside"]);
    const events = here.events();
    expect(events.at(-2)).toMatchObject({ type: "run.waiting", steps: ["ok"] });
    expect(events.at(-1)).toMatchObject({ type: "run.finished", outcome: "waiting", exitCode: 5, outputs: {} });
  });

  test("and whoever reads the run sees it wait", async () => {
    const { here } = await waiting();
    const shown = await here.flow(["show", "latest"]);
    expect(shown.stdout).toMatch(/^◷ waiting gate/);
    expect(shown.stdout).toMatch(/◷ ok +waiting +approve\n +asks: Ship 1\.2\?/);
    const [, answer = ""] = /yes +\S+ \S+ (resume .+)\n/.exec(shown.stdout) ?? [];
    expect(answer).toBe(`resume ${here.runs()[0]} --approve ok --form 'reason=…'`);
    expect(shown.stdout).toMatch(/no +.+ resume \S+ --deny ok\n/);
    expect((await here.flow(["runs"])).stdout).toMatch(/gate +waiting/);
    const why = await here.flow(["why", "latest", "ok"]);
    expect(why.stdout).toContain("It waits for an answer to: Ship 1.2?");
    const json = JSON.parse((await here.flow(["show", "latest", "--json"])).stdout) as {
      outcome: string;
      steps: { path: string; state: string }[];
    };
    expect([json.outcome, json.steps.find(({ path }) => path === "ok")?.state]).toEqual(["waiting", "waiting"]);
  });

  test("is in the result as data", async () => {
    const here = place();
    const { code, stdout } = await here.flow(["run", "gate.yaml", "--json", "-q"]);
    const result = JSON.parse(stdout) as { outcome: string; waiting: ApprovalRequest[] };
    expect([code, result.outcome, result.waiting]).toMatchObject([
      5,
      "waiting",
      [{ step: "ok", question: "Ship 1.2?" }],
    ]);
  });

  test.each([
    ["with its input at an end", "flow run gate.yaml < /dev/null"],
    ["into a pipe", "flow run gate.yaml 2>&1 | cat; exit ${PIPESTATUS[0]}"],
    ["in CI", "CI=true flow run gate.yaml"],
  ])("never blocks %s", async (_, line) => {
    expect((await place().shell(line)).code).toBe(5);
  });

  test("is answered by a resume: what had ended is reused, and the outputs are the form", async () => {
    const { here } = await waiting();
    const answer = [
      "--approve",
      "ok",
      "--form",
      "reason=all green",
      "--form",
      "ok.nodes=3",
      "--comment",
      "go",
      "--by",
      "mei",
    ];
    const ended = await here.flow(["resume", "latest", ...answer, "--json"]);
    expect(ended.code).toBe(0);
    const { outputs } = JSON.parse(ended.stdout) as { outputs: { deployed: unknown } };
    expect(outputs.deployed).toEqual({ reason: "all green", window: "tonight", nodes: 3, by: "mei", comment: "go" });
    expect(count(here)).toEqual(["build", "beside", "deploy"]);
    const events = here.events();
    expect(types(events).filter((type) => type.startsWith("approval"))).toEqual([
      "approval.requested",
      "approval.given",
    ]);
    const again = events.find((event) => event.type === "step.attempt.started" && event.step === "ok" && event.again);
    expect(again).toMatchObject({ again: "waiting" });
    const twice = await here.flow(["resume", "latest", "--approve", "ok"]);
    expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining("mei has approved it already")]);
  });

  test("that is denied is a failure of its own kind, and a later resume asks again", async () => {
    const { here } = await waiting();
    const denied = await here.flow(["resume", "latest", "--deny", "ok", "--comment", "not on a Friday"]);
    expect([denied.code, denied.stderr]).toEqual([1, expect.stringContaining("rejected: not on a Friday")]);
    expect((await here.flow(["resume", "latest"])).code).toBe(5);
    expect(types(here.events()).filter((type) => type === "approval.requested")).toHaveLength(2);
    expect((await here.flow(["resume", "latest", "--approve", "ok", "--form", "reason=now then"])).code).toBe(0);
  });

  test("that is not answered goes on waiting, however often the run is resumed", async () => {
    const { here } = await waiting();
    for (let time = 0; time < 2; time++) {
      const ended = await here.flow(["resume", "latest"]);
      expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining("still waits for an answer")]);
      expect(ended.stderr).toContain("--approve ok");
    }
    expect(types(here.events()).filter((type) => type === "approval.requested")).toHaveLength(1);
  });

  test("whose question has changed is asked again, with the reason", async () => {
    const { here } = await waiting();
    here.write("gate.yaml", gate.replace("Ship ", "Really ship "));
    const ended = await here.flow(["resume", "latest", "--approve", "ok", "--form", "reason=all green"]);
    expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining("its inputs changed")]);
    expect(ended.stderr).toContain("it has changed, so the answer given does not count");
    expect(ended.stderr).toContain("waiting ok: Really ship 1.2?");
    expect((await here.flow(["resume", "latest", "--approve", "ok", "--form", "reason=all green"])).code).toBe(0);
  });

  test("can be a no up front, by somebody who is named", async () => {
    const here = place();
    const ended = await here.flow(["run", "gate.yaml", "--deny", "ok", "--by", "ada", "--comment", "not today"]);
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("not today") as string]);
    expect(here.events().find(({ type }) => type === "approval.given")).toMatchObject({
      decision: "denied",
      by: "ada",
    });
    const both = await here.flow(["run", "gate.yaml", "--deny", "ok", "--approve", "ok"]);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("both in --approve and in --deny") as string]);
  });

  test("can be given up front", async () => {
    const here = place();
    const ended = await here.flow(["run", "gate.yaml", "--approve", "ok", "--form", "reason=all green"]);
    expect(ended.code).toBe(0);
    expect(here.events()[0]).toMatchObject({ answers: [{ step: "ok", decision: "approved" }] });
    const wrong = await here.flow(["run", "gate.yaml", "--approve", "okk"]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("did you mean `ok`?")]);
    const unfit = await here.flow(["run", "gate.yaml", "--approve", "ok"]);
    expect([unfit.code, unfit.stderr]).toEqual([2, expect.stringContaining("`reason` is missing")]);
    expect(here.runs()).toHaveLength(1);
  });
});

describe("an answer that makes no sense is refused, and the log untouched:", () => {
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [["--approve", "okk"], "no approval called `okk` is open; did you mean `ok`?"],
    [["--approve", "zzz"], "no approval called `zzz` is open; open is `ok`"],
    [["--approve", "build"], "`build` is no approval"],
    [["--deny", "deploy"], "no approval called `deploy` is open"],
    [["--approve", "ok", "--deny", "ok"], "`ok` is both in --approve and in --deny"],
    [["--approve", "ok"], "the form of `ok` does not fit: `reason` is missing"],
    [["--approve", "ok", "--form", "reason=x"], "`reason` of `ok` must be at least 3 characters long"],
    [["--approve", "ok", "--form", "reason=all", "--form", "nodes=many"], "`nodes` of `ok` must be a whole number"],
    [
      ["--approve", "ok", "--form", "reason=all", "--form", "window=never"],
      "`window` of `ok` must be one of now, tonight",
    ],
    [["--approve", "ok", "--form", "reson=all"], "no approval given here has a field `reson`; did you mean `reason`?"],
    [["--approve", "ok", "--form", "reason"], "is not of the form field=value"],
    [["--form", "reason=all"], "it goes with --approve, and none was given"],
    [["--deny", "ok", "--form", "reason=all"], "it goes with --approve, and none was given"],
    [["--comment", "well"], "--comment goes with --approve or --deny"],
  ];
  test("every one of them", async () => {
    const { here } = await waiting();
    const before = here.log();
    for (const [args, message] of wrong) {
      const { code, stderr } = await here.flow(["resume", "latest", ...args]);
      expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(message)]);
    }
    expect(here.log()).toBe(before);
  }, 60_000);
});

const many = `
name: many
steps:
  each:
    foreach: [a, b, c, d, e]
    parallel: 1
    steps:
      ok: { approve: "Deploy \${{ item }}?" }
      ship: { needs: [ok], run: 'echo "$FLOW_STEP" >> count' }
  loop:
    repeat: { until: "steps.ok.outputs.comment == 'enough'", max: 3 }
    steps: { ok: { approve: "Round \${{ iteration }}?" } }
  sub: { workflow: ./sub.yaml, undo: { run: 'echo undone >> count' } }
  after: { needs: [each], run: 'echo "$FLOW_STEP" >> count' }
`;
const sub = `
name: sub
steps:
  ok: { approve: "Inside?" }
`;

describe("approvals inside", () => {
  test("a loop one at a time, a repeat and a sub-workflow are all open at once, and answered by their paths", async () => {
    const { here } = await waiting({ "many.yaml": many, "sub.yaml": sub });
    const items = ["a", "b", "c", "d", "e"].map((_, index) => `each[${index}]/ok`);
    const open = here.events().findLast((event) => event.type === "run.waiting");
    expect(open).toMatchObject({ steps: expect.arrayContaining([...items, "loop#1/ok", "sub/ok"]) as unknown });
    const two = await here.flow([
      "resume",
      "latest",
      "--approve",
      "each[1]/ok",
      "--approve",
      "each[3]/ok",
      "--approve",
      "loop#1/ok",
    ]);
    expect(two.code).toBe(5);
    expect(count(here)).toEqual(["each[1]/ship", "each[3]/ship"]);
    const rest = [0, 2, 4].flatMap((index) => ["--approve", items[index] ?? ""]);
    expect((await here.flow(["resume", "latest", ...rest, "--approve", "sub/ok"])).code).toBe(5);
    const last = await here.flow(["resume", "latest", "--approve", "loop#2/ok", "--comment", "enough"]);
    expect(last.code).toBe(0);
    expect(count(here).toSorted()).toEqual(["after", ...items.map((path) => path.replace("ok", "ship"))]);
  }, 30_000);

  test("a run with a failed step decide its exit code only while they can release a step", async () => {
    const here = place({
      "wins.yaml":
        "name: w\nsteps: { bad: { run: exit 3 }, ok: { approve: 'Go?' }, then: { needs: [ok], run: 'true' } }\n",
      "moot.yaml":
        "name: m\nsteps: { bad: { run: exit 3 }, ok: { approve: 'Go?' }, then: { needs: [ok, bad], run: 'true' } }\n",
    });
    expect((await here.flow(["run", "wins.yaml"])).code).toBe(5);
    expect((await here.flow(["run", "moot.yaml"])).code).toBe(1);
  });
});

describe("the time of an approval", () => {
  const hurried =
    "name: h\nsteps: { ok: { approve: 'Go?', timeout: 700ms }, then: { needs: [ok], run: 'true' }, slow: { run: sleep 1.2 } }\n";

  test("runs by the wall clock, in the run itself", async () => {
    const here = place({ "h.yaml": hurried });
    const ended = await here.flow(["run", "h.yaml"]);
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("timeout: nobody answered until")]);
  });

  test("and while nobody runs it: a late answer is refused, and a resume fails the step", async () => {
    const { here, ended } = await waiting({
      "h.yaml": hurried.replace("sleep 1.2", "'true'").replace("700ms", "1500ms"),
    });
    expect(ended.stderr).toMatch(/until {3}\d{4}-/);
    await new Promise((resolve) => setTimeout(resolve, 1600));
    const late = await here.flow(["resume", "latest", "--approve", "ok"]);
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining("its time was up")]);
    const resumed = await here.flow(["resume", "latest"]);
    expect([resumed.code, resumed.stderr]).toEqual([1, expect.stringContaining("timeout: nobody answered until")]);
  });
});

test("a run killed while it waits for an answer is resumed with the answer", async () => {
  const here = place({
    "k.yaml":
      "name: k\nsteps: { ok: { approve: 'Go?' }, then: { needs: [ok], run: 'true' }, slow: { run: 'sleep 5' } }\n",
  });
  const running = here.start(["run", "k.yaml"]);
  await running.said("asks: Go?");
  running.kill("SIGKILL");
  await running.ended;
  here.write("k.yaml", here.read("k.yaml").replace("sleep 5", "true"));
  const ended = await here.flow(["resume", "latest", "--approve", "ok", "--by", "mei"]);
  expect(ended.code).toBe(0);
  expect(types(here.events()).filter((type) => type.startsWith("approval"))).toEqual([
    "approval.requested",
    "approval.given",
  ]);
});

test("a secret in a question and in an answer is masked everywhere", async () => {
  const here = place({
    "s.yaml":
      "name: s\nsecrets: [TOKEN]\ninputs: { x: { type: string } }\nsteps: { ok: { approve: 'Use ${{ inputs.x }}?' } }\n",
  });
  const env = { TOKEN: "hunter2hunter2" };
  const ended = await here.flow(["run", "s.yaml", "--input", "x=hunter2hunter2", "--json"], { env });
  const resumed = await here.flow(["resume", "latest", "--approve", "ok", "--comment", "hunter2hunter2", "--json"], {
    env,
  });
  expect([ended.code, resumed.code]).toEqual([5, 0]);
  for (const text of [ended.stderr, ended.stdout, resumed.stderr, resumed.stdout, here.log()])
    expect(text).not.toContain("hunter2hunter2");
});
