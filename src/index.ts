export { check, evaluate, prepare, resume, run, runAgent } from "./flow.ts";
export type {
  AgentRequest,
  Compilation,
  Conditions,
  Prepared,
  Refusal,
  ResumeRequest,
  ResumeResult,
  Run,
  RunEnd,
  RunRequest,
  RunResult,
  WorkflowSource,
} from "./flow.ts";
export type { Diagnostic, RelatedSpan, SourceTexts, Span, TextEdit } from "./model/diagnostic.ts";
export type { Event, LogLine } from "./model/event.ts";
export type { Json, JsonObject } from "./model/json.ts";
export type { Usage } from "./model/message.ts";
export type { Failure, FailureKind, RunOutcome, SkipReason, StepOutcome } from "./model/outcome.ts";
export type { Agent, Plan, Step, Workflow } from "./model/plan.ts";
export type { Answer, Asker, FormField, OpenApproval, Question } from "./model/ports.ts";
export type { Result } from "./model/result.ts";
