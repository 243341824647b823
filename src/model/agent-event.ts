import type { AgentRunIds } from "./ids.ts";
import type { Json } from "./json.ts";
import type { AgentOutcome, Message, StopReason, Usage } from "./message.ts";
import type { Failure } from "./outcome.ts";

/** Tokens of a conversation: measured before, estimated after; `limit` is what fits, null where the window is unknown. */
export interface ContextTokens {
  readonly before: number;
  readonly after: number;
  readonly limit: number | null;
}

/** The guard rails; `output` is the one that asks for an answer of the right shape and cannot be switched off. */
export const guardRules = ["repeats", "reads", "errors", "todos", "complexity", "findings", "output"] as const;
export type GuardRule = (typeof guardRules)[number];

/** What an agent's commands ran in: a sandbox, none because that was wanted, none because the machine has none. */
export type SandboxState = "on" | "off" | "unavailable";

/** How an agent run came to be spawned. */
export interface SpawnedBy {
  /** Id of the parent's tool call; of a member of a team, its task's. */
  readonly call: string;
  /** What it is for, in a few words. */
  readonly title: string;
  /** Levels below the agent of the step, from 1. */
  readonly depth: number;
  /** Its parent did not wait for it. */
  readonly background: boolean;
  /** What its parent calls it, beside its id. */
  readonly name?: string;
}
export interface TurnIds extends AgentRunIds {
  readonly turn: number;
}

