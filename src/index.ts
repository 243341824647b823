export { check, evaluate, prepare, resume, run } from "./flow.ts";
export type {
  Compilation,
  Conditions,
  Given,
  Prepared,
  Refusal,
  ResumeRequest,
  ResumeResult,
  RunEnd,
  RunRequest,
  RunResult,
  WorkflowSource,
} from "./flow.ts";
export type { Diagnostic, RelatedSpan, SourceTexts, Span, TextEdit } from "./model/diagnostic.ts";
export type { Event, LogLine } from "./model/event.ts";
export type { Json, JsonObject } from "./model/json.ts";
export type { Failure, FailureKind, RunOutcome, SkipReason, StepOutcome } from "./model/outcome.ts";
export type { Agent, Plan, Step, Workflow } from "./model/plan.ts";
