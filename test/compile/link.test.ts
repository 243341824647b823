import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cyclesOf, orderOf } from "../../src/compile/graph.ts";
import type { Edge, Scope } from "../../src/model/plan.ts";
import { checkText, planOf, problemsOf, rootOf, stepOf } from "./checking.ts";

const nowhere = { file: "-", line: 1, column: 1, endLine: 1, endColumn: 1 };

/** Edges as `a -> b`, soft ones `a ~> b`, with their condition behind. */
function edgesOf(scope: Scope): string[] {
  const id = (index: number): string => scope.steps[index]?.id ?? "?";
  return scope.edges
    .map(
      (edge) => `${id(edge.from)} ${edge.hard ? "->" : "~>"} ${id(edge.to)}${edge.if ? ` if ${edge.if.source}` : ""}`,
    )
    .toSorted();
}

const a = 'a: { run: "true" }';

describe("an edge comes from", () => {
  test.each([
    ["needs", 'b: { run: "true", needs: a }', ["a -> b"]],
    ["needs in another case", 'b: { run: "true", needs: A }', ["a -> b"]],
    ["needs with a condition", 'b: { run: "true", needs: [{ step: a, if: inputs.x }] }', ["a -> b if inputs.x"]],
    ["outputs", 'b: { set: { v: "${{ steps.a.outputs.stdout }}" } }', ["a -> b"]],
    ["outputs in another case", 'b: { set: { v: "${{ STEPS.A.Outputs.stdout }}" } }', ["a -> b"]],
    ["outputs in brackets", "b: { set: { v: \"${{ steps['a']['outputs'].stdout }}\" } }", ["a -> b"]],
    ["outputs in a text", 'b: { set: { v: "x ${{ steps.a.outputs.stdout }} y" } }', ["a -> b"]],
    ["the whole entry of a step", 'b: { set: { v: "${{ toJSON(steps.a) }}" } }', ["a -> b"]],
    ["everything of a step", 'b: { set: { v: "${{ toJSON(steps.a.*) }}" } }', ["a -> b"]],
    ["the outcome", 'b: { set: { v: "${{ steps.a.outcome }}" } }', ["a ~> b"]],
    ["the conclusion", 'b: { set: { v: "${{ steps.a.conclusion }}" } }', ["a ~> b"]],
    ["the error", 'b: { set: { v: "${{ steps.a.error.kind }}" } }', ["a ~> b"]],
    ["the reason of a skip", 'b: { set: { v: "${{ steps.a.skipReason }}" } }', ["a ~> b"]],
    ["`default`", "b: { set: { v: \"${{ default(steps.a.outputs.stdout, '') }}\" } }", ["a ~> b"]],
    ["deep inside of `default`", "b: { set: { v: \"${{ default(trim(steps.a.outputs.stdout), '') }}\" } }", ["a ~> b"]],
    ["`failure`", "b: { run: 'true', if: failure('a') }", ["a ~> b"]],
    ["`failure` in another case", "b: { run: 'true', if: Failure('A') }", ["a ~> b"]],
    ["a condition", "b: { run: 'true', if: steps.a.outputs.stdout == 'x' }", ["a -> b"]],
    [
      "the condition of another edge",
      "c: { run: 'true' }\n  b: { run: 'true', needs: [{ step: c, if: steps.a.outputs.stdout == 'x' }] }",
      ["a -> b", "c -> b if steps.a.outputs.stdout == 'x'"],
    ],
    ["env", 'b: { run: "true", env: { X: "${{ steps.a.outputs.stdout }}" } }', ["a -> b"]],
    ["a prompt", 'b: { agent: { instructions: x }, prompt: "${{ steps.a.outputs.stdout }}" }', ["a -> b"]],
    [
      "with",
      'b: { agent: { inputs: { q: {} }, prompt: x }, with: { q: "${{ steps.a.outputs.stdout }}" } }',
      ["a -> b"],
    ],
    ["foreach", 'b: { run: "true", foreach: "${{ lines(steps.a.outputs.stdout) }}" }', ["a -> b"]],
    ["cache", 'b: { run: "true", cache: { key: "${{ steps.a.outputs.stdout }}" } }', ["a -> b"]],
    ["until", "b: { run: 'true', repeat: { until: steps.a.outputs.stdout == 'x', max: 2 } }", ["a -> b"]],
    ["an output mapping", 'b: { run: "true", outputs: { v: "${{ steps.a.outputs.stdout }}" } }', ["a -> b"]],
    ["a question", 'b: { approve: "${{ steps.a.outputs.stdout }}?" }', ["a -> b"]],
    [
      "not from undo, which runs after everything",
      'b: { run: "true", undo: { run: "true", env: { X: "${{ steps.a.outputs.stdout }}" } } }',
      [],
    ],
    ["a step inside a group", 'b: { steps: { c: { set: { v: "${{ steps.a.outputs.stdout }}" } } } }', ["a -> b"]],
    [
      "a step two groups inside",
      'b: { steps: { c: { steps: { d: { set: { v: "${{ steps.a.outcome }}" } } } } } }',
      ["a ~> b"],
    ],
    [
      "a group's outputs",
      'b: { steps: { c: { set: { x: 1 } } }, outputs: { v: "${{ steps.a.outputs.stdout }}" } }',
      ["a -> b"],
    ],
    [
      "a group's until",
      "b: { steps: { c: { set: { x: 1 } } }, repeat: { until: steps.a.outputs.stdout == 'x', max: 2 } }",
      ["a -> b"],
    ],
    [
      "a group's own condition",
      "b: { steps: { c: { set: { x: 1 } } }, if: steps.a.outputs.stdout == 'x' }",
      ["a -> b"],
    ],
  ])("%s", async (_, lines, edges) => {
    const plan = await planOf(`inputs: { x: { type: boolean, default: true } }\nsteps:\n  ${a}\n  ${lines}\n`);
    expect(edgesOf(rootOf(plan))).toEqual(edges);
  });

  test("top-level `edges`, whatever the case of the ids", async () => {
    const plan = await planOf(
      `steps:\n  ${a}\n  b: { run: "true" }\n  c: { run: "true" }\nedges:\n  - { from: a, to: b }\n  - { from: A, to: C, if: steps.b.outcome == 'success' }\n`,
    );
    expect(edgesOf(rootOf(plan))).toEqual(["a -> b", "a -> c if steps.b.outcome == 'success'", "b ~> c"]);
  });

  test("`*`: every other step that has no `*` itself", async () => {
    const plan = await planOf(
      `steps:\n  ${a}\n  b: { run: "true", needs: "*" }\n  c: { run: "true" }\n  d: { run: "true", needs: ["*"], if: always() }\n`,
    );
    expect(edgesOf(rootOf(plan))).toEqual(["a -> b", "a -> d", "c -> b", "c -> d"]);
  });

  test("references of inner steps to each other stay inside, and an inner id hides an outer one", async () => {
    const plan = await planOf(
      `steps:\n  ${a}\n  g:\n    steps:\n      a: { run: "true" }\n      b: { set: { v: "\${{ steps.a.outputs.stdout }}" } }\n`,
    );
    expect(edgesOf(rootOf(plan))).toEqual([]);
    const { scope } = stepOf(plan, "g");
    expect(scope && "inline" in scope && edgesOf(scope.inline)).toEqual(["a -> b"]);
  });
});

