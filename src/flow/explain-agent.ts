import type { Dialect, Field } from "../compile/dialects/index.ts";
import { asMap, textOf } from "../compile/read/nodes.ts";
import type { AgentShape } from "../compile/shape.ts";
import { defaultChildrenAtOnce, defaultDepth, defaultTurns } from "../model/defaults.ts";
import type { Diagnostic, SourceTexts, Span } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import type { Plan } from "../model/plan.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { entry, type MapNode, toJson } from "../source/document.ts";
import { languageTools } from "../tools/names.ts";
import type { AgentsRequest } from "./agents.ts";
import { check } from "./check.ts";
import type { Config, Setting } from "./config.ts";
import type { Managed } from "./managed-read.ts";
import { agentSteps, placeless, sourceOf } from "./permit.ts";
import { serversOfPlan } from "./plan-servers.ts";
import { createRights } from "./rights.ts";
import { createSandboxes } from "./sandboxes.ts";
import { configIn, wishesOf } from "./wishes.ts";

/** One value an agent runs with, and who says so. */
export interface Effective {
  readonly key: string;
  readonly value: Json;
  /** `agent`, a layer of the configuration, or `default`. */
  readonly layer: string;
  /** `file:line`; absent for a default. */
  readonly place?: string;
}

export interface AgentExplanation {
  readonly name: string;
  readonly description: string | null;
  readonly file: string;
  readonly dialect: Dialect | "flow";
  /** Of a file of another program, each field as it is written there. */
  readonly fields: readonly (Omit<Field, "at"> & { readonly line: number })[];
  readonly effective: readonly Effective[];
  /** The most that some call of each tool could get: `deny` is not offered. */
  readonly tools: readonly { readonly name: string; readonly most: string }[];
  /** Rules that somebody wrote, in the order they count. */
  readonly rules: readonly {
    readonly rule: string;
    readonly decision: string;
    readonly layer: string;
    readonly place?: string;
  }[];
  /** The MCP servers it is given, and what defines each. */
  readonly servers: readonly { readonly name: string; readonly file: string }[];
  readonly warnings: readonly Diagnostic[];
}

export type Explained =
  | { readonly kind: "explained"; readonly agent: AgentExplanation; readonly sources: SourceTexts }
  | { readonly kind: "invalid"; readonly diagnostics: readonly Diagnostic[]; readonly sources: SourceTexts }
  | { readonly kind: "usage"; readonly message: string };

/** What an agent, by its name or file, comes to in a run of this place. */
export async function explainAgent(
  name: string,
  { cwd = process.cwd(), env = process.env }: AgentsRequest,
): Promise<Explained> {
  const { plan, agents, diagnostics, sources } = await check({ ...sourceOf(name), cwd, env });
  const shape = agents?.()[0];
  const refused = plan ? undefined : placeless(name, diagnostics);
  if (refused !== undefined) return { kind: "usage", message: refused };
  if (!plan || !shape) return { kind: "invalid", diagnostics, sources };
  const place = { cwd, workspace: workspaceOf(cwd), env };
  const config = await configIn(place);
  if (!config.ok) return { kind: "usage", message: config.error };
  const wishes = await wishesOf({}, place);
  if (!wishes.ok) return { kind: "usage", message: wishes.error };
  const sandboxes = createSandboxes({ ...wishes.value, env });
  const rights = createRights({ ...wishes.value, plan, workspace: place.workspace, sandboxes, asker: undefined });
  if (!rights.ok) return { kind: "usage", message: rights.error };
  const attempt = { ...firstStep(plan), signal: new AbortController().signal };
  const granted = rights.value.of(attempt);
  const offered = shape.agent.tools ?? [...languageTools].flatMap(([tool, isHere]) => (isHere ? [tool] : []));
  const { agent, foreign } = shape;
  const explained: AgentExplanation = {
    name: agent.name,
    description: agent.description ?? null,
    file: agent.at.file,
    dialect: foreign?.dialect ?? "flow",
    fields: (foreign?.fields ?? []).map(({ at, ...field }) => ({ ...field, line: at.line })),
    effective: effectiveOf(shape, config.value, wishes.value.managed),
    tools: offered.map((tool) => ({ name: tool, most: granted.reach(tool) })),
    rules: (rights.value.counted()?.rules ?? []).map(({ rule, decision, layer, file, line }) => ({
      rule,
      decision,
      layer,
      ...(file !== undefined && { place: line === undefined ? file : `${file}:${line}` }),
    })),
    servers: serversOfPlan(plan).map((server) => ({ name: server.name, file: server.file })),
    warnings: diagnostics,
  };
  return { kind: "explained", agent: explained, sources };
}

function firstStep(plan: Plan): {
  readonly step: Plan["workflows"][string]["scope"]["steps"][number];
  readonly path: string;
} {
  const scope = plan.workflows[plan.root]?.scope;
  const [first] = scope ? agentSteps(scope, plan, "") : [];
  if (first === undefined) throw new Error("the plan of an agent has no step");
  return first;
}

/** Every key with what holds where nobody writes it. */
const keys: readonly (readonly [key: string, otherwise: Json])[] = [
  ["model", "the step's or the workflow's"],
  ["mode", "all"],
  ["tools", "those the rules let it use"],
  ["permissions", "the rules of the run"],
  ["limits.turns", defaultTurns],
  ["limits.tokens", null],
  ["limits.cost", null],
  ["limits.duration", null],
  ["limits.depth", defaultDepth],
  ["limits.children", null],
  ["limits.parallel", defaultChildrenAtOnce],
  ["temperature", "the provider's"],
  ["top-p", "the provider's"],
  ["max-output", "the model's"],
  ["effort", "the provider's"],
  ["sandbox", "auto"],
  ["approval", "the rules alone"],
  ["guards", true],
  ["instructions-files", "auto"],
  ["skills", []],
  ["subagents", []],
  ["team", null],
  ["mcp", []],
  ["hooks", {}],
  ["memory", "none"],
  ["output", null],
  ["options", {}],
];

function effectiveOf(
  shape: AgentShape,
  config: Config | undefined,
  managed: Pick<Managed, "sandbox"> | undefined,
): Effective[] {
  return keys.map(([key, otherwise]) => {
    if (key === "sandbox" && managed?.sandbox)
      return { key, value: "on", layer: "managed", place: placeOf(managed.sandbox) };
    const [first = "", second] = key.split(".");
    const found = second === undefined ? entry(shape.node, first) : innerEntry(shape.node, first, second);
    if (found) {
      const isText = key === "description";
      const value = isText ? (textOf(found.value) ?? "") : toJson(found.value);
      return { key, value, layer: "agent", place: placeOf(found.keyAt) };
    }
    const setting = config && configured(config, key);
    if (setting) return { key, value: setting.value, layer: setting.layer, place: placeOf(setting.at) };
    return { key, value: otherwise, layer: "default" };
  });
}

function innerEntry(node: MapNode, first: string, second: string): ReturnType<typeof entry> {
  const inner = asMap(entry(node, first)?.value);
  return inner && entry(inner, second);
}

function configured(config: Config, key: string): Setting<Json> | undefined {
  if (key === "model") return config.model;
  if (key === "sandbox") return config.sandbox;
  if (key === "hooks") return config.hooks.at(-1);
  const kind = key.startsWith("limits.") ? key.slice("limits.".length) : "";
  const limits: { readonly [kind: string]: Setting<number> | undefined } = config.limits;
  if (Object.hasOwn(limits, kind)) return limits[kind];
  return undefined;
}

function placeOf({ file, line }: Span): string {
  return `${file}:${line}`;
}
