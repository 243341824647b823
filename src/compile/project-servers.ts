import type { Diagnostic } from "../model/diagnostic.ts";
import { entry, type MapNode, type SourceDocument, type SourceNode, toJson } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";
import { asMap, asText, entriesOf, itemsOf } from "./read/nodes.ts";
import { checkCommand, checkKind } from "./read/server-command.ts";
import { oneOf, type createReport, type Report } from "./report.ts";
import type { ServerShape } from "./server-shape.ts";

/** The project's own list of MCP servers, as other programs write it. */
export const projectServersFile = ".mcp.json";

/** What of it a workflow names is checked, all else is left alone: other programs use the file too. */
export interface ProjectServers {
  readonly names: readonly string[];
  /** `broken`: it is there and cannot be used; that has been reported, once. */
  find(name: string): ServerShape | "broken" | undefined;
}

export interface ProjectServersSource {
  /** Absolute path of the file. */
  readonly path: string;
  /** As diagnostics name it. */
  readonly shown: string;
  readonly problems: ReturnType<typeof createReport>;
  /** Receives the bytes once somebody names a server in it. */
  readonly keep: (bytes: Uint8Array) => void;
}

/** Reads the file; undefined when there is none. */
export async function readProjectServers({
  path,
  shown,
  problems,
  keep,
}: ProjectServersSource): Promise<ProjectServers | undefined> {
  const bytes = await readSource(path);
  if (!bytes.ok) return undefined;
  const document = parseJson(bytes.value, shown);
  const servers = document.ok ? serversIn(document.value) : undefined;
  const found = new Map<string, ServerShape | "broken">();
  let isKept = false;
  let isTold = false;
  const use = (): void => {
    if (isKept) return;
    isKept = true;
    keep(bytes.value);
    if (!document.ok) problems.add(document.error);
  };
  return {
    names: entriesOf(servers).map(({ key }) => key),
    find(name) {
      if (!document.ok) {
        use();
        return "broken";
      }
      const known = found.get(name);
      if (known !== undefined) return known;
      const it = entriesOf(servers).find(({ key }) => key === name);
      if (it === undefined) {
        const { root } = document.value;
        if (asMap(servers) === undefined && !isTold) {
          use();
          isTold = true;
          const message = `it names no servers, which stand below \`mcpServers\`: { "mcpServers": { "NAME": { "command": "…" } } }`;
          problems.report("FLOW2003", root.at, message, { severity: "warning" });
        }
        return undefined;
      }
      use();
      const shape = shapeOf(name, it.value, problems.report) ?? "broken";
      found.set(name, shape);
      return shape;
    },
  };
}

/** JSON is YAML but for tabs, which it may be indented with; no text in it can hold one. */
function parseJson(bytes: Uint8Array, shown: string): ReturnType<typeof parseSource> {
  return parseSource(
    bytes.map((byte) => (byte === 9 ? 32 : byte)),
    shown,
  );
}

function serversIn({ root }: SourceDocument): SourceNode | undefined {
  const map = asMap(root);
  return map && (entry(map, "mcpServers") ?? entry(map, "servers"))?.value;
}

const types: { readonly [written: string]: string } = {
  stdio: "stdio",
  http: "http",
  "streamable-http": "http",
  streamableHttp: "http",
  sse: "sse",
};
const settings = ["type", "command", "args", "env", "cwd", "url", "headers", "sandbox"];
const sandboxes = ["auto", "on", "off"];

function shapeOf(name: string, node: SourceNode, report: Report): ServerShape | undefined {
  const map = asMap(node);
  if (!map) {
    report("FLOW2001", node.at, `the server \`${name}\` must be a map with \`command\` or \`url\``);
    return undefined;
  }
  const wrong = [...shapeProblems(map)];
  for (const { code, at, message } of wrong) report(code, at, `the server \`${name}\`: ${message}`);
  if (wrong.length > 0) return undefined;
  checkCommand(map, report);
  checkKind(map, report, "warning");
  for (const { key, keyAt } of map.entries) {
    if (![...settings, "description", "disabled"].includes(key))
      report("FLOW2002", keyAt, `\`${key}\` of the server \`${name}\` means nothing here and is passed over`, {
        severity: "warning",
      });
  }
  const written = asText(entry(map, "type")?.value)?.value;
  const type = written === undefined ? undefined : types[written];
  const kept = map.entries.filter(({ key }) => settings.includes(key) && key !== "type");
  const json = Object.fromEntries([
    ...kept.map(({ key, value }) => [key, toJson(value)] as const),
    ...(type === undefined ? [] : [["type", type] as const]),
  ]);
  return {
    name,
    file: projectServersFile,
    definition: { type: "data", json },
    expands: true,
    base: "workspace",
    secrets: [],
  };
}

function* shapeProblems(map: MapNode): Generator<Pick<Diagnostic, "code" | "at" | "message">> {
  const get = (key: string): SourceNode | undefined => entry(map, key)?.value;
  const [command, url, type] = [get("command"), get("url"), get("type")];
  if (command && url) yield { code: "FLOW2009", at: url.at, message: "it is either a `command` or a `url`" };
  if (!command && !url) yield { code: "FLOW2003", at: map.at, message: "it needs a `command` or a `url`" };
  for (const key of ["command", "url", "cwd"]) {
    const value = get(key);
    if (value && (asText(value)?.value.trim() ?? "") === "")
      yield { code: "FLOW2001", at: value.at, message: `\`${key}\` must be text` };
  }
  const typeText = asText(type)?.value ?? "";
  if (type && !Object.hasOwn(types, typeText))
    yield { code: "FLOW2004", at: type.at, message: `\`type\` must be ${oneOf(Object.keys(types))}` };
  else if (type && (typeText === "stdio") !== (command !== undefined))
    yield {
      code: "FLOW2009",
      at: type.at,
      message: `\`type: ${typeText}\` does not go with \`${command ? "command" : "url"}\``,
    };
  const sandbox = get("sandbox");
  if (sandbox && !sandboxes.includes(asText(sandbox)?.value ?? ""))
    yield { code: "FLOW2004", at: sandbox.at, message: `\`sandbox\` must be ${oneOf(sandboxes)}` };
  const args = get("args");
  if (args && args.kind !== "list") yield { code: "FLOW2001", at: args.at, message: "`args` must be a list of texts" };
  for (const arg of args?.kind === "list" ? itemsOf(args) : [])
    if (!isPlain(arg)) yield { code: "FLOW2001", at: arg.at, message: "an argument must be text" };
  for (const key of ["env", "headers"]) {
    const value = get(key);
    if (value && value.kind !== "map")
      yield { code: "FLOW2001", at: value.at, message: `\`${key}\` must be a map of texts` };
    for (const inner of entriesOf(value))
      if (!isPlain(inner.value))
        yield { code: "FLOW2001", at: inner.value.at, message: `\`${key}.${inner.key}\` must be text` };
  }
  const disabled = get("disabled");
  if (disabled?.kind === "scalar" && disabled.value === true)
    yield { code: "FLOW2009", at: disabled.at, message: "it is disabled, and this workflow names it" };
}

function isPlain(node: SourceNode): boolean {
  return node.kind === "scalar" && node.value !== null;
}
