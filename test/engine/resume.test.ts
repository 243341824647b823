import { afterEach, describe, expect, test } from "vitest";
import { pathsFrom } from "../../src/engine/from.ts";
import type { LogLine } from "../../src/model/event.ts";
import { plan } from "./plan-builder.ts";
import { decisions, Project } from "./resuming.ts";

const made: Project[] = [];
afterEach(() => {
  for (const project of made.splice(0)) project.remove();
});

function project(files: { readonly [file: string]: string }): Project {
  const one = new Project(files);
  made.push(one);
  return one;
}

/** The project as if flow had been killed right after the first event for which `last` holds. */
function killedAfter(whole: Project, last: (event: LogLine) => boolean): Project {
  const lines = whole.log.split("\n");
  const index = whole.events.findIndex(last);
  if (index === -1) throw new Error("there is no such event");
  const copy = whole.cutAt(Buffer.byteLength(`${lines.slice(0, index + 1).join("\n")}\n`));
  made.push(copy);
  return copy;
}

describe("what --from names", () => {
  const graph = plan(
    {
      steps: [
        { id: "a" },
        { id: "b", needs: ["a"] },
        {
          id: "g",
          needs: ["a"],
          repeat: { until: { source: "true", at: place() }, max: 3, onMax: "fail" },
          group: [{ id: "x" }, { id: "y", needs: ["x"] }, { id: "z" }],
        },
        { id: "each", foreach: { items: { type: "data", json: [] }, failFast: true, matrix: false }, needs: ["g"] },
        { id: "call", needs: ["~each"], calls: "other" },
        { id: "alone" },
      ],
    },
    { other: { steps: [{ id: "in" }, { id: "out", needs: ["in"] }] } },
  );
  const paths = [
    "a",
    "b",
    "g",
    "g#1",
    "g#1/x",
    "g#1/y",
    "g#1/z",
    "g#2/x",
    "each",
    "each[0]",
    "each[1]",
    "call",
    "call/in",
    "call/out",
    "alone",
  ];

  test.each([
    ["a", "a b g g#1 g#1/x g#1/y g#1/z g#2/x each each[0] each[1] call call/in call/out"],
    ["b", "b"],
    ["g#1/x", "g#1/x g#1/y g#2/x each each[0] each[1] call call/in call/out"],
    ["g#1/z", "g#1/z g#2/x each each[0] each[1] call call/in call/out"],
    ["g#2", "g#2/x each each[0] each[1] call call/in call/out"],
    ["each[0]", "each[0] call call/in call/out"],
    ["call/out", "call/out"],
  ])("%s: itself and everything after it", (from, expected) => {
    const matches = pathsFrom(graph, from);
    if (!matches.ok) throw new Error(matches.error);
    expect(paths.filter(matches.value).join(" ")).toBe(expected);
  });

  test.each([
    ["nowhere", "the workflow has no step `nowhere`; it has a, b, g, each, call, alone"],
    ["g/x", "`g` is a loop: name one of its iterations, as in `g#1/x`"],
    ["g#1/q", "`g#1` has no step `q`"],
    ["each/x", "`each` is a loop: name one of its items, as in `each[0]/x`"],
    ["call/in/x", "`call/in` has no steps inside"],
    ["a#1", "`a` has no iterations"],
    ["", "`` in `` is not a step"],
    ["a[9999999]", "is not a step"],
  ])("%s is refused with the reason", (from, expected) => {
    const matches = pathsFrom(graph, from);
    expect(!matches.ok && matches.error).toContain(expected);
  });
});

function place(): { file: string; line: number; column: number; endLine: number; endColumn: number } {
  return { file: "a", line: 1, column: 1, endLine: 1, endColumn: 1 };
}

