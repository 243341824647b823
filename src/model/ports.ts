import type { SandboxState } from "./agent-event.ts";
import type { ApprovalAnswer, ApprovalRequest, CacheMiss, Event } from "./event.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Block, Message, StopReason, Usage } from "./message.ts";
import type { FailureKind, SeenValue, StepResult } from "./outcome.ts";
import type { Step, Workflow } from "./plan.ts";
import type { Result } from "./result.ts";

/** The only way a layer reports. Never throws, never waits. */
export type Emit = (event: Event) => void;

/** Time, so that tests can own it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970; for stamps only. */
  now(): number;
  /** Monotonic milliseconds; for every duration and deadline. */
  monotonic(): number;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** Whole milliseconds since `start`, a {@link Clock.monotonic} time: what events carry as `duration`. */
export function elapsed(clock: Clock, start: number): number {
  return Math.round(clock.monotonic() - start);
}

/** One attempt of one step, as the engine hands it to its kind. */
export interface Attempt {
  readonly step: Step;
  readonly path: string;
  /** From 1. */
  readonly attempt: number;
  /** The step's `inputs` template, resolved. */
  readonly inputs: JsonObject;
  readonly signal: AbortSignal;
  /** Absolute: the folder that stands for the run's workspace, of an execution that has a worktree of its own. */
  readonly workspace?: string;
  /** An attempt of the same definition and inputs was cut off before this resume: what is left of it may be gone on with. */
  readonly resumes?: boolean;
  /** Milliseconds the step gives it. That clock stands still in a {@link Wait}: a kind that waits keeps its own time. */
  readonly timeout?: number;
  /** Absent where nothing may wait, in an `undo`. */
  readonly wait?: Wait;
  /** The limits on tokens and money around it; absent where none is in force. */
  readonly budget?: Budget;
  /** The most turns an agent run may take by the limits around it; absent where none says so. */
  readonly turns?: number;
}

/**
 * Waits for somebody outside without keeping anything: no slot, no place in a loop, no time of the limits around. Gives
 * undefined when there is nothing to wait for any more. `isHere`: the answer may come while the run goes on; when all
 * that is left waits for answers that may not, the run ends as `waiting` and this never settles.
 */
export type Wait = <T>(answer: Promise<T>, isHere: boolean) => Promise<T | undefined>;

/** Tokens and US dollars; the cost is null where the price is unknown. */
export interface Spend {
  readonly tokens: number;
  readonly cost: number | null;
}

/** A limit on what is spent within something: a run, a step, one agent run. */
export interface SpendLimit {
  /** Whose it is, as a message names it: `the run`, `step \`x\``. */
  readonly of: string;
  readonly tokens?: number | undefined;
  /** US dollars. */
  readonly cost?: number | undefined;
  /** What was spent under it before. */
  readonly spent?: Spend;
}

/** The limits on tokens and money around somebody who spends, from the nearest outward to the run's. */
export interface Budget {
  /**
   * Sets the worst case aside in every limit around before anything is spent. While calls in flight hold what would be
   * enough it waits, first come, first served; the error is a limit that cannot pay it any more, or the abort.
   */
  reserve(worst: Spend, signal: AbortSignal): Promise<Result<Reservation, OverBudget | { readonly kind: "cancelled" }>>;
  /** What is not spent yet of the tightest limit around, calls in flight not counted; Infinity where none is. */
  left(): { readonly tokens: number; readonly cost: number };
  /** A limit more, inside these. */
  within(limit: SpendLimit): Budget;
}

/** Why a limit cannot pay for a call. */
export interface OverBudget {
  readonly kind: "budget";
  readonly message: string;
  readonly limit: "cost" | "tokens";
  /** Whose limit: {@link SpendLimit.of}. */
  readonly of: string;
  readonly most: number;
  /** Infinity when the price of something that was spent is unknown. */
  readonly spent: number;
  /** What the call could take; null when its price is unknown. */
  readonly worst: number | null;
}

/** Money set aside for one call. It has to be settled, once, however the call ends. */
export interface Reservation {
  /** A cost that is unknown counts as the worst. */
  settle(actual: Spend): void;
}

/** A person who can be asked while the run goes on. */
export interface Asker {
  /** Undefined when the question is left open, or the signal came first. Never rejects. */
  ask(question: Question, signal: AbortSignal): Promise<Answer | undefined>;
}

/** What somebody says to a question. */
export interface Answer {
  readonly decision: ApprovalAnswer["decision"];
  /** None when absent. */
  readonly comment?: string;
  /** Values of the form that goes with a yes; what is absent takes its default. */
  readonly form?: JsonObject;
  /** Who says it; when absent, who the run knows. */
  readonly by?: string;
}

export interface OpenApproval extends ApprovalRequest {
  /** Of the form, in the order they are written. */
  readonly fields: readonly FormField[];
}

