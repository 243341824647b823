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
}

export type Check = (source: CheckSource) => void | Promise<void>;
