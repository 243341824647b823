import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type * as Library from "../../src/index.ts";
import { Place, project } from "./flow.ts";

type Line = Library.LogLine;

const small = `
name: small
inputs: { who: { type: string, default: world } }
steps:
  say: { run: 'echo "hello $WHO from $PLACE"', env: { WHO: "\${{ inputs.who }}" } }
outputs: { said: "\${{ steps.say.outputs.stdout }}" }
`;
const gate = `
name: gate
steps:
  build: { run: echo built }
  ask:
    needs: [build]
    approve: Go?
    form: { required: [n], properties: { n: { type: integer }, why: { type: string, default: because } } }
outputs: { n: "\${{ steps.ask.outputs.n }}", why: "\${{ steps.ask.outputs.why }}", by: "\${{ steps.ask.outputs.by }}" }
`;
const long = `
name: long
steps:
  hang: { run: sleep 60 }
  tidy: { if: always(), needs: [hang], run: "echo tidy; if [ -n \\"$SLOW\\" ]; then sleep 60; fi" }
`;
const files = {
  "small.yaml": small,
  "gate.yaml": gate,
  "long.yaml": long,
  "many.yaml": `name: many\nsteps:\n${Array.from({ length: 400 }, (_, n) => `  s${n}: { set: { n: ${n} } }`).join("\n")}\n`,
  "large.yaml": "name: large\nsteps: { a: { run: \"head -c 100000 /dev/zero | tr '\\\\0' x\" } }\n",
  "replies.yaml":
    "agents: { maker: [{ calls: [{ name: Write, args: { file_path: made.txt, content: x } }] }, { text: made }], writer: [{ text: 'wrote ${{ prompt }}' }], agent: [{ text: 'did ${{ prompt }}' }] }\n",
  "agents/writer.md": "---\ndescription: Writes.\n---\nYou write.\n",
};

let place: Place;
let flow: typeof Library;
const env = { PATH: process.env["PATH"], PLACE: "here" };
beforeAll(() => {
  place = new Place(files);
  mkdirSync(join(place.folder, "node_modules"));
  symlinkSync(project, join(place.folder, "node_modules/flow-runner"));
  flow = (createRequire(import.meta.url)(join(project, "dist/main.cjs")) as { library: typeof Library }).library;
});
afterAll(() => place.remove());

const at = (file: string): { file: string; cwd: string; env: typeof env } => ({ file, cwd: place.folder, env });

async function all(events: AsyncIterable<Line>): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const line of events) lines.push(line);
  return lines;
}

/** The end of a run that started. */
async function endOf(run: Promise<Library.RunResult | Library.ResumeResult>): Promise<Library.RunEnd> {
  const result = await run;
  if (!result.started) throw new Error(JSON.stringify(result));
  return result.end;
}

describe("the events of a run", () => {
  it("are those of its log, for every loop, whenever it begins", async () => {
    const run = flow.run(at("small.yaml"));
    const during = await all(run);
    const { log, outputs } = await endOf(run);
    expect(outputs).toEqual({ said: "hello world from here" });
    const text = place.read(log.slice(place.folder.length + 1));
    expect(during.map((line) => JSON.stringify(line))).toEqual(text.trimEnd().split("\n"));
    expect(await all(run)).toEqual(during);
  });

  it("reach loops side by side, each as it comes", async () => {
    const run = flow.run(at("gate.yaml"));
    const [one, two] = await Promise.all([all(run), all(run)]);
    expect(one.map(({ seq }) => seq)).toEqual(one.map((_, index) => index + 1));
    expect(two).toEqual(one);
  });

  it("are there while the run goes on", async () => {
    const run = flow.run(at("long.yaml"));
    for await (const line of run) if (line.type === "step.attempt.started" && line.step === "hang") break;
    run.cancel();
    expect(await endOf(run)).toMatchObject({ outcome: "cancelled" });
  });

  it("wait in the log for a reader that is slow, and the run does not", async () => {
    const run = flow.run(at("many.yaml"));
    let seen = 0;
    for await (const line of run) {
      if (seen++ === 0) expect(await endOf(run)).toMatchObject({ outcome: "success" });
      expect(line.seq).toBe(seen);
    }
    expect(seen).toBe(802);
  });

  it("hold whole values, also those that the log keeps beside it", async () => {
    const run = flow.run(at("large.yaml"));
    const ends = (await all(run)).flatMap((line) => (line.type === "step.finished" ? [line.outputs] : []));
    expect(ends).toEqual([expect.objectContaining({ stdout: "x".repeat(100_000) })]);
  });

  it("are none of a run that was refused", async () => {
    const run = flow.run(at("nowhere.yaml"));
    expect(await all(run)).toEqual([]);
    expect(await run).toMatchObject({ started: false, refusal: { kind: "invalid", exitCode: 2 } });
  });
});

