import type { AgentRunIds } from "../model/event.ts";
import type { Hooks } from "../model/hooks.ts";
import type { Json } from "../model/json.ts";
import type { Agent, Member, RuleData, Team as TeamPlan } from "../model/plan.ts";
import type { Clock, Judge, Tool } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import {
  foldTeam,
  isCyclic,
  type MemberChange,
  type MemberTerms,
  obstacle,
  type TaskChange,
  type TeamEnd,
  type TeamEvent,
  type TeamMessage,
  type TeamState,
  type TeamTask,
} from "../model/team.ts";
import type { Orphan } from "./assignment.ts";
import type { Children, Spawn } from "./children.ts";
import type { AgentHouse, Isolated } from "./house.ts";
import { type Letter, Mail } from "./mail.ts";
import type { Recorded, RecordedChild, RecordedEnd } from "./recorded.ts";
import { memberText, taskText } from "./team-text.ts";

export interface TeamSource {
  readonly plan: TeamPlan;
  readonly house: Pick<AgentHouse, "agents" | "clock" | "hooks" | "isolate" | "workspace">;
  /** The lead's. */
  readonly ids: AgentRunIds;
  readonly lead: string;
  /** The folder the lead works in, where that is not the workspace. */
  readonly workspace: string | undefined;
  readonly children: Children;
  /** Aborted when all below the lead is. */
  readonly signal: AbortSignal;
  /** Sends an event. */
  readonly tell: (event: TeamEvent) => void;
  readonly recorded: Recorded | undefined;
  /** The tools of a member, by its name. */
  readonly toolsOf: (member: string) => readonly Tool[];
}

type Fact = TeamEvent extends infer E ? (E extends TeamEvent ? Omit<E, keyof AgentRunIds> : never) : never;

/** How often a lead that has answered is given what came in meanwhile; after that the team ends. */
export const mostWakes = 10;
/** Milliseconds in which reports are gathered before they wake the lead, while others are still at work. */
const gathering = 800;
/** What the lead waits for, as long as there is work left. */
const teamWork = "team";

/** What a member has at hand while the team lasts. */
interface Seat {
  readonly terms: Member;
  readonly agent: Agent;
  readonly mail: Mail;
  /** Of its agent run. */
  stop: AbortController | undefined;
  /** Ends with the run, and all that comes of it. */
  running: Promise<void> | undefined;
  agentRun: string;
  /** What it says its task has come to; it counts when its run has ended. */
  claim: { readonly status: "completed" | "failed"; readonly report: string } | undefined;
  /** It was asked to stop, and has not said no. */
  leaves: boolean;
}

interface Work {
  readonly seat: Seat;
  readonly task: TeamTask | undefined;
  /** Its run from before a resume. */
  readonly cutOff: RecordedChild | undefined;
  readonly signal: AbortSignal;
}

interface Finishing {
  readonly task: TeamTask | undefined;
  readonly child: RecordedChild | undefined;
  /** Why it did not begin. */
  readonly problem: string | undefined;
  readonly isolated: Isolated | undefined;
}

/** A lead, its members, and the list of tasks they work through. One for each agent run that leads. */
export class Team {
  readonly #source: TeamSource;
  readonly #seats = new Map<string, Seat>();
  #state: TeamState | undefined;
  /** Reports that wait until the lead is given them. */
  #held: Letter[] = [];
  #stopTimer: (() => void) | undefined;
  #isClosed = false;

  constructor(source: TeamSource) {
    this.#source = source;
    source.children.mail.onWait = () => this.#leadWaits();
  }

  /** Their names. */
  get members(): readonly string[] {
    return this.#source.plan.members.map(({ name }) => name);
  }

  get state(): TeamState | undefined {
    return this.#state?.end === undefined ? this.#state : undefined;
  }