describe("an execution that is in the log", () => {
  const foreach = (items: string): string => `
steps:
  each: { foreach: ${items}, fail-fast: false, run: 'echo "$FLOW_STEP" >> count; test "$I" != bad', env: { I: "\${{ item }}" } }
  end: { needs: [each], run: test -e open }
`;

  test("is an item by its index and its value", async () => {
    const one = project({ "w.yaml": foreach("[a, b, bad, d]") });
    await one.run("w.yaml");
    one.write("w.yaml", foreach("[a, c, good, d, e]"));
    one.write("open", "");
    expect((await one.resume()).outcome).toBe("success");
    expect(decisions(one.events).slice(0, 5)).toEqual([
      "each[0] reused",
      "each[1] again given",
      "each[2] again failed",
      "each[3] reused",
      "each[4] began",
    ]);
  });

  test("is reused only once: a group that is tried again within the resumed run starts afresh", async () => {
    const one = project({
      "w.yaml": `
steps:
  g:
    retry: { max: 1, backoff: 1ms }
    steps:
      in: { run: 'echo "$FLOW_STEP" >> count' }
      out: { needs: [in], run: test -e open }
`,
    });
    await one.run("w.yaml");
    expect(one.count).toEqual(["g/in", "g/in"]);
    await one.resume();
    expect(one.count).toEqual(["g/in", "g/in", "g/in"]);
    expect(decisions(one.events)[0]).toBe("g/in reused");
  });

  test("runs again when the group around it was undone, even if flow died in the middle of that", async () => {
    const one = project({
      "w.yaml": `
steps:
  g:
    undo: { run: echo undo >> count }
    steps: { in: { run: echo in >> count }, other: { run: echo other >> count, undo: { run: 'true' } } }
  out: { needs: [g], run: test -e open }
`,
    });
    await one.run("w.yaml");
    for (const copy of [
      killedAfter(one, ({ type }) => type === "step.undo.started"),
      killedAfter(one, ({ type }) => type === "run.finished"),
    ]) {
      copy.write("open", "");
      expect((await copy.resume()).outcome).toBe("success");
      expect(decisions(copy.events)).toContain("g/in again undone");
    }
  });

  test("runs its undo anew after a resume, whatever the undo before had done", async () => {
    const one = project({
      "w.yaml": `
steps:
  make: { run: echo make >> count, undo: { workflow: ./undo.yaml } }
  out: { needs: [make], run: test -e open }
`,
      "undo.yaml": "steps:\n  u: { run: echo undo >> count }\n",
    });
    await one.run("w.yaml");
    await one.resume();
    expect(one.count).toEqual(["make", "undo", "make", "undo"]);
  });

  test("that may never run again is lost when flow died while it ran, until --from names it", async () => {
    const whole = project({
      "w.yaml": "steps:\n  pay: { run: echo pay >> count, rerun: never }\n  end: { needs: [pay], run: 'true' }\n",
    });
    await whole.run("w.yaml");
    const one = killedAfter(whole, ({ type }) => type === "step.attempt.started");
    expect(await one.resume()).toMatchObject({
      outcome: "failure",
      exitCode: 1,
      message: expect.stringMatching(/^lost: /),
    });
    expect(await one.resume()).toMatchObject({ message: expect.stringMatching(/^lost: /) });
    expect(one.count).toEqual(["pay"]);
    expect((await one.resume({ from: "pay" })).outcome).toBe("success");
    expect(one.count).toEqual(["pay", "pay"]);
    expect(decisions(one.events)).toEqual(["pay again from", "end began"]);
  });

  test("is uncertain when it was running, and says so", async () => {
    const whole = project({ "w.yaml": "steps:\n  a: { run: echo a >> count }\n" });
    await whole.run("w.yaml");
    const one = killedAfter(whole, ({ type }) => type === "step.attempt.started");
    await one.resume();
    expect(decisions(one.events)).toEqual(["a again uncertain"]);
  });

  test("keeps what --from began when flow dies before it is through", async () => {
    const whole = project({
      "w.yaml": "steps:\n  a: { run: echo a >> count }\n  b: { needs: [a], run: echo b >> count }\n",
    });
    await whole.run("w.yaml");
    await whole.resume({ from: "a" });
    const resumed = whole.events.findIndex(({ type }) => type === "run.resumed");
    const one = killedAfter(whole, ({ seq, type }) => seq > resumed && type === "step.attempt.finished");
    await one.resume();
    expect(decisions(one.events)).toEqual(["a reused", "b again from"]);
  });

  test("has the same inputs when a secret in them was changed", async () => {
    const one = project({
      "w.yaml": `
secrets: [TOKEN]
steps:
  a: { run: echo a >> count, env: { T: "\${{ secrets.TOKEN }}" } }
  b: { needs: [a], run: test -e open }
`,
    });
    const env = (TOKEN: string): { readonly [name: string]: string } => ({ PATH: process.env["PATH"] ?? "", TOKEN });
    await one.run("w.yaml", { env: env("first-secret-value") });
    await one.resume({ env: env("second-secret-value") });
    expect(decisions(one.events)).toEqual(["a reused", "b again failed"]);
    expect(one.log).not.toContain("secret-value");
  });

  test("brings a large value back from beside the log", async () => {
    const one = project({
      "w.yaml": `
steps:
  big: { run: 'printf "%0200000d" 7' }
  b: { needs: [big], run: test -e open }
outputs: { size: "\${{ length(steps.big.outputs.stdout) }}" }
`,
    });
    await one.run("w.yaml");
    one.write("open", "");
    expect(await one.resume()).toMatchObject({ outputs: { size: 200_000 } });
    expect(decisions(one.events)).toEqual(["big reused", "b again failed"]);
  });
});

