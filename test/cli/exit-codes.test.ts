import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

/** What is not shown elsewhere: 2 by commands and inputs, 3 by models and log, 70 by commands, 130 and 143 by signals. */
const endings: readonly {
  readonly what: string;
  readonly code: number;
  readonly says: string;
  readonly workflow: string;
}[] = [
  { what: "success", code: 0, says: "ok it", workflow: "steps: { a: { run: echo } }" },
  { what: "a failed step", code: 1, says: "failed it", workflow: "steps: { a: { run: exit 9 } }" },
  {
    what: "a failed step that others survive",
    code: 1,
    says: "1 ok, 1 failed",
    workflow: "steps: { a: { run: exit 9 }, b: { run: echo } }",
  },
  {
    what: "a failure that may be",
    code: 0,
    says: "ok it",
    workflow: "steps: { a: { run: exit 9, continue-on-error: true } }",
  },
  {
    what: "a run in which nothing ran",
    code: 1,
    says: "empty (no step ran) it",
    workflow: "inputs: { go: { type: boolean, default: false } }\nsteps: { a: { if: inputs.go, run: echo } }",
  },
  {
    what: "a condition that cannot be evaluated",
    code: 1,
    says: "expression: ",
    workflow: `steps:
  a: { run: 'if false; then echo "x=1" >> "$FLOW_OUTPUT"; fi' }
  b: { if: "steps.a.outputs.x == '1'", run: echo }`,
  },
  {
    what: "an expectation that is not met",
    code: 1,
    says: "expect: ",
    workflow:
      "inputs: { go: { type: boolean, default: false } }\nsteps: { a: { if: inputs.go, run: echo }, b: { run: echo } }\nexpect: { steps: [a] }",
  },
  {
    what: "an output that has no value",
    code: 1,
    says: "output: the output `x` has no value",
    workflow: "steps: { a: { run: 'echo \"y=1\" >> \"$FLOW_OUTPUT\"' } }\noutputs: { x: '${{ steps.a.outputs.z }}' }",
  },
  {
    what: "a program that is not there",
    code: 3,
    says: "unavailable: ",
    workflow: "steps: { a: { run: [no-such-program-here] } }",
  },
  {
    what: "an agent that reaches its limit of turns",
    code: 4,
    says: "max_turns",
    workflow:
      "model: scripted/replies.yaml\nagents: { looping: { instructions: You loop., tools: [LS], limits: { turns: 2 } } }\nsteps: { a: { agent: looping, prompt: go } }",
  },
  {
    what: "an agent whose answer does not fit its schema",
    code: 1,
    says: "invalid_output",
    workflow:
      "model: scripted/replies.yaml\nagents: { wrong: { instructions: You., tools: [], output: { type: object, required: [n], properties: { n: { type: integer } } } } }\nsteps: { a: { agent: wrong, prompt: go } }",
  },
];

const replies = `
agents:
  looping:
    - calls: [{ name: LS, args: { path: . } }]
    - calls: [{ name: LS, args: { path: . } }]
    - calls: [{ name: LS, args: { path: . } }]
  wrong:
    - calls: [{ name: finish, args: { n: many } }]
    - calls: [{ name: finish, args: { n: more } }]
    - calls: [{ name: finish, args: { n: most } }]
    - calls: [{ name: finish, args: { n: all } }]
`;

let place: Place;
beforeAll(() => {
  place = new Place({ "replies.yaml": replies });
});
afterAll(() => place.remove());

describe("the exit code", () => {
  it.each(endings)("of $what is $code", async ({ code, says, workflow }) => {
    place.write("it.yaml", `name: it\n${workflow}\n`);
    const ended = await place.flow(["run", "it.yaml"]);
    expect(ended.stderr).toContain(says);
    expect(ended.code).toBe(code);
    expect(place.events().at(-1)).toMatchObject({ type: "run.finished", exitCode: code });
    const json = await place.flow(["run", "it.yaml", "--json", "-q"]);
    expect(json.code).toBe(code);
    expect(JSON.parse(json.stdout)).toMatchObject({ schemaVersion: 1, exitCode: code });
  });
});

describe("--json", () => {
  it("names every failed step by its path, and what the run cost", async () => {
    const steps =
      "steps:\n  a: { run: exit 9 }\n  b: { needs: a, if: always(), steps: { c: { run: exit 8 } } }\n  d: { agent: one }\n";
    const model = "model: scripted/replies.yaml\nagents: { one: { prompt: hi, tools: [] } }\n";
    place.write("replies.yaml", "agents:\n  one: [{ text: done, usage: { input: 5, output: 2 } }]\n");
    place.write("it.yaml", `name: it\n${model}${steps}`);
    const { stdout } = await place.flow(["run", "it.yaml", "--json", "-q"]);
    const said = JSON.parse(stdout);
    expect(said.failures).toMatchObject([
      { kind: "exit", step: "a", message: "exited with 9" },
      { kind: "exit", step: "b/c", message: "exited with 8" },
    ]);
    expect(said.error).toEqual(said.failures[0]);
    expect(said).toMatchObject({ usage: { input: 5, output: 2, cost: 0 }, duration: expect.any(Number) });
  });
});
