import { describe, expect, test } from "vitest";
import { checkFiles, checkText, problemsOf, textAt } from "./checking.ts";

/** `expression` is `PATH` with `§` where the wrong word stands; each is tried right and misspelt. */
interface Case {
  readonly what: string;
  /** Lines of the workflow; `EXPRESSION` stands where the reference goes. */
  readonly text: string;
  readonly right: string;
  readonly wrong: string;
  readonly word: string;
  readonly suggestion: string;
}

const reader = '  z: { set: { v: "${{ EXPRESSION }}" } }\n';
const schema =
  "{ type: object, properties: { title: { type: string }, items: { type: array, items: { type: object, properties: { name: { type: string } } } } } }";

const cases: readonly Case[] = [
  {
    what: "inputs",
    text: `inputs: { base: { type: string } }\nsteps:\n${reader}`,
    right: "inputs.base",
    wrong: "inputs.bsae",
    word: "bsae",
    suggestion: "base",
  },
  {
    what: "fields of an input",
    text: `inputs: { o: ${schema} }\nsteps:\n${reader}`,
    right: "inputs.o.items[0].name",
    wrong: "inputs.o.items[0].nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "every item of an input",
    text: `inputs: { o: ${schema} }\nsteps:\n${reader}`,
    right: "inputs.o.items.*.name",
    wrong: "inputs.o.items.*.nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "a computed index",
    text: `inputs: { o: ${schema}, n: { type: integer } }\nsteps:\n${reader}`,
    right: "inputs.o.items[inputs.n].name",
    wrong: "inputs.o.items[inputs.n].nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "a name in brackets",
    text: `inputs: { base: { type: string } }\nsteps:\n${reader}`,
    right: "inputs['base']",
    wrong: "inputs['bsae']",
    word: "'bsae'",
    suggestion: "base",
  },
  {
    what: "a local reference of a schema",
    text: `inputs: { o: { $ref: "#/$defs/o", $defs: { o: ${schema} } } }\nsteps:\n${reader}`,
    right: "inputs.o.title",
    wrong: "inputs.o.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "variables",
    text: `vars: { one: { two: [1] } }\nsteps:\n${reader}`,
    right: "vars.one.two",
    wrong: "vars.one.tow",
    word: "tow",
    suggestion: "two",
  },
  {
    what: "a variable that is an input",
    text: `inputs: { o: ${schema} }\nvars: { copy: "\${{ inputs.o }}" }\nsteps:\n${reader}`,
    right: "vars.copy.title",
    wrong: "vars.copy.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "the environment",
    text: `env: { LANG: C }\nsteps:\n${reader}`,
    right: "env.LANG",
    wrong: "env.LNAG",
    word: "LNAG",
    suggestion: "LANG",
  },
  {
    what: "the run",
    text: `steps:\n${reader}`,
    right: "run.started",
    wrong: "run.strated",
    word: "strated",
    suggestion: "started",
  },
  {
    what: "an entry of `steps`",
    text: `steps:\n  a: { run: "true" }\n${reader}`,
    right: "steps.a.outcome",
    wrong: "steps.a.outcmoe",
    word: "outcmoe",
    suggestion: "outcome",
  },
  {
    what: "an error",
    text: `steps:\n  a: { run: "true" }\n${reader}`,
    right: "steps.a.error.kind",
    wrong: "steps.a.error.knid",
    word: "knid",
    suggestion: "kind",
  },
  {
    what: "an agent's default outputs",
    text: `steps:\n  a: { agent: { prompt: x } }\n${reader}`,
    right: "steps.a.outputs.text",
    wrong: "steps.a.outputs.txet",
    word: "txet",
    suggestion: "text",
  },
  {
    what: "an agent's output",
    text: `steps:\n  a: { agent: { prompt: x, output: ${schema} } }\n${reader}`,
    right: "steps.a.outputs.title",
    wrong: "steps.a.outputs.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "a step's own output before its agent's",
    text: `steps:\n  a: { agent: { prompt: x, output: { type: object, properties: { other: {} } } }, output: ${schema} }\n${reader}`,
    right: "steps.a.outputs.title",
    wrong: "steps.a.outputs.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "a reference in an agent's output",
    text: `steps:\n  a: { agent: { prompt: x }, output: { type: object, properties: { o: { $ref: "#/$defs/o" } }, $defs: { o: ${schema} } } }\n${reader}`,
    right: "steps.a.outputs.o.title",
    wrong: "steps.a.outputs.o.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "an output of a script that was declared",
    text: `steps:\n  a: { run: x, output: ${schema} }\n${reader}`,
    right: "steps.a.outputs.items[0].name",
    wrong: "steps.a.outputs.items[0].nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "an output of a tool",
    text: `steps:\n  a: { tool: LS, output: ${schema} }\n${reader}`,
    right: "steps.a.outputs.title",
    wrong: "steps.a.outputs.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "set values",
    text: `steps:\n  a: { set: { one: 1, two: { three: 3 } } }\n${reader}`,
    right: "steps.a.outputs.two.three",
    wrong: "steps.a.outputs.two.there",
    word: "there",
    suggestion: "three",
  },
  {
    what: "a set value that comes from an agent",
    text: `steps:\n  a: { agent: { prompt: x, output: ${schema} } }\n  b: { set: { all: "\${{ steps.a.outputs }}" } }\n${reader}`,
    right: "steps.b.outputs.all.title",
    wrong: "steps.b.outputs.all.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "an output mapping",
    text: `steps:\n  a: { run: x, outputs: { first: "\${{ result.stdout }}" } }\n${reader}`,
    right: "steps.a.outputs.first",
    wrong: "steps.a.outputs.frist",
    word: "frist",
    suggestion: "first",
  },
  {
    what: "an approval",
    text: `steps:\n  a: { approve: x, form: { type: object, properties: { channel: {} } } }\n${reader}`,
    right: "steps.a.outputs.channel",
    wrong: "steps.a.outputs.chanel",
    word: "chanel",
    suggestion: "channel",
  },
  {
    what: "who approved",
    text: `steps:\n  a: { approve: x }\n${reader}`,
    right: "steps.a.outputs.comment",
    wrong: "steps.a.outputs.coment",
    word: "coment",
    suggestion: "comment",
  },
  {
    what: "a group's outputs",
    text: `steps:\n  a: { steps: { b: { set: { one: 1 } } }, outputs: { first: "\${{ steps.b.outputs.one }}" } }\n${reader}`,
    right: "steps.a.outputs.first",
    wrong: "steps.a.outputs.frist",
    word: "frist",
    suggestion: "first",
  },
  {
    what: "a group in a group",
    text: `steps:\n  a: { steps: { b: { steps: { c: { set: { o: { p: 1, q: 2 } } } }, outputs: { o: "\${{ steps.c.outputs.o }}" } } }, outputs: { o: "\${{ steps.b.outputs.o }}" } }\n${reader}`,
    right: "steps.a.outputs.o.q",
    wrong: "steps.a.outputs.o.r",
    word: "r",
    suggestion: "p",
  },
  {
    what: "the outputs of a loop",
    text: `steps:\n  a: { set: { one: 1 }, foreach: [1] }\n${reader}`,
    right: "steps.a.outputs.items[0].one",
    wrong: "steps.a.outputs.items[0].noe",
    word: "noe",
    suggestion: "one",
  },
  {
    what: "what failed in a loop",
    text: `steps:\n  a: { set: { one: 1 }, foreach: [1] }\n${reader}`,
    right: "steps.a.outputs.failed[0].error.kind",
    wrong: "steps.a.outputs.failed[0].eror.kind",
    word: "eror",
    suggestion: "error",
  },
  {
    what: "a loop instead of its items",
    text: `steps:\n  a: { set: { itms: 1 }, foreach: [1] }\n${reader}`,
    right: "steps.a.outputs.items",
    wrong: "steps.a.outputs.itms",
    word: "itms",
    suggestion: "items",
  },
  {
    what: "an item of constants",
    text: 'steps:\n  a: { set: { v: "${{ EXPRESSION }}" }, foreach: [{ name: x, id: 1 }, { name: y }] }\n',
    right: "item.name",
    wrong: "item.nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "an item of a typed list",
    text: `inputs: { o: ${schema} }\nsteps:\n  a: { set: { v: "\${{ EXPRESSION }}" }, foreach: "\${{ inputs.o.items }}" }\n`,
    right: "item.name",
    wrong: "item.nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "an item inside a group",
    text: `inputs: { o: ${schema} }\nsteps:\n  g: { foreach: "\${{ inputs.o.items }}", steps: { a: { steps: { b: { set: { v: "\${{ EXPRESSION }}" } } } } } }\n`,
    right: "item.name",
    wrong: "item.nmae",
    word: "nmae",
    suggestion: "name",
  },
  {
    what: "an item of the loop outside, where the list of a loop inside is written",
    text: 'steps:\n  g: { foreach: [{ rows: [{ id: 1 }] }], steps: { a: { set: { v: "${{ item.id }}" }, foreach: "${{ EXPRESSION }}" } } }\n',
    right: "item.rows",
    wrong: "item.rosw",
    word: "rosw",
    suggestion: "rows",
  },
  {
    what: "a matrix",
    text: 'steps:\n  a: { set: { v: "${{ EXPRESSION }}" }, matrix: { os: [linux], node: [22], include: [{ extra: 1 }] } }\n',
    right: "matrix.extra",
    wrong: "matrix.noed",
    word: "noed",
    suggestion: "node",
  },
  {
    what: "a matrix with expressions",
    text: 'inputs: { l: { type: array } }\nsteps:\n  a: { set: { v: "${{ EXPRESSION }}" }, matrix: { system: "${{ inputs.l }}", node: [22] } }\n',
    right: "matrix.system",
    wrong: "matrix.sytsem",
    word: "sytsem",
    suggestion: "system",
  },
  {
    what: "a result",
    text: 'steps:\n  a: { run: x, outputs: { v: "${{ EXPRESSION }}" } }\n',
    right: "result.exit-code",
    wrong: "result.exit-cod",
    word: "exit-cod",
    suggestion: "exit-code",
  },
  {
    what: "an agent's result",
    text: `steps:\n  a: { agent: { prompt: x, output: ${schema} }, outputs: { v: "\${{ EXPRESSION }}" } }\n`,
    right: "result.output.title",
    wrong: "result.output.titel",
    word: "titel",
    suggestion: "title",
  },
  {
    what: "a result in `until`",
    text: "steps:\n  a: { set: { one: 1, two: 2 }, repeat: { max: 2, until: EXPRESSION == 1 } }\n",
    right: "result.two",
    wrong: "result.tow",
    word: "tow",
    suggestion: "two",
  },
  {
    what: "an inner step in a group's `until`",
    text: "steps:\n  a: { steps: { b: { set: { one: 1 } } }, repeat: { max: 2, until: EXPRESSION == 1 } }\n",
    right: "steps.b.outputs.one",
    wrong: "steps.b.outputs.noe",
    word: "noe",
    suggestion: "one",
  },
  {
    what: "the iteration before",
    text: 'steps:\n  a: { steps: { b: { set: { v: "${{ EXPRESSION }}" } } }, outputs: { first: 1, second: 2 }, repeat: { max: 2, until: iteration == 2 } }\n',
    right: "previous.second",
    wrong: "previous.secnod",
    word: "secnod",
    suggestion: "second",
  },
  {
    what: "the step that is undone",
    text: 'steps:\n  a: { set: { one: 1 } }\n  b: { run: x, foreach: [1], outputs: { url: "${{ result.stdout }}" }, undo: { run: x, env: { URL: "${{ EXPRESSION }}" } } }\n',
    right: "steps.b.outputs.url",
    wrong: "steps.b.outputs.ulr",
    word: "ulr",
    suggestion: "url",
  },
  {
    what: "an agent's own inputs",
    text: 'agents: { w: { inputs: { topic: {} }, prompt: "${{ EXPRESSION }}" } }\nsteps:\n  a: { agent: w, with: { topic: x } }\n',
    right: "inputs.topic",
    wrong: "inputs.tpoic",
    word: "tpoic",
    suggestion: "topic",
  },
  {
    what: "a secret",
    text: 'secrets: [TOKEN]\nsteps:\n  a: { run: x, env: { T: "${{ EXPRESSION }}" } }\n',
    right: "secrets.TOKEN",
    wrong: "secrets.TOKNE",
    word: "TOKNE",
    suggestion: "TOKEN",
  },
  {
    what: "an edge's condition",
    text: "inputs: { fast: { type: boolean } }\nsteps:\n  a: { run: x }\n  b: { run: x, needs: [{ step: a, if: EXPRESSION }] }\n",
    right: "inputs.fast",
    wrong: "inputs.fsat",
    word: "fsat",
    suggestion: "fast",
  },
  {
    what: "a workflow's outputs",
    text: 'steps:\n  a: { set: { one: 1 } }\noutputs: { v: "${{ EXPRESSION }}" }\n',
    right: "steps.a.outputs.one",
    wrong: "steps.a.outputs.noe",
    word: "noe",
    suggestion: "one",
  },
];