describe("two reasons for one edge make one edge:", () => {
  test.each([
    ["two references", 'b: { set: { v: "${{ steps.a.outputs.stdout }}${{ steps.a.outputs.stderr }}" } }', ["a -> b"]],
    ["a soft and a hard one", 'b: { set: { v: "${{ steps.a.outcome }}${{ steps.a.outputs.stderr }}" } }', ["a -> b"]],
    ["a hard and a soft one", 'b: { set: { v: "${{ steps.a.outputs.stderr }}${{ steps.a.outcome }}" } }', ["a -> b"]],
    [
      "a written one stays as written",
      'b: { set: { v: "${{ steps.a.outputs.stdout }}" }, needs: [{ step: a, if: inputs.x }] }',
      ["a -> b if inputs.x"],
    ],
    ["a written one is hard", 'b: { set: { v: "${{ steps.a.outcome }}" }, needs: a }', ["a -> b"]],
    ["`*` and a named one", "b: { run: 'true', needs: [{ step: a, if: inputs.x }, \"*\"] }", ["a -> b if inputs.x"]],
  ])("%s", async (_, lines, edges) => {
    const plan = await planOf(`inputs: { x: { type: boolean, default: true } }\nsteps:\n  ${a}\n  ${lines}\n`);
    expect(edgesOf(rootOf(plan))).toEqual(edges);
  });

  test("but two written ones are told apart", async () => {
    const twice = await checkText(`steps:\n  ${a}\n  b: { run: "true", needs: [a, a] }\n`);
    expect(problemsOf(twice)).toEqual(["FLOW4003 3:32 a"]);
    const conditions = await checkText(
      `inputs: { x: { type: boolean } }\nsteps:\n  ${a}\n  b: { run: "true", needs: [{ step: a, if: inputs.x }, a] }\n`,
    );
    expect(problemsOf(conditions)).toEqual(["FLOW4002 4:56 a"]);
  });
});