describe("an edit between the crash and the resume is noticed:", () => {
  const before = `
name: w
description: d
inputs: { who: { type: string, default: x } }
vars: { v: 1 }
env: { E: "1" }
limits: { parallel: 2 }
steps:
  a:
    name: n
    description: d
    run: echo "$X"
    env: { X: "1" }
    shell: bash
    timeout: 10s
    retry: 1
    continue-on-error: true
    undo: { run: "true" }
    outputs: { o: "\${{ result.stdout }}" }
  b: { agent: { instructions: Say it., temperature: 0.1, tools: [] }, prompt: Go., needs: [a], model: scripted/r.yaml }
  c: { if: "inputs.who == 'x'", foreach: [1, 2], set: { s: "\${{ item }}" } }
  d: { steps: { in: { set: { t: 1 } } }, outputs: { t: "\${{ steps.in.outputs.t }}" }, repeat: { until: "iteration >= 1", max: 2 } }
  end: { needs: [b], run: test -e open }
outputs: { t: "\${{ steps.d.outputs.t }}" }
expect: { steps: [a] }
`;
  test.each([
    ["name: w\n", "name: w2\n", "workflow: name"],
    ["description: d\ninputs", "description: e\ninputs", "workflow: description"],
    ["default: x", "default: y", "workflow: inputs"],
    ["v: 1", "v: 2", "workflow: vars"],
    ['E: "1"', 'E: "2"', "env"],
    ["parallel: 2", "parallel: 3", "workflow: limits"],
    ["name: n", "name: m", "step a: name"],
    ["description: d\n    run", "description: e\n    run", "step a: description"],
    ['echo "$X"', 'echo "-$X"', "step a: body"],
    ['X: "1"', 'X: "2"', "step a: inputs"],
    ["shell: bash", "shell: sh", "step a: body"],
    ["timeout: 10s", "timeout: 11s", "step a: timeout"],
    ["retry: 1", "retry: 2", "step a: retry"],
    ["continue-on-error: true", "continue-on-error: false", "step a: continueOnError"],
    ['undo: { run: "true" }', 'undo: { run: ":" }', "step a: undo"],
    ['o: "${{ result.stdout }}"', 'o: "${{ result.stderr }}"', "step a: outputs"],
    ["Say it.", "Say that.", "agent w.yaml#steps.b.agent: instructions"],
    ["temperature: 0.1", "temperature: 0.2", "agent w.yaml#steps.b.agent: temperature"],
    ["prompt: Go.", "prompt: Stop.", "step b: inputs"],
    ["needs: [a], model", "model", "edges"],
    ["== 'x'", "!= 'y'", "step c: if"],
    ["foreach: [1, 2]", "foreach: [1, 3]", "step c: foreach"],
    ["{ t: 1 }", "{ t: 2 }", "step d/in: inputs"],
    ["max: 2", "max: 3", "step d: repeat"],
    ["  end:", "  more: { set: { z: 1 } }\n  end:", "step more added"],
    [
      'outputs: { t: "${{ steps.d.outputs.t }}" }\nexpect',
      'outputs: { u: "${{ steps.d.outputs.t }}" }\nexpect',
      "outputs",
    ],
    ["expect: { steps: [a] }", "expect: { steps: [b] }", "workflow: expect"],
  ])("%s", async (was, is, change) => {
    const one = project({ "w.yaml": before, "r.yaml": "steps: { b: [{ text: Done. }] }\n" });
    expect((await one.run("w.yaml")).message).toBe("exit: exited with 1");
    expect(before).toContain(was);
    one.write(
      "w.yaml",
      before.replace(was, () => is),
    );
    await one.resume();
    const resumed = one.events.find((event) => event.type === "run.resumed");
    expect(resumed?.type === "run.resumed" && resumed.changes?.some((line) => line.includes(change))).toBe(true);
    expect(resumed).toHaveProperty("plan");
  });

  test("and a comment or another order of keys is none", async () => {
    const one = project({ "w.yaml": before, "r.yaml": "steps: { b: [{ text: Done. }] }\n" });
    await one.run("w.yaml");
    one.write(
      "w.yaml",
      `# a comment\n${before.replace('    env: { X: "1" }\n    shell: bash\n', '    shell: bash\n\n    env: { X: "1" }\n')}`,
    );
    await one.resume();
    expect(one.events.find(({ type }) => type === "run.resumed")).not.toHaveProperty("changes");
  });
});

