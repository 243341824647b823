import type { AgentEvent, LogLine } from "../model/event.ts";
import type { AgentOutcome, Block, Message, StopReason, Usage } from "../model/message.ts";
import { addUsage, noUsage } from "../model/message.ts";
import { copyOf, emptyHistory, type History, remember } from "./history.ts";

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
}

export interface RecordedCall {
  readonly name: string;
  readonly text?: string;
  readonly error?: boolean;
}

/** Ends after which the conversation can be gone on with: the model was not at fault, or what came after it is missing. */
const resumable: ReadonlySet<AgentOutcome> = new Set([
  "cancelled",
  "rate_limit",
  "provider_error",
  "timeout",
  "budget",
  "done",
]);

/** Folds the agents' events of a log, in order. Keeps the conversations that may be gone on with, and no others. */
export class Conversations {
  readonly #byAgent = new Map<string, Recorded>();
  /** By step path: its last agent run. */
  readonly #last = new Map<string, string>();
  readonly #runs = new Map<string, number>();
  #usage = noUsage;

  add(line: LogLine): void {
    this.#fold(line);
    if ("agent" in line) {
      const recorded = this.#byAgent.get(line.agent);
      if (recorded !== undefined) remember(recorded.history, line);
    }
  }

  #fold(line: LogLine): void {
    switch (line.type) {
      case "agent.started":
        this.#start(line);
        break;
      case "message":
        this.#say(line);
        break;
      case "context.compressed":
        this.#shorten(line);
        break;
      case "model.retry":
      case "model.failed":
        this.#lose(line);
        break;
      case "tool.started":
        this.#byAgent.get(line.agent)?.calls.set(line.id, { name: line.name });
        break;
      case "tool.finished": {
        const { id, name, text, status } = line;
        this.#byAgent.get(line.agent)?.calls.set(id, { name, text, error: status === "error" });
        break;
      }
      case "agent.finished":
        if (!resumable.has(line.outcome) || this.#wasCutShort(line)) this.#byAgent.delete(line.agent);
        break;
      case "step.attempt.finished":
        if (line.outcome === "success") this.#byAgent.delete(this.#last.get(line.step) ?? "");
        break;
      default:
    }
  }

  /** What all replies used. */
  get usage(): Usage {
    return this.#usage;
  }

  /** The conversations left, for whoever has to bring in values that lie outside the log. */
  get left(): Iterable<Recorded> {
    return this.#byAgent.values();
  }

  /** How many agent runs the step at `path` has had. */
  runsOf(path: string): number {
    return this.#runs.get(path) ?? 0;
  }

  /** The conversation of the last agent run of the step at `path`, if a reply is in it; each is given once. */
  take(path: string): Recorded | undefined {
    const agent = this.#last.get(path) ?? "";
    const recorded = this.#byAgent.get(agent);
    this.#byAgent.delete(agent);
    return recorded?.turns === 0 ? undefined : recorded;
  }

  #start({ step, agent, parent, continues }: Extract<LogLine, { type: "agent.started" }>): void {
    const before = continues === undefined ? undefined : this.#byAgent.get(continues);
    if (parent === null) {
      this.#byAgent.delete(this.#last.get(step) ?? "");
      this.#last.set(step, agent);
      this.#runs.set(step, (this.#runs.get(step) ?? 0) + 1);
    }
    this.#byAgent.set(
      agent,
      before === undefined ? emptyRecord(agent) : { ...before, agent, history: copyOf(before.history) },
    );
  }

  /** Half an answer, for want of money: it is asked for anew. */
  #wasCutShort({ agent, outcome }: Extract<LogLine, { type: "agent.finished" }>): boolean {
    return outcome === "budget" && this.#byAgent.get(agent)?.stop === "length";
  }

  /** The reply was discarded; what it used was spent all the same. */
  #lose({ agent, usage }: Extract<LogLine, { type: "model.retry" | "model.failed" }>): void {
    if (usage === undefined) return;
    this.#usage = addUsage(this.#usage, usage);
    const recorded = this.#byAgent.get(agent);
    if (recorded !== undefined) recorded.usage = addUsage(recorded.usage, usage);
  }

  /** What was made shorter stays so: the log says how, and nothing is measured or summarised again. */
  #shorten(event: Extract<AgentEvent, { type: "context.compressed" }>): void {
    const summarises = event.how === "summarised";
    if (summarises) this.#usage = addUsage(this.#usage, event.usage);
    const recorded = this.#byAgent.get(event.agent);
    if (recorded === undefined) return;
    const { messages } = recorded;
    if (summarises) {
      const { from, to, message } = event;
      messages.splice(from, to - from, message);
      const { trimmed } = recorded;
      recorded.trimmed = trimmed > to ? trimmed - (to - from) + 1 : Math.min(trimmed, from);
      recorded.usage = addUsage(recorded.usage, event.usage);
    } else recorded.trimmed = Math.max(recorded.trimmed, event.upTo);
    recorded.measured = { tokens: event.tokens.after, upTo: messages.length };
  }

  #say({ agent, turn, message, stop, usage }: Extract<LogLine, { type: "message" }>): void {
    if (usage !== undefined) this.#usage = addUsage(this.#usage, usage);
    const recorded = this.#byAgent.get(agent);
    if (recorded === undefined) return;
    if (usage !== undefined) {
      const tokens = usage.input + usage.cacheRead + usage.cacheWrite;
      if (tokens > 0) recorded.measured = { tokens, upTo: recorded.messages.length };
      recorded.replies++;
    }
    recorded.messages.push(message);
    recorded.calls.clear();
    recorded.stop = stop;
    if (usage === undefined) return;
    recorded.turns = turn;
    recorded.lastUsage = usage;
    recorded.usage = addUsage(recorded.usage, usage);
  }
}

function emptyRecord(agent: string): Recorded {
  return {
    agent,
    messages: [],
    trimmed: 0,
    replies: 0,
    measured: undefined,
    history: emptyHistory(),
    turns: 0,
    usage: noUsage,
    stop: undefined,
    lastUsage: noUsage,
    calls: new Map(),
  };
}

/** The result of a call that was recorded; one that began and has none is not repeated, for it may have done its work. */
export function recordedResult(id: string, { text, error }: RecordedCall): Block {
  if (text === undefined) return { type: "result", id, blocks: [{ type: "text", text: unknownResult }], error: true };
  return { type: "result", id, blocks: [{ type: "text", text }], ...(error === true && { error }) };
}

export const unknownResult: string =
  "unknown: the run was interrupted while this call was running. It may have happened; it was not repeated.";