describe("a name that means nothing is reported at its place:", () => {
  test.each([
    ["needs", 'b: { run: "true", needs: [a, aa] }', ["FLOW3004 3:32 aa"]],
    [
      "an edge's ends",
      'b: { run: "true" }\nedges: [{ from: x, to: b }, { from: a, to: y }]',
      ["FLOW3004 4:17 x", "FLOW3004 4:44 y"],
    ],
    ["a sibling of the group", 'g: { steps: { c: { run: "true", needs: a } } }', ["FLOW3004 3:42 a"]],
    ["a reference", 'b: { set: { v: "${{ steps.x.outputs }}" } }', ["FLOW5008 3:29 x"]],
    ["failure()", "b: { run: 'true', if: failure('x') }", ["FLOW5008 3:34 x"]],
    ["an undo", 'b: { run: "true", undo: { run: "true", env: { X: "${{ steps.x.outputs }}" } } }', ["FLOW5008 3:63 x"]],
    ["the workflow's outputs", 'outputs: { v: "${{ steps.x.outputs }}" }', ["FLOW5008 3:26 x"]],
    [
      "a step inside a group",
      'g: { steps: { c: { run: "true" } } }\n  b: { set: { v: "${{ steps.c.outcome }}" } }',
      ["FLOW5008 4:29 c"],
    ],
    ["itself", 'b: { set: { v: "${{ steps.b.outputs.v }}" } }', ["FLOW5015 3:29 b"]],
    ["a computed id", 'b: { set: { v: "${{ steps[run.id].outputs }}" } }', ["FLOW5009 3:23 steps[run.id].outputs"]],
    ["a computed failure()", "b: { run: 'true', if: failure(run.id) }", ["FLOW5009 3:33 run.id"]],
  ])("%s", async (_, lines, problems) => {
    const indented = lines.startsWith("outputs") ? lines : `  ${lines}`;
    const text = `steps:\n  ${a}\n${indented}\n`;
    expect(problemsOf(await checkText(text))).toEqual(problems);
  });
});

describe("a cycle", () => {
  test.each([
    ["of a step with itself", 'a: { run: "true", needs: a }', ["4:28 a"], []],
    ["of two by needs", 'a: { run: "true", needs: b }\n  b: { run: "true", needs: a }', ["4:28 b"], ["5:28 a"]],
    [
      "of references",
      'a: { set: { v: "${{ steps.b.outcome }}" } }\n  b: { set: { v: "${{ steps.a.outputs.v }}" } }',
      ["4:29 b"],
      ["5:29 a"],
    ],
    [
      "through a group",
      'a: { run: "true", needs: g }\n  g: { steps: { c: { set: { v: "${{ steps.a.outputs.stdout }}" } } } }',
      ["4:28 g"],
      ["5:43 a"],
    ],
  ])("%s names every place on its way", async (_, lines, places, related) => {
    const { diagnostics, sources } = await checkText(`# two\n# lines\nsteps:\n  ${lines}\n`);
    const found = diagnostics.filter((it) => it.code === "FLOW4001");
    const at = (span: typeof nowhere): string =>
      `${span.line}:${span.column} ${(sources.get("-") ?? "").split("\n")[span.line - 1]?.slice(span.column - 1, span.endColumn - 1)}`;
    expect(found.map((it) => at(it.at))).toEqual(places);
    expect(found.flatMap((it) => (it.related ?? []).map((one) => at(one.at)))).toEqual(related);
  });

  test("in each of two groups is reported once each", async () => {
    const group = (id: string): string =>
      `${id}: { steps: { x: { run: "true", needs: y }, y: { run: "true", needs: x } } }`;
    const { diagnostics } = await checkText(`steps:\n  ${group("g")}\n  ${group("h")}\n`);
    expect(diagnostics.map((it) => `${it.code} ${it.at.line}`)).toEqual(["FLOW4001 2", "FLOW4001 3"]);
  });
});

