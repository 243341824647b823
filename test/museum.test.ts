import { afterEach, describe, expect, it } from "vitest";
import type { LogLine } from "../src/model/event.ts";
import type { Json } from "../src/model/json.ts";
import { Place } from "./cli/flow.ts";

/** Bugs that other runners of workflows had and their users met. Each is run through the command, as its user did. */

let place = new Place();
afterEach(() => {
  place.remove();
  place = new Place();
});

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly outcome: string | undefined;
  readonly outputs: Json | undefined;
}

async function run(lines: readonly string[], ...args: readonly string[]): Promise<Run> {
  place.write("flow.yaml", `${lines.join("\n")}\n`);
  const { code, stdout, stderr } = await place.flow(["run", "flow.yaml", "--json", ...args]);
  const { outcome, outputs } = (stdout === "" ? {} : JSON.parse(stdout)) as { outcome?: string; outputs?: Json };
  return { code, stdout, stderr, outcome, outputs };
}

/** How each step ended: `a success`, `b skipped needs`. */
function ends(): string[] {
  return place.events().flatMap((event) => {
    if (event.type === "step.finished") return [`${event.step} ${event.outcome}`];
    return event.type === "step.skipped" ? [`${event.step} skipped ${event.reason.kind}`] : [];
  });
}

function endOf(step: string): LogLine | undefined {
  return place.events().find((event) => event.type === "step.finished" && event.step === step);
}

describe("a condition that cannot be read or evaluated is never false", () => {
  it("refuses the file", async () => {
    const { code, stdout } = await run([
      "steps:",
      "  a: { set: { n: 1 } }",
      "  b: { if: steps.a.outputs.n = 1, run: echo hi }",
    ]);
    expect(stdout).toContain("FLOW5001");
    expect(code).toBe(2);
    expect(place.runs()).toEqual([]);
  });

  it("fails the step, and the run with it", async () => {
    const lines = [
      "inputs: { text: { default: '{' } }",
      "steps:",
      "  a: { if: fromJSON(inputs.text).ok == true, run: echo hi }",
    ];
    expect(await run(lines)).toMatchObject({ code: 1, outcome: "failure" });
    expect(endOf("a")).toMatchObject({ error: { kind: "expression", position: { line: 3 } } });
  });
});

it("a run with a failed step is not reported as done, whatever else succeeded", async () => {
  const lines = [
    "steps:",
    "  a: { run: exit 1 }",
    "  b: { run: echo fine }",
    "  c: { needs: [a], if: always(), run: echo bye }",
  ];
  expect(await run(lines)).toMatchObject({ code: 1, outcome: "failure" });
  expect(ends().toSorted()).toEqual(["a failure", "b success", "c success"]);
  expect(place.events().at(-1)).toMatchObject({
    type: "run.finished",
    outcome: "failure",
    exitCode: 1,
    error: { step: "a" },
  });
});

it("`retry` on a script is not only accepted, but done", async () => {
  const lines = [
    "steps:",
    "  a: { run: 'echo x >> tries; [ $(wc -l < tries) = 3 ]', retry: { max: 2, backoff: 1ms } }",
  ];
  expect(await run(lines)).toMatchObject({ code: 0, outcome: "success" });
  expect(place.read("tries")).toBe("x\nx\nx\n");
});

describe("the output of a skipped step", () => {
  it("ends the run that reads it, and names the step", async () => {
    const lines = [
      "steps:",
      "  a: { if: inputs.go, run: echo 1 }",
      "  b: { if: always(), set: { v: '${{ steps.a.outputs.stdout }}' } }",
      "inputs: { go: { type: boolean, default: false } }",
    ];
    expect(await run(lines)).toMatchObject({ code: 1, outcome: "failure" });
    const message = expect.stringContaining("`a` was skipped: its condition `inputs.go` was false") as string;
    expect(endOf("b")).toMatchObject({ error: { kind: "expression", message } });
  });

  it("as the list of a loop skips the loop, and does not fail it", async () => {
    const lines = [
      "inputs: { go: { type: boolean, default: false } }",
      "steps:",
      "  a: { if: inputs.go, set: { list: [1, 2] } }",
      "  b: { foreach: '${{ steps.a.outputs.list }}', set: { v: '${{ item }}' } }",
      "  c: { set: { v: 1 } }",
    ];
    expect(await run(lines)).toMatchObject({ code: 0, outcome: "success" });
    expect(ends().toSorted()).toEqual(["a skipped condition", "b skipped needs", "c success"]);
  });
});

it("a loop neither repeats nor loses an iteration", async () => {
  const lines = [
    "steps:",
    "  a:",
    "    repeat: { until: iteration == 7, max: 20 }",
    "    steps:",
    '      b: { run: \'echo "$N" >> seen\', env: { N: "${{ iteration }}" } }',
    '      c: { needs: b, set: { all: "${{ default(previous.all, 0) }}-${{ iteration }}" } }',
    "    outputs: { all: '${{ steps.c.outputs.all }}' }",
    "outputs: { all: '${{ steps.a.outputs.all }}' }",
  ];
  expect(await run(lines)).toMatchObject({ code: 0, outputs: { all: "0-1-2-3-4-5-6-7" } });
  expect(place.read("seen")).toBe("1\n2\n3\n4\n5\n6\n7\n");
});

