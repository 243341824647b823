import type { AgentRunIds } from "../../model/ids.ts";
import type { Agent, Member, Team as TeamPlan } from "../../model/plan.ts";
import type { Tool } from "../../model/ports.ts";
import { err, ok, type Result } from "../../model/result.ts";
import {
  inTeam,
  type MemberChange,
  type MemberTerms,
  type TaskChange,
  type TeamEnd,
  type TeamEvent,
  type TeamMember,
  type TeamMessage,
  type TeamState,
  type TeamTask,
} from "../../model/team.ts";
import type { AgentPorts, MemberRun } from "../agent-ports.ts";
import type { Children } from "../children.ts";
import type { Recorded, RecordedChild } from "../recorded.ts";
import { isTaskCall, messagesOf, taskCall } from "./calls.ts";
import { deadlockText, dueWork, nextWork, noReceiver, receiversOf } from "./rules.ts";
import { TeamRecord } from "./record.ts";
import { TaskList } from "./task-list.ts";
import { type Done, planAnswer, Teammate, type Work } from "./teammate.ts";
import { messageText, reportText } from "./text.ts";
import { mostWakes, Wakes } from "./wakes.ts";

export interface TeamSource {
  readonly plan: TeamPlan;
  readonly ports: Pick<AgentPorts, "agents" | "clock" | "hooks" | "isolate" | "replayed" | "workspace">;
  /** The lead's. */
  readonly ids: AgentRunIds;
  readonly agent: Agent;
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

interface Begun extends Partial<Pick<Work, "task" | "before">> {
  /** In a replay: what it was then. */
  readonly run?: MemberRun | undefined;
}

/** What the lead waits for, as long as there is work left. */
const teamWork = "team";

/** A lead, its members, and the list of tasks they work through. One for each agent run that leads. */
export class Team {
  readonly #source: TeamSource;
  readonly #teammates = new Map<string, Teammate>();
  readonly #record: TeamRecord;
  readonly #wakes: Wakes;
  /** What its tools do to the tasks. */
  readonly tasks: TaskList;
  /** In a replay: what members began then and have not begun yet. */
  #course: readonly MemberRun[];
  #isClosed = false;
  /** Resolves when nobody of a team that has ended is at work any more. */
  #ending: Promise<void> = Promise.resolve();

  constructor(source: TeamSource) {
    const { mail } = source.children;
    const record = new TeamRecord(source.ids, source.tell);
    this.#source = source;
    this.#record = record;
    this.#course = source.ports.replayed?.memberRuns(source.ids.agent) ?? [];
    source.children.reserve(this.#course.flatMap(({ id = [] }) => id));
    this.#wakes = new Wakes({
      mail,
      clock: source.ports.clock,
      count: () => record.wakes,
      onWake: () => record.tell({ type: "team.woken", count: record.wakes + 1 }),
    });
    this.tasks = new TaskList({
      record,
      lead: source.ids.agent,
      teammates: this.#teammates,
      refusal: (...completed) => this.#refusal(...completed),
      onChange: () => {
        this.#schedule();
      },
    });
    mail.onWait = () => this.#leadWaits();
    mail.onHeldUp = () => this.#leadIsHeldUp();
  }

  /** Their names. */
  get members(): readonly string[] {
    return this.#source.plan.members.map(({ name }) => name);
  }

  get state(): TeamState | undefined {
    return this.#record.state;
  }