describe("cancelling", () => {
  it("runs what is always to run", async () => {
    const run = flow.run(at("long.yaml"));
    const lines: Line[] = [];
    for await (const line of run) {
      lines.push(line);
      if (line.type === "step.attempt.started" && line.step === "hang") run.cancel();
    }
    expect(await endOf(run)).toMatchObject({ outcome: "cancelled", exitCode: 130 });
    expect(lines).toContainEqual(expect.objectContaining({ type: "step.finished", step: "tidy", outcome: "success" }));
  });

  it("twice ends everything at once", async () => {
    const run = flow.run({ ...at("long.yaml"), env: { ...env, SLOW: "1" } });
    const begun = performance.now();
    for await (const line of run) if (line.type === "step.attempt.started") run.cancel();
    expect(await endOf(run)).toMatchObject({ outcome: "cancelled" });
    expect(performance.now() - begun).toBeLessThan(15_000);
  });

  it("by a signal of the caller's own is the same", async () => {
    const stop = new AbortController();
    const run = flow.run({ ...at("long.yaml"), signal: stop.signal });
    for await (const line of run) if (line.type === "step.attempt.started") stop.abort("SIGTERM");
    expect(await endOf(run)).toMatchObject({ outcome: "cancelled", exitCode: 143 });
  });
});

describe("an approval", () => {
  const asked = (
    answer: Library.Answer | undefined,
    more: Partial<Library.RunRequest> = {},
  ): Library.Run<Library.RunResult> =>
    flow.run({ ...at("gate.yaml"), ...more, asker: { ask: () => Promise.resolve(answer) } });

  it("is answered by the asker, with defaults where it gives none", async () => {
    const end = await endOf(asked({ decision: "approved", form: { n: 3 } }, { by: "alice" }));
    expect(end.outputs).toEqual({ n: 3, why: "because", by: "alice" });
  });

  it("is denied with the reason", async () => {
    const end = await endOf(asked({ decision: "denied", comment: "not today", by: "bob" }));
    expect(end).toMatchObject({ outcome: "failure", error: { kind: "rejected", message: "not today" } });
  });

  it("fails the step when the form does not fit, and says why", async () => {
    const end = await endOf(asked({ decision: "approved", form: { n: "three", m: 1 } }));
    expect(end.error).toMatchObject({ kind: "input", message: expect.stringContaining("there is no field `m`") });
  });

  it.each([
    [{ ask: { decision: "approved", form: { n: "x" } } }, "the answer to `ask`: its form does not fit: `n`"],
    [{ aks: { decision: "approved" } }, "did you mean `ask`?"],
    [{ build: { decision: "denied" } }, "`build` is no approval"],
    [{ ask: { approved: true } as unknown as Library.Answer }, "`decision` is `approved` or `denied`"],
  ] satisfies [Library.RunRequest["answers"], string][])("is not answered up front by %j", async (answers, message) => {
    const result = await flow.run({ ...at("gate.yaml"), answers });
    expect(result).toMatchObject({
      started: false,
      refusal: { kind: "usage", message: expect.stringContaining(message) },
    });
  });

  it("is answered up front, once", async () => {
    const answers = { ask: { decision: "approved", form: { n: 1, why: "known" }, by: "dan" } } as const;
    expect(await endOf(flow.run({ ...at("gate.yaml"), answers }))).toMatchObject({
      outputs: { n: 1, why: "known", by: "dan" },
    });
    const twice = await flow.run({ ...at("gate.yaml"), answers, deny: ["ask"] });
    expect(twice).toMatchObject({ refusal: { message: "`ask` is answered twice" } });
    const odd = await endOf(asked({ ok: true } as unknown as Library.Answer));
    expect(odd.error).toMatchObject({ kind: "input", message: expect.stringContaining("no `decision`") });
  });

  it("that nobody answers lets the run end, and a resume brings the answer", async () => {
    const { run, waiting, log } = await endOf(asked(undefined));
    expect(waiting).toMatchObject([{ step: "ask", question: "Go?", fields: [{ name: "n" }, { name: "why" }] }]);
    const going = flow.resume({
      run,
      cwd: place.folder,
      env,
      answers: { ask: { decision: "approved", form: { n: 4 } } },
      by: "carol",
    });
    const lines = await all(going);
    expect(lines[0]).toMatchObject({ type: "run.resumed" });
    expect((await endOf(going)).outputs).toEqual({ n: 4, why: "because", by: "carol" });
    const seqs = place
      .read(log.slice(place.folder.length + 1))
      .trimEnd()
      .split("\n").length;
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => seqs - lines.length + 1 + index));
    expect(await flow.resume({ run, cwd: place.folder, env })).toMatchObject({ started: false, finished: { run } });
  });
});

