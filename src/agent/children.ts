import { untilAborted } from "../model/abort.ts";
import type { SpawnedBy } from "../model/agent-event.ts";
import { defaultChildrenAtOnce } from "../model/defaults.ts";
import type { AgentRunIds } from "../model/ids.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import { Places } from "../model/places.ts";
import type { Agent, RuleData } from "../model/plan.ts";
import type { Attempt, Budget, Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { err, messageOf, type Result } from "../model/result.ts";
import { mostSpawned } from "../model/spawning.ts";
import type { Assignment, Orphan, Parent, Shared } from "./assignment.ts";
import { childAttempt } from "./child-attempt.ts";
import { answerOf, reportOf, said, started } from "./child-text.ts";
import type { Mail } from "./mail.ts";
import type { RunRights } from "./permission.ts";
import { emptyRecord, type Recorded, type RecordedChild } from "./recorded.ts";
import { isTeamCall } from "./team/calls.ts";
import { givenText, type Order, readOrder, type Target, taskTool } from "./task.ts";
import { withOurNames } from "./tool-call.ts";

export interface ChildrenSource extends Shared {
  readonly agent: Agent;
  /** The parent's; its signal is that of all below the parent. */
  readonly attempt: Attempt;
  /** Aborted as soon as the parent is, also alone. */
  readonly self: AbortSignal;
  readonly ids: AgentRunIds;
  readonly lineage: Pick<Parent, "names" | "depth">;
  readonly rights: RunRights | undefined;
  readonly budget: Budget | undefined;
  readonly models: readonly Json[];
  readonly served: readonly Tool[];
  readonly recorded: Recorded | undefined;
  /** Of the children below the agent of the step. */
  readonly level: number;
  /** Cancels everything below the parent. */
  readonly stop: () => void;
  /** Takes over children whose parent was cancelled alone; absent where nobody is there to. */
  readonly adopt?: Parent["adopt"];
  /** What others tell the parent. */
  readonly mail: Mail;
}

/** A child that was not asked for by a call of the tool. */
export interface Spawn extends Pick<Assignment, "recorded" | "more" | "membership"> {
  readonly target: Target;
  readonly spawned: Omit<SpawnedBy, "depth" | "background">;
  readonly prompt: string;
  /** In a replay: one that was kept for it. */
  readonly id?: string;
  /** It takes the place of one that was cut off. */
  readonly isAgain?: boolean;
  /** Of its attempt: a narrower signal, rules, a folder of its own. */
  readonly attempt: Partial<Pick<Attempt, "signal" | "workspace">> & { readonly permissions?: RuleData };
}

/** What one agent run spawns: who may be spawned, who is under way, and what they report. */
export class Children {
  readonly mail: Mail;
  readonly #source: ChildrenSource;
  readonly #targets: readonly Target[];
  readonly #places: Places;
  /** By their ids, those too that wait for a place. */
  readonly #known: Map<string, RecordedChild>;
  readonly #running = new Map<string, Orphan>();
  #team: Led | undefined;
  /** The number in the last id. */
  #count: number;
  /** How many there were, one that was cut off and taken up again as one. */
  #spawned: number;
  readonly #reserved = new Set<string>();
  #hasClosed = false;
  /** What a child threw. */
  #bug: unknown;

  constructor(source: ChildrenSource) {
    this.#source = source;
    this.mail = source.mail;
    this.#targets = targetsOf(source);
    this.#places = new Places(source.agent.limits.parallel ?? defaultChildrenAtOnce);
    this.#known = new Map(source.recorded?.children);
    this.#count = this.#known.size;
    this.#spawned = spawnedIn([...this.#known.values()]);
  }

  /** The tool that spawns; none where nobody may be spawned. */
  get tools(): readonly Tool[] {
    const members = this.#team?.members ?? [];
    if (this.#targets.length === 0 && members.length === 0) return [];
    return [taskTool(this.#targets, members, (args, call) => this.#task(args, call))];
  }

  /** From now on tasks of this team are handed out by the tool, too. */
  lead(team: Led): void {
    this.#team = team;
  }

  /** Takes up what worked in the background before a resume, and what it reported that nobody has read. */
  goOn(): void {
    const { recorded } = this.#source;
    for (const child of recorded?.children.values() ?? []) {
      if (!child.background || recorded?.read.has(child.id) || isTeamCall(child.call)) continue;
      if (child.end) this.mail.put({ from: child.id, text: reportOf(child, child.end) });
      else this.#resume(child);
    }
  }

  /** Waits until nothing runs below the parent any more: its own end ends all that it spawned, but for an end alone. */
  async close(): Promise<void> {
    const { self, attempt, adopt, stop } = this.#source;
    const isAlone = self.aborted && !attempt.signal.aborted;
    this.#hasClosed = true;
    if (isAlone && adopt) return adopt([...this.#running.values()]);
    if (!isAlone) stop();
    // Who is waited for may hand over what it spawned.
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ end }) => end));
    // A model that reads of a bug of ours makes the best of it, and the run would end as if there were none.
    if (this.#bug !== undefined) throw this.#bug;
  }

  async #task(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>> {
    const [task, member] = [own(args, "task_id"), own(args, "subagent_type")];
    if (this.#team && typeof task === "string" && typeof member === "string") {
      const assigned = this.#team.assign(task, member);
      return assigned.ok ? said(assigned.value) : assigned;
    }
    const id = call.id ?? "";
    const before = this.last(id);
    // It was taken up again when the run was resumed.
    if (before?.background) return started(before);
    if (before?.end) return answerOf(before, before.end);
    const order = this.#read(args, before);
    if (!order.ok) return order;
    const refusal = before ? undefined : this.#refuse();
    if (refusal !== undefined) return err(refusal);
    const child = this.#begin(order.value, id, before);
    if (order.value.background) return started(child.child);
    // Cancelled alone, the parent does not wait any longer, and the child goes on.
    const end = await untilAborted(child.end, this.#source.self);
    const ended = this.#known.get(child.child.id);
    return ended?.end ? answerOf(ended, ended.end) : err(end ?? "not finished: the run was cancelled");
  }

  /** `before`: the child that the same call had brought about, and that was cut off. */
  #read(args: JsonObject, before: RecordedChild | undefined): Result<Order, string> {
    const { attempt, ports, models } = this.#source;
    const vars = own(attempt.inputs, "vars");
    return readOrder(args, {
      targets: this.#targets,
      known: new Map([...this.#known].filter(([, child]) => child !== before && !isTeamCall(child.call))),
      models: new Map([...(ports.models ?? []), ...models.flatMap(labelled)]),
      vars: isJsonObject(vars) ? vars : {},
    });
  }

  /** Starts one at once, for somebody who keeps the count of places. Undefined when there have been too many. */
  spawn({ target, spawned, prompt, attempt, id, isAgain = false, ...run }: Spawn): Orphan | undefined {
    if (!isAgain && this.#refuse() !== undefined) return undefined;
    const { level } = this.#source;
    const { permissions, ...around } = attempt;
    const made = childAttempt(this.#source, { target, prompt });
    const { body } = made.step;
    const step = { ...made.step, body: body.kind === "agent" && permissions ? { ...body, permissions } : body };
    return this.#run(target, {
      ...run,
      id: id ?? this.#nextId(),
      spawned: { ...spawned, depth: level, background: true },
      attempt: { ...made, step, ...around },
      isFree: true,
    });
  }

  /** In a replay: ids that others have, whenever they begin. */
  reserve(ids: readonly string[]): void {
    for (const id of ids) this.#reserved.add(id);
  }

  #nextId(): string {
    const id = `${this.#source.ids.agent}.${++this.#count}`;
    return this.#reserved.has(id) ? this.#nextId() : id;
  }

  /** The last child of that name. */
  lastNamed(name: string): RecordedChild | undefined {
    return [...this.#known.values()].findLast((child) => child.name === name);
  }

  /** The last child that a call, or a task, brought about. */
  last(call: string): RecordedChild | undefined {
    return [...this.#known.values()].findLast((child) => child.call === call);
  }

  /** Counts one more; or says why there may be none. */
  #refuse(): string | undefined {
    const { agent, attempt, active } = this.#source;
    const most = attempt.step.limits.children ?? agent.limits.children;
    if (most !== undefined && this.#spawned >= most)
      return `You have spawned ${most} sub-agents, and may not spawn more (\`limits.children\`). Do the rest yourself.`;
    if (!active.admit())
      return `This run has spawned ${mostSpawned} sub-agents, and may not spawn more. Do the rest yourself.`;
    this.#spawned++;
    return undefined;
  }

  #begin(order: Order, call: string, before: RecordedChild | undefined): Orphan {
    const { level } = this.#source;
    const { title, name, background, target, again } = order;
    const spawned: SpawnedBy = { call, title, depth: level, background, ...(name !== undefined && { name }) };
    const cutOff = before && before.conversation.turns > 0 ? before.conversation : undefined;
    const recorded = cutOff ?? again?.conversation;
    return this.#run(target, {
      id: this.#nextId(),
      spawned,
      attempt: childAttempt(this.#source, { ...order, prompt: givenText(order) }),
      ...(recorded && { recorded }),
      ...(!cutOff && again && { more: asMessage(givenText(order)) }),
    });
  }

  /** One that worked in the background, and was cut off before it ended. */
  #resume(child: RecordedChild): void {
    const { recorded } = this.#source;
    const call = recorded?.messages
      .flatMap(({ blocks }) => blocks)
      .find((block) => block.type === "call" && block.id === child.call);
    const [tool] = this.tools;
    const args = call?.type === "call" && isJsonObject(call.args) && tool ? withOurNames(call.args, tool) : {};
    const order = this.#read(args, child);
    if (order.ok) this.#begin(order.value, child.call, child);
    else
      this.mail.put({
        from: child.id,
        text: `[The sub-agent ${child.id} was interrupted, and cannot go on: ${order.error}]`,
      });
  }

  #run(target: Target, { id, spawned, isFree = false, ...assignment }: Run): Orphan {
    const conversation = assignment.recorded ?? emptyRecord(id);
    const child: RecordedChild = { ...spawned, id, agent: target.agent.name, conversation };
    this.#known.set(id, child);
    if (spawned.background && !isFree) this.mail.expect(id);
    const end = this.#toItsEnd({ ...assignment, id, parent: this.#parent(spawned) }, isFree);
    const orphan: Orphan = { child, end };
    this.#running.set(id, orphan);
    return orphan;
  }

  /** Resolves with its report. Never rejects. */
  async #toItsEnd(assignment: Assignment & { readonly parent: Parent }, isFree: boolean): Promise<string> {
    const { id, attempt } = assignment;
    const { active, launch } = this.#source;
    const own = new AbortController();
    const signal = AbortSignal.any([attempt.signal, own.signal]);
    const cancel = (): void => own.abort("agent");
    // Until it has begun; from then on it is cancelled by what it enters for itself.
    active.enter(id, { cancelAll: cancel, cancelAlone: cancel });
    const leave = await (isFree ? () => undefined : this.#places.take(signal));
    if (leave === undefined || signal.aborted) {
      leave?.();
      active.leave(id);
      return this.#ended(id, "not started: it was cancelled");
    }
    try {
      const ended = await launch(this.#source, { ...assignment, attempt: { ...attempt, signal } });
      if (!ended.ok) return this.#ended(id, ended.error.message);
      const began = this.#source.heard.childrenOf(this.#source.ids.agent).has(id);
      return this.#ended(id, began ? undefined : ended.value.result.reason);
    } catch (error) {
      this.#bug ??= error;
      return this.#ended(id, messageOf(error));
    } finally {
      active.leave(id);
      leave();
    }
  }

  #ended(id: string, problem: string | undefined): string {
    this.#running.delete(id);
    const heard = this.#source.heard.childrenOf(this.#source.ids.agent).get(id);
    if (heard) this.#known.set(id, heard);
    const report = heard?.end
      ? reportOf(heard, heard.end)
      : `[${id}] ${heard ? "was cancelled" : `did not begin: ${problem ?? "it was cancelled"}`}`;
    if (this.mail.expects(id)) this.mail.put({ from: id, text: report });
    return problem ?? report;
  }

  #parent(spawned: SpawnedBy): Parent {
    const { ids, agent, rights, budget, models, served, lineage } = this.#source;
    return {
      id: ids.agent,
      agent,
      rights,
      budget,
      models,
      served,
      ...lineage,
      spawned,
      adopt: (orphans) => this.#adopt(orphans),
    };
  }

  #adopt(orphans: readonly Orphan[]): void {
    const { self, attempt, adopt } = this.#source;
    // Nobody reads its mail any more: whoever is above it does.
    if (this.#hasClosed && self.aborted && !attempt.signal.aborted && adopt) return adopt(orphans);
    for (const { child, end } of orphans) {
      this.mail.expect(child.id);
      const kept: Orphan = {
        child,
        end: end.then((text) => {
          this.#running.delete(child.id);
          this.mail.put({ from: child.id, text });
          return text;
        }),
      };
      this.#running.set(child.id, kept);
    }
  }
}

