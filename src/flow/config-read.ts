import { readLimits } from "../compile/read/agent.ts";
import { visit as findCredentials } from "../compile/checks/credentials.ts";
import type { Reader } from "../compile/read/expression.ts";
import { asMap, entriesOf as nodesOf, textOf } from "../compile/read/nodes.ts";
import { filePlace } from "../compile/read/place.ts";
import { reportIssues } from "../compile/read/schema.ts";
import { readServers } from "../compile/read/servers.ts";
import { createReport, type Report } from "../compile/report.ts";
import type { ServerShape } from "../compile/server-shape.ts";
import { checkConfig } from "../jsonschema/check-config.ts";
import type { SchemaIssue } from "../jsonschema/issue.ts";
import type { Diagnostic, SourceTexts, Span } from "../model/diagnostic.ts";
import { err, ok, type Result } from "../model/result.ts";
import { addressProblem } from "../providers/catalog.ts";
import { entry, type MapNode, nodeAt, type SourceDocument, type SourceNode, toJson } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";
import type { ConfigSource } from "./config-files.ts";

export interface ConfigProblem {
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

/** One configuration that has no mistake. */
export interface ReadConfig {
  readonly root: MapNode;
  readonly servers: ReadonlyMap<string, ServerShape & { readonly at: Span }>;
  readonly warnings: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

export async function readOne(source: ConfigSource): Promise<Result<ReadConfig, ConfigProblem>> {
  const { file, text, shown } = source;
  const read = file === undefined ? ok(new TextEncoder().encode(text ?? "")) : await readSource(file);
  if (!read.ok) {
    const { code, message } = read.error;
    return err({ diagnostics: [problemAt(shown, code, `cannot be read: ${message}`)], sources: new Map() });
  }
  const sources = new Map([[shown, new TextDecoder().decode(read.value)]]);
  const document = parseSource(read.value, shown);
  if (!document.ok) return err({ diagnostics: document.error, sources });
  const root = asMap(document.value.root);
  if (root === undefined) return err({ diagnostics: [problemAt(shown, "FLOW2005", "is no mapping of keys")], sources });
  const problems = createReport();
  const issues = checkConfig(toJson(root));
  reportIssues(root, issues, problems.report);
  readLimits(entry(root, "limits")?.value, problems.report);
  reportNames(root, issues, problems.report);
  refuseLimits(entry(root, "limits")?.value, problems.report);
  await reportRules(root, problems.report, "warning");
  reportProviders(root, problems.report);
  const servers = serversOf(document.value, root, { source, report: problems.report });
  const diagnostics = problems.sorted();
  const isUsable = diagnostics.every(({ severity }) => severity !== "error");
  return isUsable ? ok({ root, servers, warnings: diagnostics, sources }) : err({ diagnostics, sources });
}

/** They are those of a run, of which no agent asks for what bounds the sub-agents of one. */
function refuseLimits(node: SourceNode | undefined, report: Report): void {
  for (const { key, keyAt } of nodesOf(node))
    if (key === "depth" || key === "children")
      report(
        "FLOW2008",
        keyAt,
        `\`limits.${key}\` makes no sense in a configuration: it bounds what one agent spawns, so write it in an agent`,
      );
}

/** Names of servers are judged where they are read. */
function reportNames(root: MapNode, issues: readonly SchemaIssue[], report: Report): void {
  for (const { problem, path: at } of issues) {
    if (problem.kind !== "name" || at[0] === "mcp") continue;
    const what =
      at[0] === "models" ? "a model is named `provider/name`" : "a provider is named in small letters, digits and `-`";
    report("FLOW3001", nodeAt(root, [...at, problem.key])?.keyAt ?? root.at, what);
  }
}

function reportProviders(root: MapNode, report: Report): void {
  for (const { key, keyAt, value } of nodesOf(entry(root, "providers")?.value)) {
    const map = asMap(value);
    const address = map && entry(map, "base-url")?.value;
    const unusable = address && addressProblem(textOf(address) ?? "http://x");
    if (address && unusable !== undefined) report("FLOW3001", address.at, `\`base-url\` ${unusable}`);
    if (key === "scripted") report("FLOW3001", keyAt, `the provider \`scripted\` stands for files: ${ofScripts}`);
  }
  for (const { key, keyAt } of nodesOf(entry(root, "models")?.value))
    if (key.startsWith("scripted/")) report("FLOW3001", keyAt, `\`${key}\` is a file: ${ofScripts}`);
}

/** Servers as a workflow would define them, but that a configuration has neither inputs nor variables. */
function serversOf(
  document: SourceDocument,
  root: MapNode,
  { source, report }: { readonly source: ConfigSource; readonly report: Report },
): ReadConfig["servers"] {
  const node = entry(root, "mcp")?.value;
  if (node === undefined) return new Map();
  const reader: Reader = { document, report, uses: [] };
  const place = filePlace("`mcp` of a configuration", ["secrets"]);
  const shapes = readServers(reader, node, { file: source.name, place, base: "workspace" });
  findCredentials(document, node, report);
  return new Map(
    nodesOf(node).flatMap(({ key, keyAt }) => {
      const shape = shapes.get(key);
      return shape === undefined ? [] : [[key, { ...shape, at: keyAt }] as const];
    }),
  );
}

/** Rules nobody can read would otherwise be missed in silence. One that never holds may speak of a workflow's own tool. */
/**
 * A rule for a tool that nobody knows may be for one of some workflow; where it is nearly the name of another, it is a slip,
 * and it leaves open what somebody wanted to be sure of.
 */
export async function reportRules(root: MapNode, report: Report, slips: Diagnostic["severity"]): Promise<void> {
  const block = entry(root, "permissions")?.value;
  if (block?.kind !== "map") return;
  const [{ checkRules }, { canonicalToolName, judgedTools }, { isSecretFile }] = await Promise.all([
    import("../permissions/index.ts"),
    import("../tools/names.ts"),
    import("../tools/secret-files.ts"),
  ]);
  const vocabulary = { tools: judgedTools, canonical: canonicalToolName, isSecret: isSecretFile };
  for (const { path, message, suggestion, broken } of checkRules(
    { layer: "project", permissions: toJson(block) },
    vocabulary,
  )) {
    if (!broken && suggestion === undefined) continue;
    const at = nodeAt(block, path);
    report(broken ? "FLOW6008" : "FLOW6007", at?.keyAt ?? at?.node.at ?? block.at, message, {
      severity: broken ? "error" : slips,
      ...(suggestion !== undefined && { suggestion }),
    });
  }
}

const ofScripts = "`price`, `window` and `max-output` of a script stand in the script itself";

export function problemAt(file: string, code: Diagnostic["code"], message: string): Diagnostic {
  const at = { file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  return { code, severity: "error", message: `the configuration ${message}`, at };
}