describe("one agent", () => {
  const agent = (request: Partial<Library.AgentRequest>): Library.Run<Library.RunResult> =>
    flow.runAgent({ agent: "writer", cwd: place.folder, env, script: "replies.yaml", ...request });

  it("is run by its name, and its prompt is no expression", async () => {
    const run = agent({ prompt: "${{ secrets.X }} 'quoted' \"\n" });
    expect((await all(run)).map(({ type }) => type)).toEqual(expect.arrayContaining(["agent.started", "run.finished"]));
    expect((await endOf(run)).outputs).toEqual({ answer: "wrote ${{ secrets.X }} 'quoted' \"\n" });
  });

  it("is run by its definition, which may have a prompt of its own", async () => {
    const inputs = { prompt: { type: "string" }, n: { type: "integer", default: 2 } };
    const definition = { inputs, prompt: "${{ inputs.prompt }} ${{ inputs.n }} times" };
    const texts = [{ name: "n", text: "3" }];
    const { outputs } = await endOf(agent({ agent: definition, inputs: { prompt: "jump" }, inputTexts: texts }));
    expect(outputs).toEqual({ answer: "did jump 3 times" });
    expect(await agent({ agent: { instruction: "Be." }, prompt: "x" })).toMatchObject({
      refusal: { kind: "usage", exitCode: 2, message: expect.stringContaining("instructions") },
    });
  });

  it("asks for what it may not do by itself", async () => {
    const questions: string[] = [];
    const asker: Library.Asker = {
      ask: (question) => {
        questions.push(question.question);
        return Promise.resolve({ decision: "approved" });
      },
    };
    const run = agent({ agent: { name: "maker", tools: ["Write"] }, prompt: "x", asker });
    expect((await endOf(run)).outputs).toEqual({ answer: "made" });
    expect(questions).toEqual([expect.stringContaining("Allow Write(./made.txt)?")]);
  });

  it.each([
    [{ agent: "writre", prompt: "x" }, "there is no agent `writre`; did you mean `writer`?"],
    [{ agent: "${{ x }}", prompt: "x" }, "expressions have no place here"],
    [{ prompt: "x", model: ["${{ x }}"] }, "expressions have no place here"],
    [{ prompt: " \n" }, "the prompt is empty"],
    [{}, "has no prompt of its own"],
    [{ prompt: "x", inputs: { a: 1 } }, "takes no inputs, and `a` was given"],
    [{ prompt: "x", secrets: ["NO_SUCH"] }, "declares the secret NO_SUCH"],
  ] satisfies [Partial<Library.AgentRequest>, string][])("is refused as %j", async (request, message) => {
    const result = await agent(request);
    expect(result).toMatchObject({ started: false, refusal: { message: expect.stringContaining(message) } });
  });
});

