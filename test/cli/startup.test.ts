import { fileURLToPath, pathToFileURL } from "node:url";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

const dist = fileURLToPath(new URL("../../dist", import.meta.url));

/**
 * Writes down, when the command is over, which modules were begun: of the bundle every one is a function with the path of
 * its source as its name, and V8 knows which functions ran; what lies outside goes through Node's hooks.
 */
const watcher = `
import { Session } from "node:inspector";
import { registerHooks } from "node:module";
import { writeFileSync } from "node:fs";
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
process.on("exit", () => session.post("Profiler.takePreciseCoverage", (error, { result }) => {
  const bundle = result.find(({ url }) => url.endsWith("main.cjs"));
  const ran = (bundle?.functions ?? []).filter(({ ranges }) => ranges[0].count > 0);
  writeFileSync(process.env.LOADED, JSON.stringify({ loaded, ran: ran.map(({ functionName }) => functionName) }));
}));
`;

let place: Place;
beforeAll(() => {
  place = new Place({
    "watch.mjs": watcher,
    "true.yaml": 'name: quick\nsteps: { a: { run: ["true"] } }\n',
    "agent.yaml":
      "name: agent\nmodel: scripted/r.yaml\nsteps: { a: { agent: { name: x, instructions: You., tools: [Read] }, prompt: go } }\n",
    "agents/x.md": "---\ntools: [Read]\n---\nYou.\n",
    "r.yaml": "agents: { x: [{ text: hi }] }\n",
    "bad.yaml": "name: bad\nstepz: {}\n",
  });
});
afterAll(() => place.remove());

interface Loaded {
  /** Packages, also those inside our bundle, by name. */
  readonly packages: readonly string[];
  /** Folders of \`src\` (and its files at the top), without the ground \`model\`. */
  readonly rooms: readonly string[];
  readonly files: readonly string[];
}

async function loadedBy(args: readonly string[], exitCode = 0): Promise<Loaded> {
  const env = { LOADED: join(place.folder, "loaded.json") };
  const { code, stderr } = await place.flow(args, {
    env,
    node: ["--import", pathToFileURL(join(place.folder, "watch.mjs")).href],
  });
  expect([code, stderr.includes("bug")]).toEqual([exitCode, false]);
  const { loaded, ran } = JSON.parse(place.read("loaded.json")) as Record<"loaded" | "ran", string[]>;
  const outside = loaded.filter((url) => url.startsWith("file:")).map((url) => fileURLToPath(url));
  const files = [
    ...ran.filter((name) => /^(?:src|node_modules)\//.test(name)),
    ...outside.filter((path) => !path.startsWith(dist)),
  ];
  return {
    files,
    packages: unique(
      files
        .filter((file) => !ofValidators.test(file))
        .flatMap((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []),
    ),
    rooms: unique(files.flatMap((file) => /^src\/([^/]+)/.exec(file)?.[1] ?? [])).filter((room) => room !== "model"),
  };
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

const always = ["commander"];
const compiling = [...always, "@actions/expressions", "yaml"];
const compiler = ["cli", "compile", "expr", "flow.ts", "jsonschema", "render", "runlog", "source", "tools"];

/** What each command loads, no more and no less; a package that comes in here makes every start slower. */
const commands: readonly {
  readonly args: readonly string[];
  readonly code?: number;
  readonly packages: readonly string[];
}[] = [
  { args: ["--version"], packages: [] },
  { args: ["--help"], packages: always },
  { args: ["schema", "workflow"], packages: always },
  { args: ["validate", "true.yaml"], packages: compiling },
  { args: ["validate", "bad.yaml"], code: 2, packages: compiling },
  { args: ["graph", "true.yaml"], packages: compiling },
  { args: ["eval", "1 == 1"], packages: compiling },
  { args: ["run", "true.yaml", "--dry-run"], packages: compiling },
  { args: ["run", "true.yaml"], packages: compiling },
  { args: ["run", "agent.yaml"], packages: [...compiling, "tokenx"] },
  { args: ["agent", "x", "go", "--script", "r.yaml"], packages: [...compiling, "tokenx"] },
];

describe("what a command loads", () => {
  it.each(commands)("$args", async ({ args, code, packages }) => {
    const loaded = await loadedBy(args, code);
    const measured = loaded.packages.filter((name) => !tiny.includes(name));
    expect(measured).toEqual([...packages].sort());
  });

  it("is no engine and no step for a command that runs nothing", async () => {
    for (const args of [
      ["validate", "true.yaml"],
      ["graph", "true.yaml"],
      ["run", "true.yaml", "--dry-run"],
    ]) {
      const { rooms } = await loadedBy(args);
      expect(rooms.filter((room) => !compiler.includes(room) && room !== "flow")).toEqual([]);
    }
  });

  it("is no agent, no client of a model and no tool for a run without agents", async () => {
    const { files, rooms } = await loadedBy(["run", "true.yaml"]);
    expect(rooms).not.toContain("agent");
    expect(files.filter((file) => /^src\/(tools|providers)\//.test(file))).toEqual([
      "src/tools/names.ts",
      "src/providers/key-names.ts",
    ]);
  });

  it("is no table of widths for the signs that our own drawings use", async () => {
    await place.flow(["run", "true.yaml"]);
    for (const args of [
      ["show", "latest"],
      ["graph", "true.yaml"],
    ]) {
      const { packages } = await loadedBy(args);
      expect(packages).not.toContain("string-width");
    }
  });

  it("is the agent and its client for a run with one", async () => {
    const { files } = await loadedBy(["run", "agent.yaml"]);
    expect(files).toEqual(expect.arrayContaining(["src/agent/loop.ts", "src/providers/scripted.ts"]));
  });
});

/** The few lines that the validators made at build time share. */
const ofValidators = /node_modules\/(?:ajv\/dist\/runtime|fast-deep-equal)\//;

/** Measures columns of a text; next to nothing. */
const tiny = ["string-width", "get-east-asian-width", "strip-ansi", "ansi-regex"];
