import type { JsonObject } from "../../model/json.ts";
import type { LinkedWorkflow } from "../linked.ts";
import type { Report } from "../report.ts";
import type { Types } from "../types.ts";

/** What a semantic rule sees: one workflow, linked, with its types. Each rule is one file beside this one. */
export interface CheckSource {
  readonly workflow: LinkedWorkflow;
  readonly types: Types;
  readonly report: Report;
  /** Tools by name: whether flow has them already. */
  readonly tools: ReadonlyMap<string, boolean>;
  /** JSON Schema of the arguments of a tool that flow has already. */
  readonly toolParameters: ToolParameters;
}

export type ToolParameters = (tool: string) => Promise<JsonObject | undefined>;

export type Check = (source: CheckSource) => void | Promise<void>;