export interface Question extends OpenApproval {
  /** Of an `approve` step, or of an agent that wants to do what the rules leave to a person. */
  readonly about: "approval" | "permission";
  /** What somebody typed for a field as the value it means; the error says what would fit. */
  readonly read: (field: FormField, text: string) => Promise<Result<Json, string>>;
  /** What is wrong with all values together; empty when nothing is. */
  readonly check: (values: JsonObject) => Promise<readonly string[]>;
}

export interface FormField {
  readonly name: string;
  /** As in the schema; `text` when it says nothing. */
  readonly type: string;
  readonly description?: string;
  readonly choices?: readonly string[];
  readonly default?: Json;
  readonly required: boolean;
}

/** Runs one attempt. A kind that needs no waiting may answer at once. Never throws for an expected failure. */
export type Execute = (attempt: Attempt) => StepResult | Promise<StepResult>;

/** What decides whether an execution is the same as an earlier one. A secret stands in it by its name, never by its value. */
export interface CacheQuestion {
  readonly step: Step;
  /** The one the step is written in. */
  readonly workflow: Workflow;
  readonly path: string;
  /** Absent outside a `foreach`. */
  readonly item?: Json;
  /** What the author's own key is. */
  readonly key?: Json;
  /** Globs, relative to the workspace. */
  readonly files: readonly string[];
  /** What the body is given; absent where that is known only inside: in a group, in a loop. */
  readonly inputs?: JsonObject;
  /** What is read from around the step beside its inputs. */
  readonly reads: readonly SeenValue[];
}

/** The outputs of an earlier execution: of which run, and when they were kept (RFC 3339). */
export interface CacheHit {
  readonly outputs: Json;
  readonly run: string;
  readonly stored: string;
}

/** What is known of an execution. */
export interface CacheAnswer {
  /** sha256 (hex) of everything that decides. */
  readonly key: string;
  readonly found: { readonly hit: CacheHit } | { readonly miss: CacheMiss };
  /** Keeps the outputs of its success. Never throws. */
  keep(outputs: Json): void;
}

/** The outputs of earlier executions. */
export interface Cache {
  /** The error is a question that cannot be answered: too many files. */
  ask(question: CacheQuestion): Promise<Result<CacheAnswer, string>>;
}

/** One model call, complete and deterministic: equal requests have equal text. */
export interface ModelRequest {
  readonly model: string;
  /** The name of the agent and the path of the step that ask; `scripted` finds its lines by them. */
  readonly agent: string;
  readonly step: string;
  /** Replies of this conversation that a summary among the messages stands for; `scripted` counts them. Absent: none. */
  readonly earlier?: number;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** `required`: the model must call some tool. */
  readonly toolChoice?: "auto" | "required";
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxOutput?: number;
  /** What can be paid for, in the place of `maxOutput`; it changes nothing of what is asked, and so not the request's hash. */
  readonly payableOutput?: number;
  readonly effort?: string;
  /** JSON Schema of the whole answer, root `type: object`; only where {@link ModelFacts.jsonSchema} holds and no tool is open. */
  readonly answerSchema?: JsonObject;
  /** Fields of the provider's own, added to the wire request as they are. */
  readonly options?: JsonObject;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, root `type: object`. */
  readonly parameters: JsonObject;
}

export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly field?: string; readonly signature?: string }
  /** A call begins; `index` is its place in the message. */
  | { readonly type: "call"; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: "args"; readonly index: number; readonly text: string }
  /** Always the last, unless `failed` is. */
  | { readonly type: "done"; readonly stop: StopReason; readonly usage: Usage }
  /** `usage`: what the server had read and written by then; absent when it had not begun. */
  | { readonly type: "failed"; readonly failure: ModelFailure; readonly usage?: Usage }
  /** Something a person should know that changes nothing: an option the model cannot be given, an odd end. */
  | { readonly type: "warning"; readonly message: string };

export interface ModelFailure {
  readonly kind:
    | Extract<
        FailureKind,
        "rate_limit" | "provider_error" | "unavailable" | "timeout" | "overflow" | "refused" | "budget" | "internal"
      >
    | "cancelled";
  readonly message: string;
  readonly status?: number;
  /** Milliseconds the server asked us to wait. */
  readonly retryAfter?: number;
  /** Whether the same request may succeed a little later. */
  readonly transient: boolean;
}

/** What is known of a model. Absent: unknown. */
export interface ModelFacts {
  /** Tokens of its context window, input and output together. */
  readonly window?: number;
  /** Tokens of its longest reply. */
  readonly maxOutput?: number;
  /** Whether the provider itself holds an answer to a JSON schema. */
  readonly jsonSchema: boolean;
  /** Keywords that its provider refuses at the root of a JSON schema. */
  readonly refusedAtRoot?: readonly string[];
  /** US dollars of these tokens; null when the price is unknown. */
  readonly cost: (usage: Omit<Usage, "cost" | "estimated">) => number | null;
}

