import type { LogLine } from "../model/event.ts";
import type { AgentOutcome, Block, Message, StopReason, Usage } from "../model/message.ts";
import { addUsage, noUsage } from "../model/message.ts";

/** The conversation of an agent run that was cut off, as far as the log has it. */
export interface Recorded {
  /** Id of that agent run. */
  readonly agent: string;
  readonly messages: Message[];
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
const resumable: ReadonlySet<AgentOutcome> = new Set(["cancelled", "rate_limit", "provider_error", "timeout", "done"]);

/** Folds the agents' events of a log, in order. Keeps the conversations that may be gone on with, and no others. */
export class Conversations {
  readonly #byAgent = new Map<string, Recorded>();
  /** By step path: its last agent run. */
  readonly #last = new Map<string, string>();
  readonly #runs = new Map<string, number>();
  #usage = noUsage;

  add(line: LogLine): void {
    switch (line.type) {
      case "agent.started":
        this.#start(line);
        break;
      case "message":
        this.#say(line);
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
        if (!resumable.has(line.outcome)) this.#byAgent.delete(line.agent);
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
    this.#byAgent.set(agent, before === undefined ? emptyRecord(agent) : { ...before, agent });
  }

  #say({ agent, turn, message, stop, usage }: Extract<LogLine, { type: "message" }>): void {
    if (usage !== undefined) this.#usage = addUsage(this.#usage, usage);
    const recorded = this.#byAgent.get(agent);
    if (recorded === undefined) return;
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
  return { agent, messages: [], turns: 0, usage: noUsage, stop: undefined, lastUsage: noUsage, calls: new Map() };
}

/** The result of a call that was recorded; one that began and has none is not repeated, for it may have done its work. */
export function recordedResult(id: string, { text, error }: RecordedCall): Block {
  if (text === undefined) return { type: "result", id, blocks: [{ type: "text", text: unknownResult }], error: true };
  return { type: "result", id, blocks: [{ type: "text", text }], ...(error === true && { error }) };
}

export const unknownResult: string =
  "unknown: the run was interrupted while this call was running. It may have happened; it was not repeated.";
