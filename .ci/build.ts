/** Bundles `src` into `dist/`: one file with everything that is ours, and two small ones that load it. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const { version, engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly version: string;
  readonly engines: { readonly node: string };
};

/**
 * Both ways in. In one file of CommonJS every module still waits until somebody asks for it, and the launcher can keep the
 * code that V8 made of it; files of ES modules take twice as long to load and give that code to nobody.
 */
const entry = `
exports.start = (...given) => require("./src/cli/main.ts").start(...given);
Object.defineProperty(exports, "library", { get: () => require("./src/index.ts") });
`;

/** commander asks for it at once, for subcommands that are programs of their own; flow has none. */
const lateChildProcess: Plugin = {
  name: "late-child-process",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:child_process$/ }, ({ path, importer }) =>
      importer.includes("/commander/") ? { path, namespace: "late" } : undefined,
    );
    onLoad({ filter: /./, namespace: "late" }, ({ path }) => ({
      contents: `exports.spawn = (...given) => require(${JSON.stringify(path)}).spawn(...given)`,
    }));
  },
};

const { metafile, outputFiles } = await build({
  absWorkingDir: root,
  stdin: { contents: entry, resolveDir: root, sourcefile: "entry.cjs" },
  outfile: join(dist, "main.cjs"),
  write: false,
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "node22.18",
  charset: "ascii",
  legalComments: "none",
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  external: [
    "openai",
    "@anthropic-ai/sdk",
    "@pydantic/genai-prices",
    "undici",
    "@vscode/ripgrep",
    "@modelcontextprotocol/client",
  ],
  // Node warns when code that it has not loaded itself imports.
  supported: { "dynamic-import": false },
  // The same package in ES modules: it loads faster, and its lexer does not read `process.env` at every character.
  alias: { yaml: join(root, "node_modules/yaml/browser/dist/index.js") },
  define: { "process.env.FLOW_VERSION": JSON.stringify(version), "import.meta.url": "bundleUrl" },
  banner: { js: 'const bundleUrl = require("node:url").pathToFileURL(__filename).href;' },
  plugins: [lateChildProcess],
  metafile: true,
  logLevel: "warning",
});
mkdirSync(dist, { recursive: true });
for (const { path, text } of outputFiles) put(path, inAscii(text));
put(join(dist, "node-version.js"), nodeVersion());
put(join(dist, "index.js"), library());
put(join(dist, "THIRD-PARTY-LICENSES.txt"), licences(Object.keys(metafile.inputs)));
copyFileSync(join(root, "src/cli/load.cjs"), join(dist, "load.cjs"));
copyFileSync(join(root, "src/cli/launcher.cjs"), join(dist, "flow.cjs"));
chmodSync(join(dist, "flow.cjs"), 0o755);

/** The launcher reads Latin-1, the fastest way to a string; the bundler leaves regular expressions as they are written. */
function inAscii(code: string): string {
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** At once, for a `flow` may be starting from it. */
function put(path: string, contents: string): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, path);
}

/** The library by its names, which an ES module has to spell out. */
function library(): string {
  const { library: exported } = createRequire(import.meta.url)(join(dist, "main.cjs")) as { readonly library: object };
  const names = Object.keys(exported).join(", ");
  return `import "./node-version.js";\nimport main from "./main.cjs";\nexport const { ${names} } = main.library;\n`;
}

/** Comes before the rest, which an old Node cannot even parse. */
function nodeVersion(): string {
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(engines.node) ?? [];
  if (major === undefined || minor === undefined) throw new Error(`engines.node is ${engines.node}`);
  return `const [major, minor] = process.versions.node.split(".").map(Number);
if (major < ${major} || (major === ${major} && minor < ${minor}))
  throw new Error("flow-runner needs Node ${major}.${minor} or newer; this is Node " + process.versions.node);
`;
}

function packageFolder(path: string): string | undefined {
  return /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
}

/** The licence text of every package whose code the bundle holds. */
function licences(inputs: readonly string[]): string {
  const folders = new Set(inputs.flatMap((path) => packageFolder(path) ?? []));
  return [...folders]
    .sort()
    .map((folder) => {
      const {
        name,
        version: packageVersion,
        license,
      } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
        name: string;
        version: string;
        license: string;
      };
      const file = ["LICENSE", "LICENSE.md", "license", "LICENCE", "LICENSE.txt"]
        .map((it) => join(root, folder, it))
        .find((it) => existsSync(it));
      const text = file === undefined ? "" : readFileSync(file, "utf8").trim();
      return `${name} ${packageVersion} (${license})\n${text}\n`;
    })
    .join("\n----------------------------------------\n\n");
}