export const unknownFacts: ModelFacts = { jsonSchema: false, cost: () => null };

/** One model behind one wire protocol. The stream ends in `done` or `failed` and never throws. */
export interface ModelClient {
  /** `openai`, `scripted`, …: written to the log. */
  readonly provider: string;
  readonly facts: ModelFacts;
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelDelta>;
}

/** A tool a model may call. */
export interface Tool extends ToolSpec {
  /** Read-only calls of one message run together. */
  readonly readOnly: boolean;
  /** All its calls of one message run together, as many as there are: it has limits of its own. */
  readonly concurrent?: true;
  /** A call that was cut off is made again on resume, and goes on where it was. */
  readonly goesOn?: true;
  /** All it does is told by events: a call that was cut off before one of them has done nothing, and is made again on resume. */
  readonly told?: true;
  /** Its calls change nothing but the agent's rights: a resume makes those of before once more. */
  readonly narrows?: true;
  /**
   * Takes up again what a call of before a resume, which gave a result, left in mind. `times` are those of its begin and its
   * end, in milliseconds since 1970.
   */
  recall?(args: JsonObject, call: ToolCall, times: CallTimes): Promise<void>;
  /** Belongs to the loop itself: no rule speaks of it. */
  readonly unjudged?: true;
  /** What other programs call it and its parameters; a model that learned those is understood. */
  readonly aliases?: { readonly names: readonly string[]; readonly parameters: { readonly [theirs: string]: string } };
  /** Arguments are checked against `parameters` before this is called. An error is text the model can read. */
  run(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>>;
}

export interface CallTimes {
  readonly started: number;
  readonly finished: number;
}

export interface ToolCall {
  /** Absolute path of the folder the agent works in; nothing outside is reachable. */
  readonly workspace: string;
  readonly signal: AbortSignal;
  /** The id the model gave it. Absent where no model calls. */
  readonly id?: string;
  /** Whether a file, by its path from the workspace, may be shown. Absent: every one that tools may read. */
  readonly mayRead?: (path: string) => boolean;
  /**
   * What the agent has seen of each file, by absolute path: a mark that changes when the file does. Absent where no agent
   * calls: then nothing has to be read before it is written.
   */
  readonly seen?: Map<string, string>;
  /** The sandbox its commands are started in. */
  readonly launch?: { readonly prefix: readonly string[] };
  /** From now on the agent may do no more than these rules say, each `Tool` or `Tool(pattern)`, and its own list. */
  readonly narrow?: (rules: readonly string[]) => void;
}

/** What the rules say of one tool call. */
export interface Verdict {
  readonly decision: "allow" | "deny" | "ask";
  /** The rule that decided, as it was written, with its layer (`default`, `user`, `project`, `workflow`, …), file and line. */
  readonly rule: { readonly text: string; readonly layer: string; readonly file?: string; readonly line?: number };
  /** The narrowest rules that together would allow the call, each as `Tool(pattern)`; empty where no rule can. */
  readonly toAllow: readonly string[];
}

/** Judges a tool call before it runs. Never throws. */
export type Judge = (call: JudgedCall) => Promise<Verdict>;

export interface JudgedCall {
  readonly tool: string;
  readonly args: JsonObject;
  /** Somebody wants a person to be asked, also where the rules allow it. */
  readonly asks?: boolean;
  /** Who may answer for a person where the rules ask; undefined: that is left to them. */
  readonly answer?: () => Promise<"allow" | "deny" | undefined>;
  /** False: the verdict is one of several, of which another may decide. */
  readonly counts?: boolean;
  /** Aborted when nobody waits for the verdict any more: nobody is asked then. */
  readonly signal?: AbortSignal;
}

/** What one agent run may do. */
export interface Rights {
  readonly judge: Judge;
  /** The most that some call of the tool could get; with a name, what calls of that name get. */
  reach(tool: string, name?: string): Verdict["decision"];
  /**
   * Those of an agent that this one spawns, and has a `name` for: its own, and never more than these. Absent where nothing
   * can be spawned.
   */
  child?(attempt: Attempt, name?: string): Rights;
  /** Whether a file, by its path from the workspace, may be shown. */
  mayRead(path: string): boolean;
  /** Takes away what these rules, each `Tool` or `Tool(pattern)`, do not speak of. Gives nothing. */
  narrow?(rules: readonly string[]): void;
  /** The sandbox its commands are started in; absent: none. */
  readonly launch?: { readonly prefix: readonly string[] };
  readonly sandbox?: SandboxState;
}

export interface ToolOutput {
  readonly blocks: readonly Block[];
  readonly structured?: Json;
}