it("two runs in one process do not disturb each other", async () => {
  const other = new Place({ ...files, "agents/writer.md": "---\ndescription: Writes.\n---\nYou write elsewhere.\n" });
  const there = { cwd: other.folder, env: { ...env, PLACE: "there" } };
  const runs = [
    flow.run({ ...at("small.yaml"), inputs: { who: "one" } }),
    flow.run({ file: "small.yaml", ...there, inputs: { who: "two" } }),
    flow.runAgent({ agent: "writer", prompt: "a", cwd: place.folder, env, script: "replies.yaml" }),
    flow.runAgent({ agent: "writer", prompt: "b", ...there, script: "replies.yaml" }),
    flow.run(at("long.yaml")),
  ];
  for await (const line of runs[4] ?? []) if (line.type === "step.attempt.started") runs[4]?.cancel();
  const ends = await Promise.all(runs.map(endOf));
  expect(ends.map(({ outputs, outcome }) => [outcome, ...Object.values(outputs)])).toEqual([
    ["success", "hello one from here"],
    ["success", "hello two from there"],
    ["success", "wrote a"],
    ["success", "wrote b"],
    ["cancelled"],
  ]);
  expect(ends.map(({ log }) => log.startsWith(other.folder))).toEqual([false, true, false, true, false]);
  other.remove();
});

/** A program beside the files, in a process of its own, that knows the library as an installed package. */
function program(text: string): { stdout: string; stderr: string; status: number | null } {
  place.write("program.mjs", text);
  const { PATH = "", HOME = "" } = process.env;
  const child = { cwd: place.folder, env: { PATH, HOME }, encoding: "utf8" } as const;
  const { stdout, stderr, status } = spawnSync(process.execPath, ["program.mjs"], child);
  return { stdout, stderr, status };
}

it("says nothing, listens to no signal and leaves the exit code alone", () => {
  const { stdout, stderr, status } = program(`
    import { run, runAgent } from "flow-runner";
    import { writeFileSync } from "node:fs";
    const names = ["SIGINT", "SIGTERM", "SIGHUP", "exit", "uncaughtException", "unhandledRejection", "warning"];
    const count = () => names.map((name) => process.listenerCount(name)).join();
    const before = count();
    const going = run({ file: "small.yaml", inputs: { who: 5 } });
    for await (const line of run({ file: "small.yaml" })) if (count() !== before) throw new Error(line.type);
    const results = await Promise.all([going, run({ file: "no.yaml" }), runAgent({ agent: "writer", prompt: "x" })]);
    const codes = results.map((it) => (it.started ? it.end.exitCode : it.refusal.exitCode));
    writeFileSync("said.json", JSON.stringify([codes, process.exitCode ?? "none", count() === before]));
  `);
  expect([stdout, stderr, status]).toEqual(["", "", 0]);
  expect(JSON.parse(place.read("said.json"))).toEqual([[2, 2, 3], "none", true]);
});

it("lets what an observer throws be seen, and the run go on", () => {
  const { stdout } = program(`
    import { run } from "flow-runner";
    let thrown = 0;
    process.on("uncaughtException", () => thrown++);
    const result = await run({ file: "small.yaml", onEvent: () => { throw new Error("mine"); } });
    console.log(result.end.outcome, thrown > 3);
  `);
  expect(stdout).toBe("success true\n");
});