/** A team, as far as the tool knows it. */
interface Led {
  readonly members: readonly string[];
  assign(task: string, member: string): Result<string, string>;
}

interface Run extends Pick<Assignment, "id" | "attempt" | "recorded" | "more" | "membership"> {
  readonly spawned: SpawnedBy;
  /** It takes no place, and reports to somebody else. */
  readonly isFree?: boolean;
}

/** A resume begins one anew that was cut off before its first reply. */
function spawnedIn(children: readonly RecordedChild[]): number {
  const isReplaced = ({ call, end }: RecordedChild, at: number): boolean =>
    end === undefined && children.slice(at + 1).some((later) => later.call === call);
  return children.filter((child, at) => !isReplaced(child, at)).length;
}

/** Whom the agent may spawn here: named by it, allowed by its rules, and not at work above. */
function targetsOf({ agent, ports, lineage, rights }: ChildrenSource): Target[] {
  if (lineage.depth < 1) return [];
  return (agent.subagents ?? []).flatMap(({ name, value: key }) => {
    const target = Object.hasOwn(ports.agents, key) ? ports.agents[key] : undefined;
    if (target === undefined || lineage.names.includes(target.name)) return [];
    return rights?.reach("Task", name) === "deny" ? [] : [{ name, key, agent: target }];
  });
}

function labelled(model: Json): [string, Json][] {
  const id = isJsonObject(model) ? own(model, "id") : model;
  return typeof id === "string" ? [[id, model]] : [];
}

function asMessage(text: string): Message {
  return { role: "user", blocks: [{ type: "text", text }] };
}