export type AgentEvent =
  | (AgentRunIds & {
      readonly type: "agent.started";
      readonly name: string;
      readonly model: string;
      readonly provider: string;
      readonly tools: readonly string[];
      /** Absent in logs of older versions, and where no rules are in force. */
      readonly sandbox?: SandboxState;
      /** The agent run whose conversation it goes on with: cut off before this resume, or ended before it was asked again. */
      readonly continues?: string;
      /** Of one that another agent spawned. */
      readonly spawned?: SpawnedBy;
    })
  | (AgentRunIds & {
      readonly type: "agent.finished";
      readonly outcome: AgentOutcome;
      readonly reason: string;
      readonly turns: number;
      readonly usage: Usage;
      readonly text: string;
      readonly output?: Json;
      readonly duration: number;
    })
  /** `request` is the sha256 of the request, the key for replay and resume. */
  | (TurnIds & {
      readonly type: "turn.started";
      readonly model: string;
      readonly provider: string;
      readonly request: string;
    })
  /** A whole message, logged before anything acts on it. `turn` 0 holds what the agent was given. */
  | (TurnIds & {
      readonly type: "message";
      readonly message: Message;
      /** Agent runs whose reports it brings. */
      readonly from?: readonly string[];
      /** Of a model's reply. */
      readonly stop?: StopReason;
      readonly usage?: Usage;
    })
  /**
   * The conversation was made shorter, because it neared the model's window: the messages before `upTo` lost their old
   * results and thinking. Indexes count the conversation as it was just before; the originals are in the log.
   */
  | (TurnIds & {
      readonly type: "context.compressed";
      readonly how: "trimmed";
      readonly tokens: ContextTokens;
      readonly upTo: number;
    })
  /** One message, written by the model, stands for the messages from `from` to before `to`. */
  | (TurnIds & {
      readonly type: "context.compressed";
      readonly how: "summarised";
      readonly tokens: ContextTokens;
      readonly from: number;
      readonly to: number;
      readonly message: Message;
      /** sha256 of the request that asked for the summary. */
      readonly request: string;
      readonly usage: Usage;
    })
  /** A guard rail spoke up; `text` is what the model is told. */
  | (TurnIds & {
      readonly type: "guard";
      readonly rule: GuardRule;
      /** `hint`: said beside what happened; `refuse`: instead of it; `stop`: the agent run ends. */
      readonly action: "hint" | "refuse" | "stop";
      readonly text: string;
      /** The call it is about: its id, and 16 hex digits that stand for tool and arguments. */
      readonly call?: string;
      readonly subject?: string;
    })
  /** The step's `check` runs, because the agent says that it is done; `count` is from 1. */
  | (TurnIds & { readonly type: "check.started"; readonly count: number })
  | (TurnIds & {
      readonly type: "check.finished";
      readonly count: number;
      /** `broken`: the command could not be run at all. */
      readonly status: "passed" | "failed" | "broken";
      /** What it printed, as the model is told it. */
      readonly text: string;
      readonly duration: number;
    })
  /** A piece of a message while it streams. Not logged unless asked for. */
  | (TurnIds & { readonly type: "message.delta"; readonly delta: Delta })
  /** A model call failed and is made again after `delay`; `attempt` counts the calls of this turn and model, from 2. */
  | (TurnIds & {
      readonly type: "model.retry";
      readonly model: string;
      readonly provider: string;
      readonly attempt: number;
      readonly delay: number;
      readonly error: Failure;
      /** What the failed call used: its partial reply is discarded. */
      readonly usage?: Usage;
    })
  /** A model failed and is not asked again; `attempt` is the number of calls that were made. */
  | (TurnIds & {
      readonly type: "model.failed";
      readonly model: string;
      readonly provider: string;
      readonly attempt: number;
      readonly error: Failure;
      readonly usage?: Usage;
    })
  /** The model `from` failed, and the next of its list is asked for the rest of the agent run. */
  | (TurnIds & {
      readonly type: "model.fallback";
      readonly from: string;
      readonly model: string;
      readonly provider: string;
      /** As in `turn.started`, now of the request to `model`. */
      readonly request: string;
    })
  /** Something about the model's provider that a person should know and that changes nothing. */
  | (TurnIds & { readonly type: "model.warning"; readonly model: string; readonly note: string })
  | (TurnIds & {
      readonly type: "turn.finished";
      readonly stop: StopReason;
      readonly usage: Usage;
      readonly duration: number;
    })
  /** Set aside for the model call that follows; sent only where a limit on tokens or cost is in force. */
  | (TurnIds & {
      readonly type: "budget.reserved";
      readonly tokens: number;
      /** US dollars; null where the price is unknown. */
      readonly cost: number | null;
    })
  /** What that call took, however it ended. */
  | (TurnIds & {
      readonly type: "budget.settled";
      readonly tokens: number;
      readonly cost: number | null;
      /** True when the server did not say, so that it is our estimate. */
      readonly estimated: boolean;
    })
  /** A limit that could not pay for the next call: it was not made. */
  | (TurnIds & {
      readonly type: "budget.exceeded";
      readonly limit: "cost" | "tokens";
      /** Whose limit: `the run`, a step, an agent. */
      readonly of: string;
      readonly most: number;
      /** Null where the price of something that was spent is unknown. */
      readonly spent: number | null;
      /** What the call could have taken; null where its price is unknown. */
      readonly worst: number | null;
    })
  /** What the rules say of a call that is about to begin; one that was not allowed has no `tool.started`. */
  | (TurnIds & {
      readonly type: "permission.judged";
      readonly id: string;
      readonly name: string;
      /** `ask`: nobody was there to be asked, so it did not go ahead. */
      readonly decision: "allow" | "ask" | "deny";
      /** The rule that decided, as it was written, and where. */
      readonly rule: string;
      readonly layer: string;
      readonly file?: string;
      readonly line?: number;
      /** The narrowest rules that together would allow it; absent when it is allowed. */
      readonly toAllow?: readonly string[];
    })
  | (TurnIds & { readonly type: "tool.started"; readonly id: string; readonly name: string; readonly args: Json })
  | (TurnIds & {
      readonly type: "tool.finished";
      readonly id: string;
      readonly name: string;
      readonly status: "completed" | "error";
      /** The result as the model sees it, capped; the whole is in `file` when it was longer. */
      readonly text: string;
      readonly file?: string;
      readonly duration: number;
    });

export type Delta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string }
  | { readonly type: "call.started"; readonly id: string; readonly name: string }
  | { readonly type: "call.args"; readonly id: string; readonly text: string };
