import type { AgentEvent } from "../model/agent-event.ts";
import type { Event } from "../model/event.ts";
import { isJsonObject } from "../model/json.ts";
import type { AgentOutcome } from "../model/message.ts";
import { addUsage, noUsage, type Usage } from "../model/message.ts";
import { usageOf } from "../model/spending.ts";
import { foldTeam, isOfTeam, type TeamEvent } from "../model/team.ts";
import { remember } from "./history.ts";
import { copied, emptyRecord, type Recorded, type RecordedChild } from "./recorded.ts";

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
  #spawned = 0;
  #usage = noUsage;

  add(line: Event): void {
    this.#fold(line);
    const used = usageOf(line);
    if (used !== undefined) this.#usage = addUsage(this.#usage, used);
    if ("agent" in line) {
      const recorded = this.#byAgent.get(line.agent);
      if (recorded !== undefined && !isOfTeam(line)) remember(recorded.history, line);
    }
  }

  #fold(line: Event): void {
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
      case "tool.started": {
        const recorded = this.#byAgent.get(line.agent);
        recorded?.calls.set(line.id, { name: line.name, began: timeOf(line) });
        if (recorded) recorded.ran++;
        break;
      }
      case "permission.judged":
        this.#want(line);
        break;
      case "tool.finished": {
        const { id, name, text, status } = line;
        if (status === "completed") this.#clock(line);
        this.#byAgent.get(line.agent)?.calls.set(id, { name, text, error: status === "error" });
        break;
      }
      case "agent.finished":
        if (line.parent !== null) this.#end(line);
        else if (!resumable.has(line.outcome) || this.#wasCutShort(line)) this.#forget(line.agent);
        break;
      case "step.attempt.finished":
        if (line.outcome === "success") this.#forget(this.#last.get(line.step) ?? "");
        break;
      default:
        if (isOfTeam(line)) this.#lead(line);
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

  /** How many agent runs were spawned by others. */
  get spawned(): number {
    return this.#spawned;
  }

  /** How many agent runs the step at `path` has had. */
  runsOf(path: string): number {
    return this.#runs.get(path) ?? 0;
  }

  /** The conversation of the last agent run of the step at `path`, if a reply is in it; each is given once. */
  take(path: string): Recorded | undefined {
    const agent = this.#last.get(path) ?? "";
    const recorded = this.#byAgent.get(agent);
    this.#forget(agent);
    return recorded?.turns === 0 ? undefined : recorded;
  }

  #start({ step, agent, parent, continues, name, spawned }: Extract<Event, { type: "agent.started" }>): void {
    const family = parent === null ? undefined : this.#byAgent.get(parent)?.children;
    const sibling = family?.get(continues ?? "");
    const before = this.#byAgent.get(continues ?? "") ?? sibling?.conversation;
    const isOver = sibling?.end !== undefined;
    const conversation = before ? { ...copied(before, isOver), agent } : emptyRecord(agent);
    if (parent === null) {
      const last = this.#last.get(step) ?? "";
      // Its children are those of whoever goes on with it.
      if (last === continues) this.#byAgent.delete(last);
      else this.#forget(last);
      this.#last.set(step, agent);
      this.#runs.set(step, (this.#runs.get(step) ?? 0) + 1);
    }
    this.#byAgent.set(agent, conversation);
    if (spawned === undefined) return;
    const isAgain = [...(family?.values() ?? [])].some((it) => it.call === spawned.call && it.end === undefined);
    if (!isAgain) this.#spawned++;
    if (continues !== undefined && !isOver) family?.delete(continues);
    family?.set(agent, { ...spawned, id: agent, agent: name, conversation });
  }

  /** The calls by which a lead begins its team and adds tasks have done that, though their results may be missing. */
  #lead(line: TeamEvent): void {
    const lead = this.#byAgent.get(line.agent);
    if (line.type === "team.started" || line.type === "team.task.added")
      for (const [id, call] of lead?.calls ?? [])
        if (call.text === undefined) lead?.calls.set(id, { ...call, wasTold: true });
    if (lead && !endsWithLead(line)) lead.team = foldTeam(lead.team, line);
  }

  /** A question nobody could be asked stays open, also when the run is gone on with. */
  #want({
    agent,
    decision,
    rule: text,
    layer,
    file,
    line,
    toAllow = [],
  }: Extract<Event, { type: "permission.judged" }>): void {
    const rule = { text, layer, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
    if (decision === "ask") for (const wanted of toAllow) this.#byAgent.get(agent)?.wanting.set(wanted, rule);
  }

  /** By the call itself, for its id may come again. */
  #clock(line: Extract<Event, { type: "tool.finished" }>): void {
    const recorded = this.#byAgent.get(line.agent);
    const [started, finished] = [recorded?.calls.get(line.id)?.began, timeOf(line)];
    // A message that lies beside the log has no blocks here.
    const blocks = recorded?.messages.at(-1)?.blocks ?? [];
    const call = blocks.find((block) => block.type === "call" && block.id === line.id);
    if (call && started !== undefined && finished !== undefined) recorded?.times.set(call, { started, finished });
  }

  /** A child stays: its parent may ask it again. */
  #end(line: Extract<Event, { type: "agent.finished" }>): void {
    const parent = this.#byAgent.get(line.parent ?? "");
    const family = parent?.children;
    const child = family?.get(line.agent);
    for (const [wanted, rule] of child?.conversation.wanting ?? []) parent?.wanting.set(wanted, rule);
    if (family === undefined || child === undefined) return;
    const { outcome, reason, turns, usage, text, output } = line;
    const answer = isJsonObject(output) ? { text, output } : { text };
    // What the run's own end cut off has not come to one of its own.
    if (outcome === "cancelled") return;
    family.set(line.agent, {
      ...child,
      end: { outcome, reason, turns, usage, calls: child.conversation.ran, ...answer },
    });
  }

  /** Goes on from what another fold has: a conversation with those of all that was spawned in it. */
  open(recorded: Recorded): void {
    this.#byAgent.set(recorded.agent, recorded);
    for (const child of recorded.children.values()) this.open(child.conversation);
  }

  /** What is known of an agent run's children, by their ids. */
  childrenOf(agent: string): ReadonlyMap<string, RecordedChild> {
    return this.#byAgent.get(agent)?.children ?? new Map();
  }

  /** Keeps nothing of an agent run and what was spawned in it. */
  forget(agent: string): void {
    this.#forget(agent);
  }

  #forget(agent: string): void {
    const recorded = this.#byAgent.get(agent);
    this.#byAgent.delete(agent);
    for (const id of recorded?.children.keys() ?? []) this.#forget(id);
  }

  /** Half an answer, for want of money: it is asked for anew. */
  #wasCutShort({ agent, outcome }: Extract<Event, { type: "agent.finished" }>): boolean {
    return outcome === "budget" && this.#byAgent.get(agent)?.stop === "length";
  }

  /** The reply was discarded; what it used was spent all the same. */
  #lose({ agent, usage }: Extract<Event, { type: "model.retry" | "model.failed" }>): void {
    if (usage === undefined) return;
    const recorded = this.#byAgent.get(agent);
    if (recorded !== undefined) recorded.usage = addUsage(recorded.usage, usage);
  }

  /** What was made shorter stays so: the log says how, and nothing is measured or summarised again. */
  #shorten(event: Extract<AgentEvent, { type: "context.compressed" }>): void {
    const summarises = event.how === "summarised";
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

  #say({ agent, turn, message, stop, usage, from = [] }: Extract<Event, { type: "message" }>): void {
    const recorded = this.#byAgent.get(agent);
    if (recorded === undefined) return;
    if (usage !== undefined) {
      const tokens = usage.input + usage.cacheRead + usage.cacheWrite;
      if (tokens > 0) recorded.measured = { tokens, upTo: recorded.messages.length };
      recorded.replies++;
    }
    recorded.messages.push(message);
    for (const id of from) recorded.read.add(id);
    recorded.calls.clear();
    recorded.stop = stop;
    if (usage === undefined) return;
    recorded.turns = turn;
    recorded.lastUsage = usage;
    recorded.usage = addUsage(recorded.usage, usage);
  }
}

/** The team was not at its end, its lead was; when that goes on, so does the team. */
function endsWithLead(line: TeamEvent): boolean {
  return line.type === "team.finished" && (line.end === "done" || line.end === "cancelled");
}

/** Only a line of a log has a time. */
function timeOf(line: Event): number | undefined {
  return "time" in line && typeof line.time === "string" ? Date.parse(line.time) : undefined;
}
