import { readLimits } from "../compile/read/agent.ts";
import { asMap, textsOf } from "../compile/read/nodes.ts";
import { readPermissions } from "../compile/read/permissions.ts";
import { reportIssues } from "../compile/read/schema.ts";
import { createReport } from "../compile/report.ts";
import { checkManaged } from "../jsonschema/check-managed.ts";
import type { Diagnostic, Span } from "../model/diagnostic.ts";
import type { Limits } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Block } from "../permissions/index.ts";
import { entry, type MapNode, toJson } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";
import { type ConfigProblem, reportRules } from "./config-read.ts";

/** What a machine lets no run do. Nothing in it gives anything. */
export interface Managed {
  readonly rules: readonly Block[];
  /** Patterns of models; what is asked has to be on every list. */
  readonly models: readonly AllowList[];
  /** Names of MCP servers; what is started has to be on every list. */
  readonly servers: readonly AllowList[];
  /** Where it says that every agent has a sandbox. */
  readonly sandbox?: Span;
  /** The most of a run, and `turns`, `depth` and `children` of each agent. */
  readonly limits: Limits;
}

/** What alone is allowed, and where that is written. */
export interface AllowList {
  readonly allowed: readonly string[];
  readonly at: Span;
}

export interface ManagedFile {
  readonly path: string;
  /** As somebody would name it. */
  readonly shown: string;
}

const nothing: Managed = { rules: [], models: [], servers: [], limits: {} };

/** Reads files of which each restricts beside the others. */
export async function readManaged(files: readonly ManagedFile[]): Promise<Result<Managed, ConfigProblem>> {
  let managed = nothing;
  for (const file of files) {
    const root = await readOne(file);
    if (!root.ok) return root;
    managed = beside(managed, root.value);
  }
  return ok(managed);
}

function beside({ rules, models, servers, limits, ...before }: Managed, root: MapNode): Managed {
  const permissions = entry(root, "permissions")?.value;
  const { json, at = {} } = permissions ? readPermissions(permissions) : {};
  const sandbox = entry(root, "sandbox")?.keyAt;
  return {
    ...before,
    rules: json === undefined ? rules : [...rules, { layer: "managed", permissions: json, ...at }],
    models: [...models, ...listOf(root, "models")],
    servers: [...servers, ...listOf(root, "mcp")],
    limits: lowest(
      limits,
      readLimits(entry(root, "limits")?.value, () => undefined),
    ),
    ...(sandbox && { sandbox }),
  };
}

function listOf(root: MapNode, key: string): AllowList[] {
  const found = entry(root, key);
  return found ? [{ allowed: textsOf(found.value), at: found.keyAt }] : [];
}

/** The lower of each; a limit that only one of them has is that one's. */
export function lowest(a: Limits, b: Limits): Limits {
  const kinds = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof Limits>;
  return Object.fromEntries([...kinds].map((kind) => [kind, Math.min(a[kind] ?? Infinity, b[kind] ?? Infinity)]));
}

async function readOne({ path, shown }: ManagedFile): Promise<Result<MapNode, ConfigProblem>> {
  const bytes = await readSource(path);
  if (!bytes.ok)
    return err(problem(shown, bytes.error.code, `the managed file cannot be read: ${bytes.error.message}`));
  const sources = new Map([[shown, new TextDecoder().decode(bytes.value)]]);
  const document = parseSource(bytes.value, shown);
  if (!document.ok) return err({ diagnostics: document.error, sources });
  const root = asMap(document.value.root);
  if (root === undefined) return err(problem(shown, "FLOW2005", "the managed file is no mapping of keys"));
  const problems = createReport();
  reportIssues(root, checkManaged(toJson(root)), problems.report);
  readLimits(entry(root, "limits")?.value, problems.report);
  await reportRules(root, problems.report, "error");
  const diagnostics = problems.sorted();
  return diagnostics.length > 0 ? err({ diagnostics, sources }) : ok(root);
}

function problem(file: string, code: Diagnostic["code"], message: string): ConfigProblem {
  const at = { file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  return { diagnostics: [{ code, severity: "error", message, at }], sources: new Map() };
}
