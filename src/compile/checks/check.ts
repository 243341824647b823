import type { Diagnostic } from "../../model/diagnostic.ts";
import type { Json, JsonObject } from "../../model/json.ts";
import type { CompileDefaults } from "../defaults.ts";
import type { LinkedWorkflow } from "../linked.ts";
import type { Report } from "../report.ts";
import type { Word } from "../shape.ts";
import type { Types } from "../types.ts";

/** What a semantic rule sees: one workflow, linked, with its types. Each rule is one file beside this one. */
export interface CheckSource {
  readonly workflow: LinkedWorkflow;
  readonly types: Types;
  readonly report: Report;
  /** Tools by name: whether they come by it. */
  readonly tools: ReadonlyMap<string, boolean>;
  /** JSON Schema of the arguments of a tool that comes with flow. */
  readonly toolParameters: ToolParameters;
  /** What is wrong with the rules of a `permissions:` block; `tools` are those of the workflow itself. */
  readonly ruleProblems: RuleProblems;
  readonly modelProblem: ModelProblem;
  readonly defaults?: CompileDefaults;
  readonly skillProblems: SkillProblems;
  /** Nobody runs the workflow: it asks about an agent. */
  readonly asksAbout?: boolean;
  /** Adds problems that somebody else found. */
  readonly add: (found: readonly Diagnostic[]) => void;
}

/** What is wrong with a skill that an agent of that workflow lists. */
export type SkillProblems = (workflow: string, name: Word) => Promise<readonly Diagnostic[]>;

export type RuleProblems = (permissions: Json, tools: readonly string[]) => Promise<readonly RuleProblem[]>;

export interface RuleProblem {
  /** In the block. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly suggestion?: string;
  /** It cannot be read; otherwise it only never holds. */
  readonly broken: boolean;
}

/** What is wrong with a `model:`; with a suggestion it may be right, and only looks like a typing error. */
export type ModelProblem = (
  model: Json,
) => Promise<{ readonly message: string; readonly suggestion?: string } | undefined>;

export type ToolParameters = (tool: string) => Promise<JsonObject | undefined>;

export type Check = (source: CheckSource) => void | Promise<void>;