describe("an agent that was cut off", () => {
  const files = {
    "w.yaml": `
model: scripted/r.yaml
steps:
  ask: { agent: { instructions: Look., tools: [Glob] }, prompt: Go., outputs: { text: "\${{ result.text }}", turns: "\${{ result.turns }}", paid: "\${{ result.usage.output }}" } }
outputs: { text: "\${{ steps.ask.outputs.text }}", turns: "\${{ steps.ask.outputs.turns }}", paid: "\${{ steps.ask.outputs.paid }}" }
`,
    "r.yaml": `
steps:
  ask:
    - { calls: [{ name: Glob, args: { pattern: "*.yaml" } }, { name: Glob, args: { pattern: "r.*" } }], usage: { input: 1, output: 10 } }
    - { when: "contains(toJSON(results), 'unknown: the run was interrupted')", text: I do not know., usage: { input: 1, output: 100 } }
    - { text: Two files., usage: { input: 1, output: 100 } }
`,
  };

  test.each([
    ["behind a reply", (event: LogLine) => event.type === "message" && event.turn === 1, "Two files."],
    ["behind the results", (event: LogLine) => event.type === "turn.finished", "Two files."],
    ["behind its answer", (event: LogLine) => event.type === "message" && event.turn === 2, "Two files."],
    ["behind its end", (event: LogLine) => event.type === "agent.finished", "Two files."],
    ["while a tool ran", (event: LogLine) => event.type === "tool.started", "I do not know."],
  ])("%s goes on there: no reply is paid for twice, no call made twice", async (_where, last, text) => {
    const whole = project(files);
    const first = await whole.run("w.yaml");
    expect(first.outputs).toEqual({ text: "Two files.", turns: 2, paid: 110 });
    const one = killedAfter(whole, last);
    const cut = one.events.length;
    expect((await one.resume()).outputs).toEqual({ text, turns: 2, paid: 110 });
    const events = one.events;
    const asked = events.filter((event) => event.type === "message" && event.usage !== undefined);
    expect(asked).toHaveLength(2);
    const calls = events.flatMap((event) => (event.type === "tool.started" ? [event.id] : []));
    expect(new Set(calls).size).toBe(calls.length);
    expect(events.slice(cut).find(({ type }) => type === "agent.started")).toMatchObject({
      agent: "ask@2",
      continues: "ask@1",
    });
    expect(events.at(-1)).toMatchObject({ type: "run.finished", usage: { output: 110 } });
  });

  test("starts afresh when its prompt was changed", async () => {
    const whole = project(files);
    await whole.run("w.yaml");
    const one = killedAfter(whole, (event) => event.type === "turn.finished");
    one.write("w.yaml", files["w.yaml"].replace("Go.", "Go on."));
    await one.resume();
    const started = one.events.filter((event) => event.type === "agent.started");
    expect(started).toHaveLength(2);
    expect(started[1]).not.toHaveProperty("continues");
  });
});
