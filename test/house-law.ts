import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";

/** One source file with what it imports, types included. Paths are relative to the project, `/` as separator. */
export interface SourceFile {
  readonly path: string;
  readonly imports: readonly string[];
  readonly text: string;
}

const grounds = ["expr", "jsonschema", "source", "process"];
const islands = [
  "cache",
  "compile",
  "engine",
  "steps",
  "agent",
  "tools",
  "permissions",
  "skills",
  "hooks",
  "providers",
  "runlog",
  "mcp",
  "worktree",
];

/** Which rooms of the house may know a vendor package. A package that is not named here is free for all. */
const fences: { readonly [vendor: string]: readonly string[] } = {
  yaml: ["source"],
  "@actions/expressions": ["expr"],
  ajv: ["jsonschema"],
  "ajv-formats": ["jsonschema"],
  "node:child_process": ["process"],
  child_process: ["process"],
  execa: ["process"],
  openai: ["providers"],
  "@anthropic-ai/sdk": ["providers"],
  "@pydantic/genai-prices": ["providers"],
  unbash: ["permissions"],
  undici: ["tools"],
  "ipaddr.js": ["tools"],
  "@modelcontextprotocol/client": ["mcp"],
  chalk: ["render"],
  "@dagrejs/graphlib": ["render"],
  "@dagrejs/dagre": ["render"],
  commander: ["cli"],
};

export function readHouse(root: string): SourceFile[] {
  return readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.startsWith("jsonschema/generated/"))
    .map((name) => {
      const path = `src/${name}`;
      const text = readFileSync(join(root, path), "utf8");
      return { path, text, imports: importsOf(path, text) };
    });
}

/** Everything a file imports: static and dynamic imports, re-exports and `import("x")` types. */
export function importsOf(path: string, text: string): string[] {
  const { module } = parseSync(path, text);
  const fixed = [...module.staticImports, ...module.staticExports.flatMap((item) => item.entries)].flatMap((item) => {
    const request = item.moduleRequest;
    return request ? [request.value] : [];
  });
  const quoted = [...text.matchAll(/\bimport\(\s*["']([^"']+)["']\s*\)/g)].map((match) => match[1] ?? "");
  return [...new Set([...fixed, ...quoted])].map((request) =>
    request.startsWith(".") ? join(dirname(path), request).replaceAll("\\", "/") : request,
  );
}

/** Every breach of the law of imports, of a vendor fence, and every import cycle, one sentence each. */
export function breaches(files: readonly SourceFile[]): string[] {
  return [...files.flatMap(lawBreaches), ...cycles(files)];
}

function lawBreaches(file: SourceFile): string[] {
  const from = roomOf(file.path);
  return file.imports.flatMap((target) => {
    if (!target.startsWith("src/")) {
      const fence = fences[vendorOf(target)];
      return fence && !fence.includes(from) ? [`${file.path}: only ${fence.join(", ")} may import ${target}`] : [];
    }
    const to = roomOf(target);
    return from === to || mayImport(from, to) ? [] : [`${file.path}: ${from} may not import ${to} (${target})`];
  });
}

function mayImport(from: string, to: string): boolean {
  if (to === "model") return from !== "model";
  if (from === "flow") return islands.includes(to) || grounds.includes(to);
  if (to === "flow") return from === "cli" || from === "index";
  if (to === "render") return from === "cli";
  return islands.includes(from) && grounds.includes(to);
}

/** The room a file belongs to: its folder under `src`, or its own name for `flow.ts` and `index.ts`. */
function roomOf(path: string): string {
  return (path.split("/")[1] ?? "").replace(/\.ts$/, "");
}

function vendorOf(request: string): string {
  const parts = request.split("/");
  return request.startsWith("@")
    ? parts.slice(0, 2).join("/")
    : request.startsWith("node:")
      ? request
      : (parts[0] ?? "");
}

function cycles(files: readonly SourceFile[]): string[] {
  const imports = new Map(files.map((file) => [file.path, file.imports.filter((target) => target.startsWith("src/"))]));
  const state = new Map<string, "open" | "done">();
  const found: string[] = [];
  const visit = (path: string, way: readonly string[]): void => {
    if (state.get(path) === "done") return;
    if (state.get(path) === "open") {
      found.push(`import cycle: ${[...way.slice(way.indexOf(path)), path].join(" -> ")}`);
      return;
    }
    state.set(path, "open");
    for (const target of imports.get(path) ?? []) visit(target, [...way, path]);
    state.set(path, "done");
  };
  for (const file of files) visit(file.path, []);
  return found;
}