  async create(name: string, description: string): Promise<Result<TeamState, string>> {
    await this.#ending;
    if (this.state) return err(`There is a team already, \`${this.state.name}\`. TeamDelete ends it.`);
    const { plan } = this.#source;
    this.#record.tell({ type: "team.started", name, description, parallel: plan.parallel });
    for (const member of plan.members) this.#record.tell({ type: "team.member.added", member: this.#termsOf(member) });
    this.#enlist();
    return ok(this.#record.last);
  }

  /** Ends the team at once: whoever works is cancelled. */
  async delete(): Promise<Result<string, string>> {
    const { state } = this;
    if (state === undefined) return err("There is no team.");
    await this.#finish("deleted", "the lead ended the team");
    const open = [...state.tasks.values()].filter(({ status }) => status !== "completed").length;
    return ok(`The team \`${state.name}\` has ended${open === 0 ? "" : `; ${open} of its tasks were not completed`}.`);
  }

  send(message: Omit<TeamMessage, "id">): Result<string, string> {
    const { state } = this;
    if (state === undefined) return err("There is no team.");
    const receivers = receiversOf(message, state);
    if (receivers.length === 0) return err(noReceiver(message, state));
    const sent: TeamMessage = { ...message, id: messageId(message.from, state) };
    this.#record.tell({ type: "team.message", message: sent });
    for (const name of receivers) this.#deliver(sent, name);
    this.#heed(sent);
    this.#schedule();
    return ok(`Sent to ${receivers.join(", ")}.`);
  }

  /** Takes up a team from before a resume where it was. */
  goOn(): void {
    const { recorded } = this.#source;
    if (recorded?.team === undefined || recorded.team.end !== undefined) return;
    this.#record.restore(recorded.team);
    for (const member of this.#source.plan.members)
      if (!recorded.team.members.has(member.name))
        this.#record.tell({ type: "team.member.added", member: this.#termsOf(member) });
    this.#enlist();
    const ofLead = new Set(recorded.read);
    for (const message of recorded.team.messages) {
      this.#heed(message, recorded.team);
      for (const name of receiversOf(message, recorded.team)) {
        const read = name === "lead" ? ofLead : readBy(recorded, name);
        if (!read.has(message.id)) this.#deliver(message, name);
      }
    }
    for (const child of recorded.children.values())
      if (isTaskCall(child.call) && child.end && !ofLead.has(child.id)) this.#hear(child, recorded.team);
    for (const [name, member] of recorded.team.members) {
      const teammate = this.#teammates.get(name);
      if (teammate && member.state !== "waiting") this.#takeUp(teammate, member, recorded.team);
    }
    this.#schedule();
  }

  /** What a member was at. Between two lines of the log its task may say one thing and it another: then the task counts. */
  #takeUp(teammate: Teammate, { name, state }: TeamMember, team: TeamState): void {
    const { children } = this.#source;
    const task = [...team.tasks.values()].find((it) => it.owner === name && it.status === "in_progress");
    const last = task ? children.last(taskCall(team, task.id)) : children.lastNamed(name);
    if (task || (state === "working" && isCutOff(last))) return this.#work(teammate, { task, before: last });
    if (state !== "working") return;
    this.#update(name, { state: "idle", task: null, worktree: null });
    if (teammate.leaves) this.#remove(name);
  }

  /** The lead has ended: nobody works for it any more. */
  async close(isCancelled: boolean): Promise<void> {
    if (this.state)
      await this.#finish(
        isCancelled ? "cancelled" : "done",
        isCancelled ? "the lead was cancelled" : "the lead has ended",
      );
    this.#isClosed = true;
  }