describe("docs/library.md", () => {
  const page = readFileSync(join(project, "docs/library.md"), "utf8");
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, kind = "", text = ""]) => ({ kind, text }));
  const examples = blocks.flatMap(({ kind, text }, index) => {
    const imported = /import \{ (.*) \}/.exec(text)?.[1] ?? "nothing";
    return kind === "js" ? [{ imported, text, output: blocks[index + 1] }] : [];
  });
  beforeAll(() => {
    for (const { kind, text } of blocks) if (kind === "yaml") place.write(/^# (\S+)/.exec(text)?.[1] ?? "", text);
  });

  it("has an example for each thing one does", () => {
    const imported = examples.map((example) => example.imported);
    expect(imported).toEqual(["run", "run", "run", "resume, run", "runAgent", "check", "evaluate"]);
    const exported = Object.keys(flow).sort();
    expect(
      /`flow-runner` exports (.*), and the types/
        .exec(page)?.[1]
        ?.match(/\w+/g)
        ?.filter((it) => it !== "and")
        .sort(),
    ).toEqual(exported);
  });

  it.each(examples)("prints what the page says with $imported", ({ text, output }) => {
    expect(output?.kind).toBe("text");
    expect(program(text)).toEqual({ stdout: output?.text, stderr: "", status: 0 });
  });
});

test("the published types need neither Node's nor a loose compiler", () => {
  const types = join(place.folder, "node_modules/typed");
  const tsc = join(project, "node_modules/.bin/tsc");
  const emit = [tsc, "-p", join(project, ".ci/tsconfig.types.json"), "--outDir", join(types, "types")];
  expect(spawnSync(process.execPath, emit, { encoding: "utf8" }).stdout).toBe("");
  place.write(
    "node_modules/typed/package.json",
    '{ "name": "typed", "type": "module", "exports": { "types": "./types/index.d.ts" } }',
  );
  symlinkSync(join(project, "node_modules/@actions"), join(place.folder, "node_modules/@actions"));
  place.write("use.mts", consumer);
  place.write("tsconfig.json", JSON.stringify({ compilerOptions: strictest, files: ["use.mts"] }));
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", place.folder], { encoding: "utf8" });
  expect(stdout).toBe("");
}, 60_000);

const strictest = {
  module: "nodenext",
  target: "es2024",
  lib: ["es2024", "dom"],
  types: [],
  strict: true,
  noEmit: true,
  skipLibCheck: false,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
};

const consumer = `
import { check, evaluate, resume, run, runAgent } from "typed";
import type { Answer, Asker, Diagnostic, LogLine, Question, ResumeResult, Run, RunEnd, RunResult } from "typed";

const asker: Asker = {
  ask: async (question: Question, signal: AbortSignal): Promise<Answer | undefined> =>
    signal.aborted || question.fields.length > 0 ? undefined : { decision: "approved" },
};
const going: Run<RunResult> = run({ file: "a.yaml", inputs: { n: [1, null] }, asker, env: { A: "b" } });
for await (const line of going) {
  const seq: number = line.seq;
  if (line.type === "step.finished") console.log(seq, line.step, line.error?.kind satisfies string | undefined);
  // \u0040ts-expect-error: only some events have a step
  line.step;
}
going.cancel();
const result = await going;
const end: RunEnd | undefined = result.started ? result.end : undefined;
// \u0040ts-expect-error: a refusal has no end
result.end;
const again: ResumeResult = await resume({ run: "latest", onEvent: (line: LogLine) => void line });
if (!again.started && "finished" in again) console.log(again.finished.outputs);
const asked = await runAgent({ agent: { instructions: "Be brief." }, prompt: "x", model: ["a/b", "c/d"] });
// \u0040ts-expect-error: an agent has no file
void runAgent({ file: "x" });
// \u0040ts-expect-error: approvals belong to workflows
void runAgent({ agent: "x", prompt: "y", approve: ["a"] });
const { diagnostics }: { readonly diagnostics: readonly Diagnostic[] } = await check({ file: "a.yaml" });
const value = evaluate("1 == 1", {});
console.log(end, asked.started, diagnostics.length, value.ok ? value.value : value.error.message);
`;
