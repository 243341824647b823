import type { SpawnedBy } from "../model/agent-event.ts";
import type { Block, Message, StopReason, Usage } from "../model/message.ts";
import { noUsage } from "../model/message.ts";
import type { CallTimes, Verdict } from "../model/ports.ts";
import type { TeamState } from "../model/team.ts";
import type { AgentResult } from "./agent-result.ts";
import { copyOf, emptyHistory, type History } from "./history.ts";

/** The conversation of an agent run that was cut off, as far as the log has it. */
export interface Recorded {
  /** Id of that agent run. */
  readonly agent: string;
  readonly messages: Message[];
  /** The messages before this index lost their old results and thinking, but not yet here. */
  trimmed: number;
  /** All replies, those too that a summary stands for. */
  replies: number;
  /** Input tokens of the first `upTo` messages, once they are known. */
  measured: { readonly tokens: number; readonly upTo: number } | undefined;
  readonly history: History;
  /** Turns whose reply is here. */
  turns: number;
  usage: Usage;
  /** How the last reply ended, while its calls are not all answered. */
  stop: StopReason | undefined;
  lastUsage: Usage;
  /** The calls of the last reply that began, by id; `text` is absent when there is no result. */
  readonly calls: Map<string, RecordedCall>;
  /** Tool calls that ran. */
  ran: number;
  /** When calls that gave a result ran. */
  readonly times: Map<Block, CallTimes>;
  /** What it wanted and nobody could be asked about, in itself and in all it spawned. */
  readonly wanting: Map<string, Verdict["rule"]>;
  /** What it spawned, by their ids. */
  readonly children: Map<string, RecordedChild>;
  /** Agent runs, and messages of its team, that it has read. */
  readonly read: Set<string>;
  /** The team it leads. */
  team?: TeamState | undefined;
}

/** A sub-agent in the log. */
export interface RecordedChild extends SpawnedBy {
  readonly id: string;
  /** The agent's name. */
  readonly agent: string;
  readonly conversation: Recorded;
  /** Absent: it was cut off. */
  readonly end?: RecordedEnd;
}

export interface RecordedEnd extends Pick<AgentResult, "outcome" | "reason" | "turns" | "usage" | "text" | "output"> {
  /** Tool calls that ran. */
  readonly calls: number;
}

export interface RecordedCall {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly began?: number | undefined;
  readonly text?: string;
  readonly error?: boolean;
  /** Of one that begins a team or adds a task: it has. */
  readonly wasTold?: true;
}

/** The conversation for somebody who goes on with it; `anew`: it had ended, and what follows counts for itself. */
export function copied(recorded: Recorded, anew: boolean): Recorded {
  const copy = { ...recorded, messages: [...recorded.messages], history: copyOf(recorded.history) };
  return anew ? { ...copy, ...noWork() } : copy;
}

export function emptyRecord(agent: string): Recorded {
  return {
    agent,
    messages: [],
    trimmed: 0,
    replies: 0,
    measured: undefined,
    history: emptyHistory(),
    children: new Map(),
    read: new Set(),
    times: new Map(),
    ...noWork(),
  };
}

function noWork(): Pick<Recorded, "turns" | "usage" | "stop" | "lastUsage" | "calls" | "ran" | "wanting"> {
  const wanting = new Map<string, Verdict["rule"]>();
  return { turns: 0, usage: noUsage, stop: undefined, lastUsage: noUsage, calls: new Map(), ran: 0, wanting };
}

/** The result of a call that was recorded; one that began and has none is not repeated, for it may have done its work. */
export function recordedResult(id: string, { text, error }: RecordedCall): Block {
  if (text === undefined) return { type: "result", id, blocks: [{ type: "text", text: unknownResult }], error: true };
  return { type: "result", id, blocks: [{ type: "text", text }], ...(error === true && { error }) };
}

export const unknownResult: string =
  "unknown: the run was interrupted while this call was running. It may have happened; it was not repeated.";