  create(name: string, description: string): Result<TeamState, string> {
    if (this.state) return err(`There is a team already, \`${this.state.name}\`. TeamDelete ends it.`);
    const { plan } = this.#source;
    this.#tell({ type: "team.started", name, description, parallel: plan.parallel });
    for (const member of plan.members) this.#tell({ type: "team.member.added", member: this.#termsOf(member) });
    this.#seat();
    return ok(this.#open());
  }

  /** Ends the team at once: whoever works is cancelled. */
  async delete(): Promise<Result<string, string>> {
    const { state } = this;
    if (state === undefined) return err("There is no team.");
    await this.#end("deleted", "the lead ended the team");
    const open = [...state.tasks.values()].filter(({ status }) => status !== "completed").length;
    return ok(`The team \`${state.name}\` has ended${open === 0 ? "" : `; ${open} of its tasks were not completed`}.`);
  }

  add(task: Pick<TeamTask, "subject" | "description" | "activeForm" | "owner" | "dependsOn">): Result<TeamTask, string> {
    const { state } = this;
    if (state === undefined) return err("There is no team. Call TeamCreate first.");
    const id = String(state.tasks.size + 1);
    const problem = this.#misfit(id, task);
    if (problem !== undefined) return err(problem);
    const added: TeamTask = { id, status: "pending", ...task };
    this.#tell({ type: "team.task.added", task: added });
    this.#schedule();
    return ok(this.#open().tasks.get(id) ?? added);
  }

  /** Changes a task by the word of the lead. */
  async change(id: string, change: TaskChange): Promise<Result<TeamTask, string>> {
    const task = this.state?.tasks.get(id);
    if (task === undefined) return err(this.#noTask(id));
    const isOpen = task.status === "pending" || task.status === "failed";
    if (!isOpen && change.status !== undefined) return err(`Task ${id} is ${task.status}; its status is not yours to change now.`);
    if (change.status === "in_progress") return err(`Task ${id} is taken up by a member; give it an \`owner\`, or leave it to whoever is free.`);
    if (!isOpen && (change.owner !== undefined || change.dependsOn !== undefined)) return err(`Task ${id} is ${task.status}.`);
    const problem = this.#misfit(id, { ...task, ...change, owner: change.owner ?? undefined });
    if (problem !== undefined) return err(problem);
    if (change.status === "completed") {
      const no = await this.#completes(task, this.#source.lead, this.#source.ids.agent);
      if (no !== undefined) return err(no);
    }
    const freed = change.status === "pending" && change.owner === undefined ? { owner: null } : {};
    this.#tell({ type: "team.task.updated", task: id, by: "lead", change: { ...freed, ...change } });
    this.#schedule();
    return ok(this.#open().tasks.get(id) ?? task);
  }

  /** What a member says of its task. It counts when the member's run has ended, and its work is where others find it. */
  async report(member: string, id: string, claim: NonNullable<Seat["claim"]>): Promise<Result<string, string>> {
    const seat = this.#seats.get(member);
    const task = this.state?.tasks.get(id);
    if (seat === undefined || task === undefined) return err(this.#noTask(id));
    if (task.owner !== member || task.status !== "in_progress") return err(`Task ${id} is not yours.`);
    if (claim.status === "completed") {
      const no = await this.#completes(task, member, seat.agentRun);
      if (no !== undefined) return err(no);
    }
    seat.claim = claim;
    return ok(`Noted. Your work on task ${id} ends with this turn.`);
  }

  /** Gives a task to a member by the word of the lead. */
  assign(id: string, member: string): Result<string, string> {
    const task = this.state?.tasks.get(id);
    const seat = this.#seats.get(member);
    if (task === undefined || this.#state === undefined) return err(this.#noTask(id));
    if (seat === undefined) return err(`There is no member \`${member}\`.`);
    const no = obstacle(task, this.#state.tasks);
    if (no !== undefined) return err(`Task ${id} cannot be taken up: ${no}.`);
    const { state } = this.#state.members.get(member) ?? {};
    if (state !== "idle") return err(`The member \`${member}\` is ${state ?? "gone"}.`);
    this.#tell({ type: "team.task.updated", task: id, by: "lead", change: { status: "in_progress", owner: member } });
    this.#update(member, { state: "waiting", task: id });
    this.#schedule();
    return ok(`Task ${id} is ${member}'s now. Its report comes as a message.`);
  }

  send(message: Omit<TeamMessage, "id">): Result<string, string> {
    const { state } = this;
    if (state === undefined) return err("There is no team.");
    const { from, to, kind } = message;
    const others = [...state.members.keys(), "lead"].filter((name) => name !== from);
    const receivers = kind === "broadcast" || to === "all" ? others : others.filter((name) => name === to);
    if (receivers.length === 0) return err(`There is no \`${to}\` to write to. There are: ${others.join(", ")}.`);
    const sent: TeamMessage = { ...message, id: `message:${state.messages.length + 1}` };
    this.#tell({ type: "team.message", message: sent });
    for (const name of receivers) this.#deliver(sent, name);
    this.#heed(sent);
    this.#schedule();
    return ok(`Sent to ${receivers.join(", ")}.`);
  }

  /** Whether a member may change something now. */
  mayChange(member: string): boolean {
    const seat = this.#seats.get(member);
    return seat?.terms.plan !== true || this.#state?.members.get(member)?.approved === true;
  }

  /** Takes up a team from before a resume where it was. */
  goOn(): void {
    const { recorded, children } = this.#source;
    if (recorded?.team === undefined || recorded.team.end !== undefined) return;
    this.#state = recorded.team;
    this.#seat();
    const ofLead = new Set(recorded.read);
    for (const message of recorded.team.messages) {
      this.#heed(message, recorded.team);
      for (const name of receiversOf(message, recorded.team)) {
        const read = name === "lead" ? ofLead : readBy(recorded, name);
        if (!read.has(message.id)) this.#deliver(message, name);
      }
    }
    for (const child of recorded.children.values())
      if (child.call.startsWith("task:") && child.end && !ofLead.has(child.id)) this.#hear(child);
    for (const [name, member] of recorded.team.members) {
      const task = recorded.team.tasks.get(member.task ?? "");
      if (task === undefined || member.state !== "working") continue;
      const seat = this.#seats.get(name);
      if (seat) this.#work(seat, task, children.last(`task:${task.id}`));
    }
    this.#schedule();
  }

  /** The lead has ended: nobody works for it any more. */
  async close(isCancelled: boolean): Promise<void> {
    if (this.state) await this.#end(isCancelled ? "cancelled" : "done", isCancelled ? "the lead was cancelled" : "the lead has ended");
    this.#isClosed = true;
  }

  #tell(fact: Fact): void {
    const event = { ...this.#source.ids, ...fact } as TeamEvent;
    this.#source.tell(event);
    this.#state = foldTeam(this.#state, event);
  }

  #update(member: string, change: MemberChange): void {
    this.#tell({ type: "team.member.updated", member, change });
  }

  #open(): TeamState {
    if (this.#state === undefined) throw new Error("there is no team");
    return this.#state;
  }

  #termsOf({ key, ...terms }: Member): MemberTerms {
    return { ...terms, agent: this.#source.house.agents[key]?.name ?? terms.name };
  }

  #seat(): void {
    this.#seats.clear();
    const { plan, house } = this.#source;
    for (const terms of plan.members) {
      const agent = house.agents[terms.key];
      if (agent === undefined) continue;
      const mail = new Mail();
      mail.onWait = () => this.#memberWaits(terms.name);
      this.#seats.set(terms.name, { terms, agent, mail, stop: undefined, running: undefined, agentRun: "", claim: undefined, leaves: false });
    }
  }

  #noTask(id: string): string {
    const { state } = this;
    if (state === undefined) return "There is no team. Call TeamCreate first.";
    const ids = [...state.tasks.keys()];
    return `There is no task \`${id}\`. ${ids.length === 0 ? "There is none yet." : `There are: ${ids.join(", ")}.`}`;
  }

  #misfit(id: string, { owner, dependsOn }: { readonly owner?: string | undefined; readonly dependsOn: readonly string[] }): string | undefined {
    const { members, tasks } = this.#open();
    if (owner !== undefined && !members.has(owner)) return `There is no member \`${owner}\`. There are: ${[...members.keys()].join(", ")}.`;
    const missing = dependsOn.find((other) => !tasks.has(other) && other !== id);
    if (missing !== undefined) return `${this.#noTask(missing)} Add what a task depends on before it.`;
    if (isCyclic(id, dependsOn, tasks)) return `Task ${id} would come to depend on itself.`;
    return undefined;
  }

  /** Hooks may refuse that a task is completed. */
  async #completes(task: TeamTask, member: string, agentRun: string): Promise<string | undefined> {
    const { house, ids, signal } = this.#source;
    const agent = this.#seats.get(member)?.agent;
    const hooks: Hooks | undefined = agent && house.hooks?.(agent, { step: ids.step, agent: agentRun, workspace: house.workspace });
    const fields = {
      task_id: task.id,
      task_subject: task.subject,
      task_description: task.description,
      teammate_name: member,
      team_name: this.#open().name,
    };
    const word = await hooks?.fire({ event: "TaskCompleted", fields }, signal);
    return word?.block ?? word?.stop;
  }

  /** Starts whatever may start, in the order it was added, and looks whether anything is left. */
  #schedule(): void {
    if (this.#isClosed || this.state === undefined) return;
    this.#source.children.mail.expect(teamWork);
    for (;;) {
      const working = [...this.#seats.values()].filter(({ running }) => running !== undefined).length;
      const next = working < this.#source.plan.parallel ? this.#next() : undefined;
      if (next === undefined) break;
      this.#work(next.seat, next.task);
    }
    this.#settle();
    this.#gather();
  }

  /** The first task that can be taken up, and who takes it; else somebody who has a letter to read. */
  #next(): { readonly seat: Seat; readonly task: TeamTask | undefined } | undefined {
    const { tasks, members } = this.#open();
    const isFree = ({ running, terms }: Seat): boolean => running === undefined && members.get(terms.name)?.state === "idle";
    for (const task of tasks.values()) {
      const assigned = task.status === "in_progress" && members.get(task.owner ?? "")?.state === "waiting";
      if (!assigned && obstacle(task, tasks) !== undefined) continue;
      const seats = [...this.#seats.values()].filter(({ terms }) => task.owner === undefined || task.owner === terms.name);
      const seat = seats.find((it) => isFree(it) || (assigned && it.running === undefined));
      if (seat) return { seat, task };
    }
    const called = [...this.#seats.values()].find((seat) => isFree(seat) && seat.mail.hasLetters);
    return called && { seat: called, task: undefined };
  }

  /** One run of a member: a task, or what others wrote to it. Claims before anything else happens. */
  #work(seat: Seat, task: TeamTask | undefined, cutOff?: RecordedChild): void {
    const { name } = seat.terms;
    const stop = new AbortController();
    seat.stop = stop;
    seat.claim = undefined;
    if (task && task.status !== "in_progress")
      this.#tell({ type: "team.task.updated", task: task.id, by: name, change: { status: "in_progress", owner: name } });
    this.#update(name, { state: "working", ...(task && { task: task.id }), ...(!cutOff && { approved: false }) });
    seat.running = this.#workThrough({ seat, task, cutOff, signal: AbortSignal.any([this.#source.signal, stop.signal]) });
  }

  async #workThrough(work: Work): Promise<void> {
    const { seat, task, cutOff } = work;
    const opened = await this.#isolate(work);
    const isolated = opened.ok ? opened.value : undefined;
    // It had come to its end, and only what follows from that is missing.
    const isOver = cutOff?.end !== undefined;
    const folder = isolated?.folder;
    const orphan = opened.ok && !isOver ? this.#spawn(work, folder) : undefined;
    if (orphan) {
      seat.agentRun = orphan.child.id;
      this.#update(seat.terms.name, { agentRun: orphan.child.id, ...(folder !== undefined && { worktree: folder }) });
    }
    const why = opened.ok ? "there may not be more sub-agents in this run" : opened.error;
    const text = orphan ? await orphan.end : why;
    const child = isOver ? cutOff : orphan && this.#source.children.last(orphan.child.call);
    await this.#finish(seat, { task, child, problem: child?.end ? undefined : text, isolated });
    this.#schedule();
  }

  async #isolate({ seat, task, cutOff, signal }: Work): Promise<Result<Isolated | undefined, string>> {
    if (seat.terms.isolation === undefined) return ok(undefined);
    const { house, ids, lead, workspace: into } = this.#source;
    const goesOn = cutOff !== undefined;
    if (house.isolate === undefined) return err("there are no worktrees here");
    const owner = `${ids.step}/${lead}/${seat.terms.name}.${task?.id ?? "messages"}`;
    const opened = await house.isolate({ step: ids.step, owner, order: Number(task?.id ?? 0), into, goesOn, signal });
    return opened.ok ? opened : err(opened.error.message);
  }

  #spawn({ seat, task, cutOff, signal }: Work, folder: string | undefined): Orphan | undefined {
    const { terms, agent, mail } = seat;
    const state = this.#open();
    const letters = task === undefined ? mail.take() : undefined;
    const prompt = task ? taskText(task, state) : textOf(letters);
    const call = task ? `task:${task.id}` : `talk:${terms.name}:${letters?.from.join(",") ?? ""}`;
    const last = task === undefined ? this.#lastOf(terms.name) : undefined;
    const conversation = cutOff && cutOff.conversation.turns > 0 ? cutOff.conversation : last?.conversation;
    const permissions = rulesOf(terms);
    const spawn: Spawn = {
      target: { name: terms.name, key: terms.key, agent },
      spawned: { call, title: task?.subject ?? "messages", name: terms.name },
      prompt,
      attempt: { signal, ...(folder !== undefined && { workspace: folder }), ...(permissions && { permissions }) },
      ...(conversation && { recorded: conversation }),
      ...(!cutOff && last && letters && { more: letters.message }),
      membership: {
        tools: this.#source.toolsOf(terms.name),
        mail,
        told: memberText(terms.name, state, { lead: this.#source.lead, folder }),
        border: () => this.#border(seat),
        gate: (judge) => this.#gate(terms.name, judge),
      },
    };
    return this.#source.children.spawn(spawn);
  }

  #lastOf(member: string): RecordedChild | undefined {
    return this.#source.children.lastNamed(member);
  }

  #border({ claim, leaves }: Seat): ReturnType<NonNullable<Spawn["membership"]>["border"]> {
    if (claim) return { outcome: "done", reason: `it reported its task as ${claim.status}` };
    return leaves ? { outcome: "cancelled", reason: "it was asked to stop" } : undefined;
  }