describe("a name is followed through", () => {
  test.each(cases)("$what", async ({ text, right, wrong, word, suggestion }) => {
    expect(problemsOf(await checkText(text.replace("EXPRESSION", right)))).toEqual([]);
    const { diagnostics, sources } = await checkText(text.replace("EXPRESSION", wrong));
    expect(diagnostics.map((it) => [it.code, textAt(sources.get("-") ?? "", it.at)])).toEqual([
      [word.includes("TOKNE") ? "FLOW8005" : "FLOW5010", word],
    ]);
    const [only] = diagnostics;
    const place = text.replace("EXPRESSION", wrong).split("\n")[(only?.at.line ?? 1) - 1];
    expect(place?.indexOf(wrong)).toBe((only?.at.column ?? 0) - 1 - wrong.lastIndexOf(word));
    if (word.length > 2) expect(only?.suggestion).toBe(`did you mean \`${suggestion}\`?`);
    else expect(only?.message).toContain(`\`${suggestion}\``);
  });

  test("sub-workflows, two deep", async () => {
    const files = (name: string): { [path: string]: string } => ({
      "main.yaml": `steps:\n  a: { workflow: ./middle.yaml }\n  z: { set: { v: "\${{ steps.a.outputs.${name} }}" } }\n`,
      "middle.yaml": 'steps:\n  b: { workflow: ./inner.yaml }\noutputs: { report: "${{ steps.b.outputs.report }}" }\n',
      "inner.yaml": `steps:\n  c: { agent: { prompt: x, output: ${schema} } }\noutputs: { report: "\${{ steps.c.outputs }}" }\n`,
    });
    expect(problemsOf(await checkFiles(files("report.items[0].name")))).toEqual([]);
    expect(problemsOf(await checkFiles(files("report.titel")))).toEqual(["FLOW5010 3:46 titel"]);
    expect(problemsOf(await checkFiles(files("reprot")))).toEqual(["FLOW5010 3:39 reprot"]);
  });
});