it("a called workflow that has nothing to do skips its step, and fails nobody", async () => {
  place.write("sub.yaml", "inputs: { go: { type: boolean } }\nsteps:\n  x: { if: inputs.go, run: exit 1 }\n");
  const lines = [
    "steps:",
    "  a: { workflow: sub.yaml, with: { go: false } }",
    "  b: { needs: a, run: echo hi }",
    "  c: { run: echo hi }",
  ];
  expect(await run(lines)).toMatchObject({ code: 0, outcome: "success" });
  expect(ends().toSorted()).toEqual(["a skipped empty", "a/x skipped condition", "b skipped needs", "c success"]);
});

it("the instances of a matrix keep their outputs apart", async () => {
  const lines = [
    "steps:",
    "  a:",
    "    matrix: { os: [linux, macos], node: [22, 24] }",
    '    run: echo "name=$OS-$NODE" >> "$FLOW_OUTPUT"',
    '    env: { OS: "${{ matrix.os }}", NODE: "${{ matrix.node }}" }',
    "outputs: { names: '${{ steps.a.outputs.items.*.name }}' }",
  ];
  expect(await run(lines)).toMatchObject({ outputs: { names: ["linux-22", "linux-24", "macos-22", "macos-24"] } });
});

it("a command that does not read its standard input ends as it wants to", async () => {
  const lines = [
    "inputs: { text: { type: string } }",
    "steps:",
    "  a: { foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], run: exec <&-, stdin: '${{ inputs.text }}' }",
  ];
  place.write("inputs.json", JSON.stringify({ text: "x".repeat(900_000) }));
  expect(await run(lines, "--inputs", "inputs.json")).toMatchObject({ code: 0, outcome: "success" });
  expect(ends()).toHaveLength(11);
});

it("what looks like markup in an output is text on the terminal and in the log", async () => {
  const text = "[/red] [bold]x [[]] {chalk.red y} %s </b> [link=x]";
  place.write("text", text);
  const lines = ["steps:", "  a: { run: 'cat text; cat text >&2; exit 1' }"];
  const { code, stderr } = await run(lines);
  expect(code).toBe(1);
  expect(stderr).toContain(text);
  expect(endOf("a")).toMatchObject({ outputs: { stdout: text }, error: { message: `exited with 1: ${text}` } });
});

it("a failure keeps its kind through every wrapper, so that a configured retry happens", async () => {
  place.write("replies.yaml", "agents:\n  a: [{ error: 400 }, { error: 400 }, { text: Here. }]\n");
  place.write(
    "sub.yaml",
    "agents: { a: { prompt: hi, tools: [] } }\nmodel: scripted/replies.yaml\nsteps:\n  x: { agent: a }\noutputs: { text: '${{ steps.x.outputs.text }}' }\n",
  );
  const lines = [
    "steps:",
    "  outer:",
    "    retry: { max: 3, backoff: 1ms, on: [provider_error] }",
    "    steps:",
    "      inner: { foreach: [1], workflow: sub.yaml }",
    "    outputs: { text: '${{ steps.inner.outputs.items[0].text }}' }",
    "outputs: { text: '${{ steps.outer.outputs.text }}' }",
  ];
  expect(await run(lines)).toMatchObject({ code: 0, outputs: { text: "Here." } });
  const retries = place.events().filter(({ type }) => type === "step.retrying");
  expect(retries).toMatchObject([
    { step: "outer", error: { kind: "provider_error", step: "outer/inner[0]/x" } },
    { step: "outer", error: { kind: "provider_error" } },
  ]);
});

it("a second resume has lost nothing of what the first one, and the run before it, had done", async () => {
  const lines = [
    "steps:",
    "  a: { run: 'echo a >> count; echo one' }",
    "  b: { needs: a, run: 'echo b >> count; test -e first; echo two' }",
    "  c: { needs: b, run: 'echo c >> count; test -e second; echo three' }",
    "outputs: { all: '${{ steps.a.outputs.stdout }} ${{ steps.b.outputs.stdout }} ${{ steps.c.outputs.stdout }}' }",
  ];
  expect(await run(lines)).toMatchObject({ code: 1 });
  place.write("first", "");
  expect((await place.flow(["resume", "latest"])).code).toBe(1);
  place.write("second", "");
  const { code, stdout } = await place.flow(["resume", "latest", "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { outputs: { all: "one two three" } }]);
  expect(place.read("count").split("\n")).toEqual(["a", "b", "b", "c", "c", ""]);
});

it("a resume keeps nothing that was made of what runs again, though it had succeeded and nothing about it changed", async () => {
  const lines = [
    "steps:",
    "  draft: { run: 'echo draft >> count; cat source' }",
    "  polish: { run: 'echo polish >> count; echo \"<$TEXT>\"', env: { TEXT: '${{ steps.draft.outputs.stdout }}' } }",
    "  notes: { needs: polish, run: echo notes >> count }",
    "  ship: { needs: notes, run: test -e open }",
    "outputs: { text: '${{ steps.polish.outputs.stdout }}' }",
  ];
  place.write("source", "old");
  expect(await run(lines)).toMatchObject({ code: 1 });
  place.write("source", "new");
  place.write("open", "");
  const { code, stdout } = await place.flow(["resume", "latest", "--from", "draft", "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { outputs: { text: "<new>" } }]);
  expect(place.read("count").split("\n")).toEqual(["draft", "polish", "notes", "draft", "polish", "notes", ""]);
});