  #update(member: string, change: MemberChange): void {
    this.#record.tell({ type: "team.member.updated", member, change });
  }

  #remove(member: string): void {
    this.#record.tell({ type: "team.member.removed", member, reason: "it was asked to stop" });
  }

  #termsOf({ key, ...terms }: Member): MemberTerms {
    return { ...terms, agent: this.#source.ports.agents[key]?.name ?? terms.name };
  }

  #enlist(): void {
    this.#teammates.clear();
    const { plan, ports, toolsOf, agent: lead, ...around } = this.#source;
    for (const terms of plan.members) {
      const { name } = terms;
      const agent = ports.agents[terms.key];
      if (agent === undefined) continue;
      const teammate: Teammate = new Teammate({
        ...around,
        lead: lead.name,
        terms,
        agent,
        isolate: ports.isolate,
        tools: () => toolsOf(name),
        isApproved: () => this.#record.isApproved(name),
        onWait: () => {
          this.#settle();
        },
      });
      this.#teammates.set(name, teammate);
    }
  }

  /** Why a task has not been completed, though somebody says so: a hook said no. */
  async #refusal(task: TeamTask, member: string, agentRun: string): Promise<string | undefined> {
    const { ports, ids, signal } = this.#source;
    const teammate = this.#teammates.get(member);
    const { agent } = teammate ?? this.#source;
    // Where the work is: it may not be where the others see it yet.
    const workspace = teammate?.folder ?? this.#source.workspace ?? ports.workspace;
    const parent = teammate && { parent: this.#source.agent };
    const hooks = ports.hooks?.(agent, { step: ids.step, agent: agentRun, workspace, ...parent });
    const fields = {
      task_id: task.id,
      task_subject: task.subject,
      task_description: task.description,
      teammate_name: member,
      team_name: this.#record.last.name,
    };
    const word = await hooks?.fire({ event: "TaskCompleted", fields }, signal);
    return word?.block ?? word?.stop;
  }

  /** Starts whatever may start, in the order it was added, and looks whether anything is left. */
  #schedule(): void {
    if (this.#isClosed || this.state === undefined) return;
    this.#source.children.mail.expect(teamWork);
    for (;;) {
      const teammates = [...this.#teammates.values()];
      const working = teammates.filter(({ isWorking }) => isWorking).length;
      const next = working < this.#source.plan.parallel ? this.#next(teammates) : undefined;
      if (next === undefined) break;
      const [run, ...left] = this.#course;
      this.#course = left;
      this.#work(next.teammate, { task: next.task, run });
    }
    this.#settle();
    if (this.#isActive()) this.#wakes.gather();
  }

  #next(teammates: readonly Teammate[]): ReturnType<typeof nextWork<Teammate>> {
    const [due] = this.#course;
    const { last } = this.#record;
    return due === undefined ? nextWork(last, teammates) : dueWork(due, last, teammates);
  }

  /** One run of a member: a task, or what others wrote to it. Claims before anything else happens. */
  #work(teammate: Teammate, { task, before, run }: Begun): void {
    const { name } = teammate;
    if (task && task.status !== "in_progress")
      this.#record.tell({
        type: "team.task.updated",
        task: task.id,
        by: name,
        change: { status: "in_progress", owner: name },
      });
    this.#update(name, { state: "working", ...(task && { task: task.id }), ...(!before && { approved: false }) });
    const onStart = (agentRun: string, worktree: string | undefined): void => {
      this.#update(name, { agentRun, ...(worktree !== undefined && { worktree }) });
    };
    const { round } = this.#record.last;
    const isGone = (): boolean => this.#isOver || this.#record.last.round !== round;
    const refusal = async (): Promise<string | undefined> => {
      if (isGone()) return "the team has ended";
      return task && !teammate.hasClaimed ? this.#refusal(task, name, teammate.agentRun) : undefined;
    };
    const work = {
      task,
      before,
      due: run?.id === undefined ? undefined : run.messages,
      id: run?.id,
      team: this.#record.last,
      onStart,
      refusal,
    };
    teammate.begin(work, (done) => {
      if (!isGone()) this.#take(teammate, task, done);
    });
  }

  get #isOver(): boolean {
    return this.#isClosed || this.#source.signal.aborted || this.state === undefined;
  }

  /** What the run of a member has come to: its task first, then the word to the lead, then the next. */
  #take(teammate: Teammate, task: TeamTask | undefined, { status, report, child }: Done): void {
    const { name } = teammate;
    const hasLeft = teammate.leaves && !teammate.hasClaimed;
    const current = this.#record.last.tasks.get(task?.id ?? "");
    if (current?.status === "in_progress" && current.owner === name) {
      const change: TaskChange = hasLeft ? { status: "pending", owner: null } : { status, report };
      this.#record.tell({
        type: "team.task.updated",
        task: current.id,
        by: teammate.hasClaimed ? name : "team",
        change,
      });
    }
    this.#update(name, { state: "idle", task: null, worktree: null });
    if (teammate.leaves) this.#remove(name);
    const from = child?.id ?? `task:${task?.id ?? name}`;
    if (hasLeft) {
      const what = task ? `; task ${task.id}, ${task.subject}, is open again` : "";
      this.#wakes.add({ from, text: `[${name} has stopped${what}]` });
    } else if (task) this.#wakes.add({ from, text: reportText({ ...task, status }, { name, report }) });
    else if (status === "failed") this.#wakes.add({ from, text: `[${name} could not answer its messages]\n${report}` });
    this.#schedule();
  }

  #deliver(message: TeamMessage, to: string): void {
    const letter = { from: message.id, text: messageText(message) };
    if (to === "lead") this.#wakes.add(letter);
    else this.#teammates.get(to)?.mail.put(letter);
  }

  /** A report of before a resume that the lead has not read. */
  #hear({ id: run, call, name, agent }: RecordedChild, team: TeamState): void {
    const { tasks } = team;
    const id = [...tasks.keys()].find((it) => call === taskCall(team, it));
    const task = tasks.get(id ?? "");
    // Whose task is not at its end yet will be heard of when it is.
    if (task === undefined || task.status === "in_progress") return;
    this.#wakes.add({ from: run, text: reportText(task, { name: name ?? agent, report: task.report ?? "" }) });
  }

  /** What a message brings about beside its text; `before`: it was sent before a resume. */
  #heed({ from, to, kind, approve }: TeamMessage, before?: TeamState): void {
    const [sender, receiver] = [this.#teammates.get(from), this.#teammates.get(to)];
    if (kind === "shutdown_request" && receiver) {
      receiver.leaves = true;
      if (!receiver.isWorking && !before) this.#remove(to);
    }
    if (kind === "shutdown_response" && sender && approve === false) sender.leaves = false;
    if (kind === "plan_request" && sender) sender.mail.expect(planAnswer);
    if (kind === "plan_response") {
      receiver?.mail.forgo(planAnswer);
      if (receiver && approve === true && !before) this.#update(to, { approved: true });
    }
  }

  /** Whether something will happen without the lead. */
  #isActive(): boolean {
    // Who waits for the lead holds up the changes of all behind it.
    const held = Math.min(...this.#waiters().map(({ order }) => order));
    return [...this.#teammates.values()].some((teammate) => teammate.isActive(held));
  }

  #leadWaits(): void {
    if (this.state === undefined) return;
    if (this.#record.last.wakes >= mostWakes)
      void this.#finish("wakes", `the lead was given reports ${mostWakes} times after it had answered`);
    else this.#settle();
  }

  #leadIsHeldUp(): void {
    const { mail } = this.#source.children;
    if (this.state) this.#settle();
    else if (mail.isHeldUp(teamWork)) mail.letGo();
  }

  /** When nobody works any more, the lead gets what there is; when nothing can go on either, the team is at its end. */
  #settle(): void {
    const { mail } = this.#source.children;
    if (this.state === undefined || this.#isActive()) return;
    // The lead may still write.
    if (this.#isHeldUp && !mail.isWaiting && !mail.isHeldUp(teamWork)) return;
    const left = [...this.#record.last.tasks.values()].filter(
      ({ status }) => status === "pending" || status === "in_progress",
    );
    const isStuck = left.length > 0 || this.#waiters().length > 0;
    if (!this.#wakes.isEmpty) this.#wakes.flush();
    else if (this.#isOffCourse(isStuck)) return this.#leaveCourse();
    else if (isStuck && mail.isWaiting) void this.#finish("deadlock", deadlockText(this.#record.last, this.#waiters()));
    if (!isStuck) mail.forgo(teamWork);
  }

  /** In a replay: whoever waits for what happened then waits in vain. */
  #isOffCourse(isStuck: boolean): boolean {
    const { mail } = this.#source.children;
    return mail.isHeldUp(teamWork) || (mail.isWaiting && (this.#isHeldUp || (isStuck && this.#course.length > 0)));
  }

  get #isHeldUp(): boolean {
    return [...this.#teammates.values()].some((teammate) => teammate.isHeldUp);
  }

  /** From here on the team goes its own way, and the recorded replies tell what differs. */
  #leaveCourse(): void {
    const { mail } = this.#source.children;
    const isBehind = this.#course.length > 0;
    this.#course = [];
    if (isBehind) return this.#schedule();
    for (const teammate of this.#teammates.values()) teammate.mail.letGo();
    mail.letGo();
  }

  /** Members whose plan nobody has answered. */
  #waiters(): readonly Teammate[] {
    return [...this.#teammates.values()].filter(({ waitsForLead }) => waitsForLead);
  }

  #finish(end: TeamEnd, reason: string): Promise<void> {
    return (this.#ending = this.#end(end, reason));
  }

  async #end(end: TeamEnd, reason: string): Promise<void> {
    const { mail } = this.#source.children;
    this.#record.tell({ type: "team.finished", end, reason });
    this.#wakes.flush();
    if (end === "deadlock" || end === "wakes") mail.put({ from: teamWork, text: `[The team has ended: ${reason}]` });
    await Promise.all([...this.#teammates.values()].map((teammate) => teammate.stop()));
    mail.forgo(teamWork);
  }
}

/** Counted by sender: who of two writes first is a matter of time, and a replay has to find the same ids. */
function messageId(from: string, team: TeamState): string {
  const count = team.messages.filter((message) => message.from === from).length;
  return `message:${inTeam(team, from)}:${count + 1}`;
}

/** What the runs of a member have read, those that a run began with among it. */
function readBy({ children }: Recorded, member: string): ReadonlySet<string> {
  const own = [...children.values()].filter(({ name }) => name === member);
  return new Set(
    own.flatMap((child) => [
      ...child.conversation.read,
      ...(child.end !== undefined || isCutOff(child) ? messagesOf(child.call) : []),
    ]),
  );
}

/** It has replied and not ended. */
function isCutOff(child: RecordedChild | undefined): child is RecordedChild {
  return child !== undefined && child.end === undefined && child.conversation.turns > 0;
}