describe("nothing is claimed about", () => {
  test.each([
    ["an object without properties", "{ type: object }", "o.anything.at.all"],
    ["additional properties", "{ type: object, properties: { a: {} }, additionalProperties: true }", "o.anything"],
    ["pattern properties", "{ type: object, properties: { a: {} }, patternProperties: { '^x': {} } }", "o.xyz"],
    ["a schema without a type", "{}", "o.a.b"],
    [
      "what any branch of oneOf declares",
      "{ oneOf: [{ type: object, properties: { a: {} } }, { type: object, properties: { b: {} } }] }",
      "o.b",
    ],
    [
      "what any branch of anyOf declares",
      "{ anyOf: [{ type: object, properties: { a: {} } }, { type: object, properties: { b: {} } }] }",
      "o.a",
    ],
    [
      "what any part of allOf declares",
      "{ allOf: [{ type: object, properties: { a: {} } }, { properties: { b: {} } }] }",
      "o.b",
    ],
    ["a list without items", "{ type: array }", "o[3].x"],
  ])("%s", async (_, written, path) => {
    expect(
      problemsOf(await checkText(`inputs:\n  o: ${written}\nsteps:\n  a: { set: { v: "\${{ inputs.${path} }}" } }\n`)),
    ).toEqual([]);
  });

  test.each([
    ["oneOf", "{ oneOf: [{ type: object, properties: { first: {} } }, { type: object, properties: { second: {} } }] }"],
    ["anyOf", "{ anyOf: [{ type: object, properties: { first: {} } }, { type: object, properties: { second: {} } }] }"],
    ["allOf", "{ allOf: [{ type: object, properties: { first: {} } }, { properties: { second: {} } }] }"],
  ])("but a name that no branch of %s declares is wrong", async (_, written) => {
    const problems = problemsOf(
      await checkText(`inputs:\n  o: ${written}\nsteps:\n  a: { set: { v: "\${{ inputs.o.frist }}" } }\n`),
    );
    expect(problems).toEqual(["FLOW5010 4:32 frist"]);
  });

  test("the outputs that a script may write, but for a likely misspelling", async () => {
    const text = (name: string): string =>
      `steps:\n  a: { run: "true" }\n  b: { set: { v: "\${{ steps.a.outputs.${name} }}" } }\n`;
    expect(problemsOf(await checkText(text("version")))).toEqual([]);
    expect(problemsOf(await checkText(text("sdtout")))).toEqual(["FLOW5016 3:39 sdtout"]);
  });

  test("the outputs of a tool without `output`", async () => {
    expect(
      problemsOf(
        await checkText('steps:\n  a: { tool: LS }\n  b: { set: { v: "${{ steps.a.outputs.any.thing }}" } }\n'),
      ),
    ).toEqual([]);
  });
});