describe("a long graph is no deep recursion:", () => {
  test.each([
    ["forwards", (index: number) => index - 1],
    ["backwards", (index: number) => index + 1],
  ])(
    "10,000 steps that refer to each other, written %s",
    async (_, other) => {
      const lines = Array.from({ length: 10_000 }, (_unused, index) => {
        const to = other(index);
        return `  s${index}: { set: { v: ${to < 0 || to >= 10_000 ? "1" : `"\${{ steps.s${to}.outputs.v }}"`} } }`;
      });
      const plan = await planOf(`steps:\n${lines.join("\n")}\n`);
      expect(rootOf(plan).edges).toHaveLength(9_999);
    },
    60_000,
  );

  test("10,000 steps in a circle are one cycle", async () => {
    const lines = Array.from(
      { length: 10_000 },
      (_, index) => `  s${index}: { set: { v: "\${{ steps.s${(index + 1) % 10_000}.outputs.v }}" } }`,
    );
    const { diagnostics } = await checkText(`steps:\n${lines.join("\n")}\n`);
    expect(diagnostics.map((it) => it.code)).toEqual(["FLOW4001"]);
  }, 60_000);

  test("100,000 edges", async () => {
    const lines = Array.from(
      { length: 448 },
      (_, index) =>
        `  s${index}: { set: { v: 1 }, needs: [${Array.from({ length: index }, (_unused, other) => `s${other}`).join(",")}] }`,
    );
    const plan = await planOf(`steps:\n${lines.join("\n")}\n`);
    expect(rootOf(plan).edges).toHaveLength(100_128);
  }, 60_000);
});

/** Kahn's algorithm in its plainest form: whether everything can be ordered. */
function canBeOrdered(steps: number, edges: readonly Edge[]): boolean {
  const left = new Set(Array.from({ length: steps }, (_, index) => index));
  for (let before = -1; left.size !== before;) {
    before = left.size;
    for (const step of left) if (!edges.some((edge) => edge.to === step && left.has(edge.from))) left.delete(step);
  }
  return left.size === 0;
}

test("cycles are found exactly where steps cannot be ordered, and each is a closed walk", () => {
  const graphs = fc.integer({ min: 1, max: 12 }).chain((steps) => {
    const step = fc.integer({ min: 0, max: steps - 1 });
    const edge = fc
      .record({ from: step, to: step })
      .map((it): Edge => ({ ...it, hard: true, origin: "written", at: nowhere }));
    return fc.record({ steps: fc.constant(steps), edges: fc.array(edge, { maxLength: 25 }) });
  });
  fc.assert(
    fc.property(graphs, ({ steps, edges }) => {
      const cycles = cyclesOf(steps, edges);
      expect(cycles.length === 0).toBe(canBeOrdered(steps, edges));
      for (const cycle of cycles) {
        cycle.forEach((edge, index) => {
          expect(edges).toContain(edge);
          expect(edge.from).toBe(cycle[(index + 1) % cycle.length]?.to);
        });
        expect(new Set(cycle.map((edge) => edge.to)).size).toBe(cycle.length);
      }
      const order = orderOf(steps, edges);
      const place = new Map(order.map((step, index) => [step, index]));
      expect(order.length === steps).toBe(cycles.length === 0);
      for (const { from, to } of edges) if (place.has(to)) expect(place.get(from)).toBeLessThan(place.get(to) ?? -1);
    }),
    { numRuns: 2_000 },
  );
});
