import { afterEach, describe, expect, test } from "vitest";
import { Folder } from "./running.ts";

const folders: Folder[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

function folderWith(files: Readonly<Record<string, string>>): Folder {
  const folder = new Folder(files);
  folders.push(folder);
  return folder;
}

type Files = Readonly<Record<string, string>>;

interface Change {
  readonly what: string;
  /** Of the step \`a\`, as it is written; or whole files. */
  readonly before: string | Files;
  readonly after: string | Files;
  /** What the miss names. None: it is found all the same. */
  readonly named?: readonly string[];
  /** The folder flow is started in the second time. */
  readonly in?: string;
}

const head = `
inputs: { x: { type: string, default: one }, n: { type: array, default: [1, 2] } }
secrets: [TOKEN, OTHER]
`;
const step = (body: string): Files => ({ "main.yaml": `${head}steps:\n  a:\n    cache: true\n    ${body}\n` });
const filesOf = (written: string | Files): Files => (typeof written === "string" ? step(written) : written);
const main = (text: string): Files => ({ "main.yaml": `${head}${text}` });

const talk = (more: string, replies = "hello", at = "r.yaml"): Files => ({
  "main.yaml": `${head}model: scripted/${at}\nsteps:\n  a: { cache: true, agent: { name: x, instructions: You., tools: [Read] }, prompt: hi${more} }\n`,
  "r.yaml": `agents: { x: [{ text: ${replies} }, { text: again }] }\n`,
  "s.yaml": `agents: { x: [{ text: ${replies} }] }\n`,
});

const group = (inner: string, more = ""): Files =>
  main(`steps:\n  a:\n    cache: true\n    ${more}\n    steps:\n      b: { ${inner} }\n`);

const sub = (text: string, given = "x: 1"): Files => ({
  ...main(`steps:\n  a: { cache: true, workflow: sub.yaml, with: { ${given} } }\n`),
  "sub.yaml": `inputs: { x: { type: number } }\n${text}`,
});

const changes: readonly Change[] = [
  { what: "the script", before: "run: echo 1", after: "run: echo 2", named: ["definition"] },
  {
    what: "the kind",
    before: "run: echo 1",
    after: "tool: LS\n    with: { path: . }",
    named: ["definition", "with.path (new)"],
  },
  { what: "the shell", before: "run: echo 1", after: "run: echo 1\n    shell: sh", named: ["definition"] },
  { what: "an argument", before: "run: [echo, a]", after: "run: [echo, b]", named: ["run"] },
  {
    what: "the schema of the output",
    before: "run: echo '{}'\n    output: { type: object }",
    after: "run: echo '{}'\n    output: { type: object, properties: { a: {} } }",
    named: ["definition"],
  },
  {
    what: "a variable",
    before: "run: echo\n    env: { X: a, Y: b }",
    after: "run: echo\n    env: { X: c, Y: b }",
    named: ["env.X"],
  },
  {
    what: "one variable more",
    before: "run: echo\n    env: { X: a }",
    after: "run: echo\n    env: { X: a, Y: b }",
    named: ["env.Y (new)"],
  },
  {
    what: "a variable of the workflow",
    before: main("env: { X: a }\nsteps: { a: { cache: true, run: echo } }\n"),
    after: main("env: { X: b }\nsteps: { a: { cache: true, run: echo } }\n"),
    named: ["env.X"],
  },
  {
    what: "which secret it is given",
    before: 'run: echo\n    env: { T: "${{ secrets.TOKEN }}" }',
    after: 'run: echo\n    env: { T: "${{ secrets.OTHER }}" }',
    named: ["env.T"],
  },
  { what: "standard input", before: "run: cat\n    stdin: a", after: "run: cat\n    stdin: b", named: ["stdin"] },
  { what: "the folder of the step", before: "run: echo\n    cwd: .", after: "run: echo\n    cwd: /", named: ["cwd"] },
  {
    what: "the folder flow was started in",
    before: { ...step("run: echo"), "sub/file": "" },
    after: "run: echo",
    in: "sub",
    named: ["working folder"],
  },
  {
    what: "the outputs it maps",
    before: "run: echo\n    outputs: { o: 1 }",
    after: "run: echo\n    outputs: { o: 2 }",
    named: ["definition"],
  },
  {
    what: "what they are made of",
    before: main('vars: { v: 1 }\nsteps: { a: { cache: true, run: echo, outputs: { o: "${{ vars.v }}" } } }\n'),
    after: main('vars: { v: 2 }\nsteps: { a: { cache: true, run: echo, outputs: { o: "${{ vars.v }}" } } }\n'),
    named: ["${{ vars.v }}"],
  },
  {
    what: "an argument of a tool",
    before: "tool: Glob\n    with: { pattern: '*.md' }",
    after: "tool: Glob\n    with: { pattern: '*.ts' }",
    named: ["with.pattern"],
  },
  {
    what: "the instructions of an agent",
    before: talk(""),
    after: { ...talk(""), "main.yaml": (talk("")["main.yaml"] ?? "").replace("You.", "You!") },
    named: ["agent main.yaml#steps.a.agent"],
  },
  {
    what: "the tools of an agent",
    before: talk(""),
    after: { ...talk(""), "main.yaml": (talk("")["main.yaml"] ?? "").replace("[Read]", "[Read, LS]") },
    named: ["agent main.yaml#steps.a.agent"],
  },
  { what: "the tools of an agent step", before: talk(""), after: talk(", tools: [LS]"), named: ["definition"] },
  { what: "the prompt", before: talk(""), after: talk(" there"), named: ["prompt"] },
  {
    what: "the model",
    before: talk(""),
    after: talk("", "hello", "s.yaml"),
    named: ["model", "replies of the script"],
  },
  { what: "the replies of a script", before: talk(""), after: talk("", "bye"), named: ["replies of the script"] },
  { what: "a script inside a group", before: group("run: echo 1"), after: group("run: echo 2"), named: ["definition"] },
  {
    what: "a value that a group reads from around it",
    before: main(
      'vars: { v: 1 }\nsteps:\n  a:\n    cache: true\n    steps: { b: { run: echo, env: { V: "${{ vars.v }}" } } }\n',
    ),
    after: main(
      'vars: { v: 2 }\nsteps:\n  a:\n    cache: true\n    steps: { b: { run: echo, env: { V: "${{ vars.v }}" } } }\n',
    ),
    named: ["${{ vars.v }}"],
  },
  {
    what: "the condition of a loop and what it reads",
    before: "run: echo\n    repeat: { until: inputs.x == 'one', max: 3 }",
    after: "run: echo\n    repeat: { until: iteration > 2, max: 3 }",
    named: ["definition", "${{ inputs.x }} (gone)"],
  },
  {
    what: "a sub-workflow",
    before: sub("steps: { b: { run: echo 1 } }\n"),
    after: sub("steps: { b: { run: echo 2 } }\n"),
    named: ["workflow sub.yaml"],
  },
  {
    what: "an input of a sub-workflow",
    before: sub("steps: { b: { run: echo 1 } }\n"),
    after: sub("steps: { b: { run: echo 1 } }\n", "x: 2"),
    named: ["with.x"],
  },

  {
    what: "a comment, a name, a description, the place in the file",
    before: "run: echo",
    after: "# why\n    name: N\n    description: D\n    run: echo",
  },
  {
    what: "what bounds it: retry, timeout, limits, if, needs",
    before: "run: echo",
    after:
      "retry: 1\n    timeout: 1m\n    limits: { duration: 2m }\n    if: inputs.x == 'one'\n    continue-on-error: true\n    rerun: never\n    run: echo",
  },
  {
    what: "another step of the workflow",
    before: step("run: echo"),
    after: main("steps:\n  z: { run: echo z }\n  a: { cache: true, run: echo }\n"),
  },
  {
    what: "how a value is written that stays the same",
    before: 'run: echo\n    env: { X: "${{ inputs.x }}" }',
    after: "run: echo\n    env: { X: one }",
  },
  {
    what: "the description of an agent, a name inside a group",
    before: group("run: echo"),
    after: group("name: N, run: echo"),
  },
];

const secrets = { ...process.env, TOKEN: "token-token", OTHER: "other-other" };

describe("the outputs of a step are found again unless this has changed:", () => {
  test.each(changes.filter(({ named }) => named !== undefined && named.length > 0))("$what", async (change) => {
    const folder = folderWith(filesOf(change.before));
    expect((await folder.run({ env: secrets })).missed).toEqual(["a | first"]);
    expect((await folder.run({ env: secrets })).cached).toEqual(["a"]);
    for (const [name, text] of Object.entries(filesOf(change.after))) folder.write(name, text);
    const file = change.in === undefined ? "main.yaml" : "../main.yaml";
    const { missed, cached } = await folder.run({ env: secrets, file, in: change.in ?? "." });
    expect([missed, cached]).toEqual([[`a | changed | ${(change.named ?? []).join(" | ")}`], []]);
  });
});

describe("the outputs of a step are found again whatever becomes of", () => {
  test.each(changes.filter(({ named }) => named === undefined))("$what", async (change) => {
    const folder = folderWith(filesOf(change.before));
    const first = await folder.run({ env: secrets });
    for (const [name, text] of Object.entries(filesOf(change.after))) folder.write(name, text);
    const { missed, cached, exitCode } = await folder.run({ env: secrets });
    expect([first.exitCode, exitCode, missed, cached]).toEqual([0, 0, [], ["a"]]);
  });

  test("the value of a secret", async () => {
    const folder = folderWith(
      step('run: echo\n    env: { T: "${{ secrets.TOKEN }}", B: "Bearer ${{ secrets.OTHER }}" }'),
    );
    await folder.run({ env: secrets });
    const { cached } = await folder.run({ env: { ...secrets, TOKEN: "another-one", OTHER: "x" } });
    expect(cached).toEqual(["a"]);
  });
});

describe("`files` and `key`:", () => {
  const build = (cache: string): Files => main(`steps:\n  a: { cache: ${cache}, run: echo ran >> count }\n`);

  test("a file that changes, comes or goes is named", async () => {
    const folder = folderWith({ ...build("{ files: ['src/**/*.ts', lock] }"), "src/a.ts": "1", "src/deep/b.ts": "2" });
    expect((await folder.run({ env: secrets })).missed).toEqual(["a | first"]);
    folder.write("src/other.md", "not named");
    expect((await folder.run({ env: secrets })).cached).toEqual(["a"]);
    folder.write("src/deep/b.ts", "3");
    expect((await folder.run({ env: secrets })).missed).toEqual(["a | changed | file src/deep/b.ts"]);
    folder.write("lock", "");
    folder.remove("src/a.ts");
    expect((await folder.run({ env: secrets })).missed).toEqual([
      "a | changed | file lock (new) | file src/a.ts (gone)",
    ]);
    expect(folder.read("count")).toBe("ran\nran\nran\n");
  });

  test("are relative to the workspace, wherever flow is started", async () => {
    const folder = folderWith({ ...build("{ files: [lock] }"), lock: "1", "sub/lock": "2" });
    const from = { env: secrets, file: "../main.yaml", in: "sub" };
    await folder.run(from);
    folder.write("sub/lock", "3");
    expect((await folder.run(from)).cached).toEqual(["a"]);
    folder.write("lock", "4");
    expect((await folder.run(from)).missed).toEqual(["a | changed | file lock"]);
  });

  test("the author's key comes to all else, and does not replace it", async () => {
    const folder = folderWith(build('{ key: "${{ inputs.x }}" }'));
    await folder.run({ env: secrets });
    expect((await folder.run({ env: secrets })).cached).toEqual(["a"]);
    expect((await folder.run({ env: secrets, inputs: { x: "two" } })).missed).toEqual(["a | changed | cache.key"]);
    folder.write("main.yaml", (build('{ key: "${{ inputs.x }}" }')["main.yaml"] ?? "").replace("ran", "RAN"));
    expect((await folder.run({ env: secrets })).missed).toEqual(["a | changed | definition | cache.key"]);
  });

  test.each([
    ["a key without a value", '{ key: "${{ steps.z.outputs.none }}" }', "expression"],
    ["files that are no globs", '{ files: ["${{ inputs.n }}"] }', "input"],
  ])("%s fails the step", async (_, cache, kind) => {
    const folder = folderWith(main(`steps:\n  z: { run: "true" }\n  a: { needs: [z], cache: ${cache}, run: echo }\n`));
    const { exitCode, events } = await folder.run({ env: secrets });
    const ended = events.findLast((event) => event.type === "step.finished");
    expect([exitCode, ended?.type === "step.finished" && ended.error?.kind]).toEqual([1, kind]);
  });

  test("more files than anybody means fail the step with the number", async () => {
    const folder = folderWith(build("{ files: ['many/*'] }"));
    for (let count = 0; count <= 10_000; count++) folder.write(`many/${count}`, "");
    const { exitCode, events } = await folder.run({ env: secrets });
    expect([exitCode, JSON.stringify(events.at(-1))]).toEqual([
      1,
      expect.stringContaining("`cache.files` matches more than 10000 files"),
    ]);
  });
});