describe("a condition of known type", () => {
  const start =
    "inputs: { t: { type: string }, n: { type: integer }, b: { type: boolean }, l: { type: array, items: { type: string } }, o: { type: object }, any: {}, e: { enum: [a, b] } }\n";
  test.each([
    ["inputs.t", "string"],
    ["inputs.n", "number"],
    ["inputs.l", "array"],
    ["inputs.o", "object"],
    ["inputs.e", "string"],
    ["length(inputs.l)", "number"],
    ["trim(inputs.t)", "string"],
    ["steps.a.outputs.stdout", "string"],
    ["steps.a.outputs.exit-code", "number"],
    ["steps.s.outputs.text", "string"],
    ["inputs.t || inputs.t", "string"],
    ["format('{0}', inputs.t)", "string"],
  ])("`%s` is %s, not true or false", async (condition, type) => {
    const { diagnostics, sources } = await checkText(
      `${start}steps:\n  a: { run: x }\n  s: { set: { text: "x\${{ inputs.n }}" } }\n  b:\n    run: x\n    if: ${condition}\n`,
    );
    expect(diagnostics.map((it) => [it.code, textAt(sources.get("-") ?? "", it.at)])).toEqual([
      ["FLOW5006", condition],
    ]);
    expect(diagnostics[0]?.message).toContain(type);
  });

  test.each([
    "inputs.b",
    "inputs.any",
    "inputs.t == 'x'",
    "!inputs.t",
    "length(inputs.l) > 0",
    "contains(inputs.l, 'x')",
    "inputs.b && inputs.any",
    "default(inputs.any, false)",
    "fromJSON(inputs.t)",
  ])("`%s` may be true or false", async (condition) => {
    expect(
      problemsOf(
        await checkText(
          `${start}steps:\n  b:\n    run: x\n    if: ${condition.startsWith("!") ? `\${{ ${condition} }}` : condition}\n`,
        ),
      ),
    ).toEqual([]);
  });

  test("is asked of `until`, of edges and of items as well", async () => {
    const text = `${start}steps:\n  a: { run: x, repeat: { max: 2, until: result.stdout } }\n  b: { run: x, needs: [{ step: a, if: inputs.t }] }\n  g:\n    foreach: [{ name: x }]\n    steps: { c: { run: x, if: item.name } }\n`;
    expect(problemsOf(await checkText(text))).toEqual([
      "FLOW5006 3:41 result.stdout",
      "FLOW5006 4:39 inputs.t",
      "FLOW5006 7:31 item.name",
    ]);
  });
});

