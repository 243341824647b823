import type { Span } from "../model/diagnostic.ts";
import type { Limits, Template } from "../model/plan.ts";
import type { ServerShape } from "./server-shape.ts";
import type { WorkflowShape } from "./shape.ts";

/** What a configuration says for all workflows. */
export interface CompileDefaults {
  /** Of agents for which nobody names one. */
  readonly models: readonly Template[];
  /** Of a run whose workflow sets none of the kind. */
  readonly limits: Limits;
  /** Where it says that nobody may use an agent of that name. */
  readonly disabled: (name: string) => Span | undefined;
  readonly servers: ConfiguredServers;
}

/** MCP servers of configurations, by name: those that go before the project's `.mcp.json`, and those behind it. */
export interface ConfiguredServers {
  readonly before: ReadonlyMap<string, ServerShape>;
  readonly behind: ReadonlyMap<string, ServerShape>;
}

/** What a workflow says goes before the configuration; a run has the limits of its root. */
export function withDefaults(
  shape: WorkflowShape,
  isRoot: boolean,
  defaults: CompileDefaults | undefined,
): WorkflowShape {
  if (defaults === undefined) return shape;
  const models = shape.models.length > 0 ? shape.models : defaults.models;
  return { ...shape, models, limits: isRoot ? { ...defaults.limits, ...shape.limits } : shape.limits };
}
