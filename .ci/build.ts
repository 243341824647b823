/** Bundles `src` into `dist/`: one entry for the command, one for the library, heavy packages in chunks of their own. */
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/**
 * Node's own modules as `require` gives them. An `import` of one makes a module of all its exports first, which loads
 * what nobody asked for: streams for `node:fs`, web crypto for `node:crypto`; together a quarter of a short command.
 */
const plainBuiltins: Plugin = {
  name: "plain-builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "builtin" } : undefined,
    );
    // commander asks for it at once, for subcommands that are programs of their own; flow has none.
    onResolve({ filter: /^node:child_process$/ }, ({ path, kind, importer }) =>
      kind === "require-call" && importer.includes("/commander/") ? { path, namespace: "late" } : undefined,
    );
    onLoad({ filter: /./, namespace: "late" }, ({ path }) => ({
      contents: `exports.spawn = (...given) => process.getBuiltinModule(${JSON.stringify(path)}).spawn(...given)`,
    }));
    onLoad({ filter: /./, namespace: "builtin" }, ({ path }) => {
      const names = plainExports(process.getBuiltinModule(path) ?? {});
      return {
        contents: `const builtin = process.getBuiltinModule(${JSON.stringify(path)}); export const { ${names.join(", ")} } = builtin; export default builtin;`,
      };
    });
  },
};

/** What can be taken out of a module without running anything; who imports another name is told so by the build. */
function plainExports(builtin: object): string[] {
  const properties = Object.entries(Object.getOwnPropertyDescriptors(builtin));
  return properties.flatMap(([name, { value }]) => (value !== undefined && name !== "default" ? [name] : []));
}

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { main: "src/cli/main.ts", index: "src/index.ts" },
  outdir: dist,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22.18",
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  chunkNames: "chunks/[name]-[hash]",
  external: ["openai", "@vscode/ripgrep"],
  // The same package in ES modules: it loads faster, and its lexer does not read `process.env` at every character.
  alias: { yaml: join(root, "node_modules/yaml/browser/dist/index.js") },
  define: { "process.env.FLOW_VERSION": JSON.stringify(version) },
  // CommonJS packages inside the ES bundle (ajv, picomatch) reach Node's own modules by `require`.
  banner: { js: 'const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);' },
  plugins: [plainBuiltins],
  metafile: true,
  logLevel: "warning",
});
removeStaleChunks(new Set(Object.keys(metafile.outputs)));
copyFileSync(join(root, "src/cli/launcher.cjs"), join(dist, "flow.cjs"));
chmodSync(join(dist, "flow.cjs"), 0o755);
writeFileSync(join(dist, "THIRD-PARTY-LICENSES.txt"), licences(Object.keys(metafile.inputs)));
writeFileSync(join(dist, "contents.json"), JSON.stringify(contents(), null, 1));

/** What the build before this one left; never the whole folder, for a `flow` may be running from it. */
function removeStaleChunks(written: ReadonlySet<string>): void {
  for (const name of readdirSync(join(dist, "chunks"))) {
    if (!written.has(`dist/chunks/${name}`)) rmSync(join(dist, "chunks", name));
  }
}

/** The source files and packages that went into each file of `dist`; a test reads it, the package leaves it out. */
function contents(): { readonly [file: string]: readonly string[] } {
  return Object.fromEntries(
    Object.entries(metafile.outputs).map(([file, { inputs }]) => [
      file.slice("dist/".length),
      [...new Set(Object.keys(inputs).map((path) => packageFolder(path) ?? path))].sort(),
    ]),
  );
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