  #gate(member: string, judge: Judge): Judge {
    return async (call) => {
      const verdict = await judge(call);
      if (this.mayChange(member) || looking.has(call.tool) || verdict.decision === "deny") return verdict;
      return { ...verdict, decision: "deny", rule: { text: "plan: required", layer: "team" }, toAllow: [] };
    };
  }

  /** What the run of a member has come to: the change of its files first, then its task, then the word to the lead. */
  async #finish(seat: Seat, { task, child, problem, isolated }: Finishing): Promise<void> {
    const { name } = seat.terms;
    const end = child?.end;
    const claim = seat.claim ?? claimOf(end, problem);
    const isOver = this.#isClosed || this.#source.signal.aborted || this.state === undefined;
    const closed = await isolated?.close({ apply: claim.status === "completed" && !isOver && end?.outcome === "done" });
    seat.running = undefined;
    seat.stop = undefined;
    if (isOver || this.state === undefined) return;
    const status = closed?.problem === undefined ? claim.status : "failed";
    const report = [claim.report, closed?.problem ?? closed?.note].filter((text) => text !== undefined && text !== "").join("\n\n");
    const current = this.#open().tasks.get(task?.id ?? "");
    if (current?.status === "in_progress" && current.owner === name) {
      const change: TaskChange = seat.leaves && !seat.claim ? { status: "pending", owner: null } : { status, report };
      this.#tell({ type: "team.task.updated", task: current.id, by: seat.claim ? name : "team", change });
    }
    this.#update(name, { state: seat.leaves ? "stopped" : "idle", task: null, worktree: null });
    if (seat.leaves && !seat.claim) {
      const what = task ? `; task ${task.id}, ${task.subject}, is open again` : "";
      this.#wakeWith({ from: child?.id ?? name, text: `[${name} has stopped${what}]` });
    } else if (task && child) this.#hear(child, report);
    else if (task) this.#wakeWith({ from: `task:${task.id}`, text: `[Task ${task.id}, ${task.subject}, failed]\n${report}` });
  }

  /** A member's report on its task, for the lead. */
  #hear(child: RecordedChild, report: string = child.end?.text ?? ""): void {
    const id = child.call.slice("task:".length);
    const task = this.#open().tasks.get(id);
    if (task === undefined) return;
    const status = task.status === "pending" ? "not completed" : task.status;
    this.#wakeWith({ from: child.id, text: `[Report of ${child.name ?? child.agent} on task ${id}, ${task.subject}: ${status}]\n${report}` });
  }

  #deliver(message: TeamMessage, to: string): void {
    const { id, from, content } = message;
    const text = `[${kindText(message)} from ${from}]\n${content}`;
    if (to === "lead") this.#wakeWith({ from: id, text });
    else this.#seats.get(to)?.mail.put({ from: id, text });
  }

  /** What a message brings about beside its text; `before`: it was sent before a resume. */
  #heed({ from, to, kind, approve }: TeamMessage, before?: TeamState): void {
    const [sender, receiver] = [this.#seats.get(from), this.#seats.get(to)];
    if (kind === "shutdown_request" && receiver) {
      receiver.leaves = true;
      if (receiver.running === undefined && !before) this.#update(to, { state: "stopped" });
    }
    if (kind === "shutdown_response" && sender && approve === false) sender.leaves = false;
    if (kind === "plan_request" && sender) sender.mail.expect(planAnswer);
    if (kind === "plan_response") {
      receiver?.mail.forgo(planAnswer);
      if (receiver && approve === true && !before) this.#update(to, { approved: true });
    }
  }

  /** A letter for the lead: at once while it works; gathered with others, by who schedules next, when it waits. */
  #wakeWith(letter: Letter): void {
    const { mail } = this.#source.children;
    if (mail.isWaiting) this.#held.push(letter);
    else mail.put(letter);
  }

  #gather(): void {
    if (this.#held.length === 0 || this.#stopTimer !== undefined) return;
    // The last time is for the end.
    if ((this.#state?.wakes ?? 0) >= mostWakes - 1) return;
    this.#stopTimer = this.#clock().after(gathering, () => {
      this.#stopTimer = undefined;
      this.#wake();
    });
  }

  #wake(): void {
    const { mail } = this.#source.children;
    const letters = this.#held;
    this.#held = [];
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (mail.isWaiting && letters.length > 0) this.#tell({ type: "team.woken", count: this.#open().wakes + 1 });
    for (const letter of letters) mail.put(letter);
  }

  #clock(): Clock {
    return this.#source.house.clock;
  }

  /** Whether something will happen without the lead. */
  #isActive(): boolean {
    return [...this.#seats.values()].some(({ running, mail }) => running !== undefined && !mail.isWaiting);
  }

  #leadWaits(): void {
    if (this.state === undefined) return;
    if (this.#open().wakes >= mostWakes) void this.#end("wakes", `the lead was given reports ${mostWakes} times after it had answered`);
    else this.#settle();
  }

  /** It waits for the lead, or for a sub-agent of its own; the first is for the lead to know. */
  #memberWaits(name: string): void {
    if (this.#seats.get(name)?.mail.expects(planAnswer) === true) this.#settle();
  }

  /** When nobody works any more, the lead gets what there is; when nothing can go on either, the team is at its end. */
  #settle(): void {
    const { mail } = this.#source.children;
    if (this.state === undefined || this.#isActive()) return;
    const left = [...this.#open().tasks.values()].filter(({ status }) => status === "pending" || status === "in_progress");
    const isStuck = left.length > 0 || this.#waiters().length > 0;
    if (this.#held.length > 0) this.#wake();
    else if (isStuck && mail.isWaiting) void this.#end("deadlock", this.#deadlock(left));
    if (!isStuck) mail.forgo(teamWork);
  }

  /** Members whose plan nobody has answered. */
  #waiters(): readonly Seat[] {
    return [...this.#seats.values()].filter(({ running, mail }) => running !== undefined && mail.expects(planAnswer));
  }

  #deadlock(left: readonly TeamTask[]): string {
    const { tasks, members } = this.#open();
    const reasons = left.map((task) => {
      const owner = members.get(task.owner ?? "");
      const why =
        obstacle(task, tasks) ??
        (owner ? `its owner \`${owner.name}\` is ${owner.state}` : "no member is there to take it up");
      return `task ${task.id} (${task.subject}): ${why}`;
    });
    const waiting = this.#waiters().map(({ terms }) => `\`${terms.name}\` waits for an answer to its plan`);
    return `nothing can go on: ${[...waiting, ...reasons].join("; ")}`;
  }

  async #end(end: TeamEnd, reason: string): Promise<void> {
    const seats = [...this.#seats.values()];
    const { mail } = this.#source.children;
    this.#tell({ type: "team.finished", end, reason });
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (const letter of this.#held.splice(0)) mail.put(letter);
    if (end === "deadlock" || end === "wakes") mail.put({ from: teamWork, text: `[The team has ended: ${reason}]` });
    for (const { stop } of seats) stop?.abort();
    await Promise.all(seats.map(({ running }) => running));
    mail.forgo(teamWork);
  }
}

/** What a member whose plan is asked about waits for. */
const planAnswer = "plan";

/** Tools that change nothing. */
const looking: ReadonlySet<string> = new Set(["Read", "Grep", "Glob", "LS", "TodoWrite", "Skill", "Task"]);

function textOf(letters: ReturnType<Mail["take"]>): string {
  const blocks = letters?.message.blocks ?? [];
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** A run that came to its end without a word about its task. */
function claimOf(end: RecordedEnd | undefined, problem: string | undefined): NonNullable<Seat["claim"]> {
  if (end === undefined) return { status: "failed", report: problem ?? "it did not begin" };
  if (end.outcome !== "done") return { status: "failed", report: `${end.outcome}: ${end.reason}` };
  return { status: "completed", report: end.output === undefined ? end.text : JSON.stringify(end.output) };
}

/** What a member's terms take away; a command could write anywhere, so places go without. */
function rulesOf({ mode, paths }: Member): RuleData | undefined {
  const rules: { [tool: string]: Json } = {};
  if (mode === "read") rules["modify-files"] = "deny";
  if (mode !== undefined || paths) rules["execute-commands"] = "deny";
  if (paths && mode !== "read")
    rules["modify-files"] = { "*": "deny", ...Object.fromEntries(paths.map((path) => [path, "allow"])) };
  if (Object.keys(rules).length === 0) return undefined;
  return { json: rules, narrows: true, at: { file: "team", lines: {} } };
}

function kindText({ kind, approve }: TeamMessage): string {
  if (kind === "broadcast") return "Message to all";
  if (kind === "shutdown_request") return "Request to stop";
  if (kind === "plan_request") return "Plan to approve";
  if (kind === "plan_response") return approve === true ? "Plan approved, you may begin" : "Plan not approved";
  if (kind === "shutdown_response") return approve === false ? "Will not stop" : "Will stop";
  return "Message";
}

function receiversOf({ from, to, kind }: TeamMessage, { members }: TeamState): readonly string[] {
  const others = [...members.keys(), "lead"].filter((name) => name !== from);
  return kind === "broadcast" || to === "all" ? others : others.filter((name) => name === to);
}

/** What the runs of a member have read. */
function readBy({ children }: Recorded, member: string): ReadonlySet<string> {
  const own = [...children.values()].filter(({ name }) => name === member);
  return new Set(own.flatMap(({ conversation }) => [...conversation.read]));
}