describe("`steps.x.outcome == 'failure'` on a needed step", () => {
  const text = (condition: string, more = ""): string =>
    `steps:\n  a: { run: x${more} }\n  b:\n    run: x\n    needs: a\n    if: \${{ ${condition} }}\n`;
  test.each([
    "steps.a.outcome == 'failure'",
    "'failure' == steps.a.outcome",
    "STEPS['A'].outcome=='Failure'",
    "(steps.a.outcome) == 'failure' && run.id != ''",
  ])("is never true: `%s`", async (condition) => {
    const problems = problemsOf(await checkText(text(condition)));
    expect(problems.map((it) => it.slice(0, 8))).toEqual(["FLOW5011"]);
  });
  test.each([
    ["of a step that may fail", text("steps.a.outcome == 'failure'", ", continue-on-error: true")],
    ["with a status function", text("always() && steps.a.outcome == 'failure'")],
    ["for another outcome", text("steps.a.outcome == 'success'")],
    ["by !=", text("steps.a.outcome != 'failure'")],
    ["of text that only looks like it", text("run.id != 'steps.a.outcome == ''failure'''")],
    ["of a step that is not needed", text("steps.a.outcome == 'failure'").replace("needs: a", "name: x")],
  ])("is fine %s", async (_, written) => {
    expect(problemsOf(await checkText(written))).toEqual([]);
  });
});
