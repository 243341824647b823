import type { AgentRunIds } from "../../model/ids.ts";
import type { Agent, Member, Team as TeamPlan } from "../../model/plan.ts";
import type { Tool } from "../../model/ports.ts";
import { err, ok, type Result } from "../../model/result.ts";
import {
  foldTeam,
  inTeam,
  type MemberChange,
  type MemberTerms,
  obstacle,
  type TaskChange,
  type TeamEnd,
  type TeamEvent,
  type TeamMember,
  type TeamMessage,
  type TeamState,
  type TeamTask,
} from "../../model/team.ts";
import type { AgentPorts } from "../agent-ports.ts";
import type { Children } from "../children.ts";
import type { Recorded, RecordedChild } from "../recorded.ts";
import { deadlockText, misfit, nextWork, noReceiver, noTask, receiversOf } from "./rules.ts";
import { type Claim, type Done, lettersOf, planAnswer, Seat } from "./seat.ts";
import { messageText, reportText } from "./text.ts";
import { mostWakes, Wakes } from "./wakes.ts";

export interface TeamSource {
  readonly plan: TeamPlan;
  readonly ports: Pick<AgentPorts, "agents" | "clock" | "hooks" | "isolate" | "workspace">;
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

type Fact = TeamEvent extends infer E ? (E extends TeamEvent ? Omit<E, keyof AgentRunIds> : never) : never;

/** What the lead waits for, as long as there is work left. */
const teamWork = "team";

/** A lead, its members, and the list of tasks they work through. One for each agent run that leads. */
export class Team {
  readonly #source: TeamSource;
  readonly #seats = new Map<string, Seat>();
  #state: TeamState | undefined;
  readonly #wakes: Wakes;
  #isClosed = false;
  /** Resolves when nobody of a team that has ended is at work any more. */
  #ending: Promise<void> = Promise.resolve();

  constructor(source: TeamSource) {
    const { mail } = source.children;
    this.#source = source;
    this.#wakes = new Wakes({
      mail,
      clock: source.ports.clock,
      count: () => this.#state?.wakes ?? 0,
      onWake: () => this.#tell({ type: "team.woken", count: this.#open().wakes + 1 }),
    });
    mail.onWait = () => this.#leadWaits();
  }

  /** Their names. */
  get members(): readonly string[] {
    return this.#source.plan.members.map(({ name }) => name);
  }

  get state(): TeamState | undefined {
    return this.#state?.end === undefined ? this.#state : undefined;
  }

  async create(name: string, description: string): Promise<Result<TeamState, string>> {
    await this.#ending;
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
    await this.#finish("deleted", "the lead ended the team");
    const open = [...state.tasks.values()].filter(({ status }) => status !== "completed").length;
    return ok(`The team \`${state.name}\` has ended${open === 0 ? "" : `; ${open} of its tasks were not completed`}.`);
  }

  add(
    task: Pick<TeamTask, "subject" | "description" | "activeForm" | "owner" | "dependsOn">,
  ): Result<TeamTask, string> {
    const { state } = this;
    if (state === undefined) return err("There is no team. Call TeamCreate first.");
    const id = String(state.tasks.size + 1);
    const problem = misfit(id, task, state);
    if (problem !== undefined) return err(problem);
    const added: TeamTask = { id, status: "pending", ...task };
    this.#tell({ type: "team.task.added", task: added });
    this.#schedule();
    return ok(this.#open().tasks.get(id) ?? added);
  }

  /** Changes a task by the word of the lead. */
  async change(id: string, change: TaskChange): Promise<Result<TeamTask, string>> {
    const task = this.state?.tasks.get(id);
    if (task === undefined) return err(noTask(id, this.state));
    const isOpen = task.status === "pending" || task.status === "failed";
    if (!isOpen && change.status !== undefined)
      return err(`Task ${id} is ${task.status}; its status is not yours to change now.`);
    if (change.status === "in_progress")
      return err(`Task ${id} is taken up by a member; give it an \`owner\`, or leave it to whoever is free.`);
    if (!isOpen)
      return err(`Task ${id} is ${task.status}: whoever works on it has it as it was. Tell them by SendMessage.`);
    const problem = misfit(id, { ...task, ...change, owner: change.owner ?? undefined }, this.#open());
    if (problem !== undefined) return err(problem);
    if (change.status === "completed") {
      const no = await this.#completes(task, "lead", this.#source.ids.agent);
      if (no !== undefined) return err(no);
      // Hooks take their time, and a member may have taken it up meanwhile.
      if (this.state?.tasks.get(id)?.status !== task.status)
        return err(`Task ${id} has changed meanwhile; look at it with TaskGet.`);
    }
    const freed = change.status === "pending" && change.owner === undefined ? { owner: null } : {};
    this.#tell({ type: "team.task.updated", task: id, by: "lead", change: { ...freed, ...change } });
    this.#schedule();
    return ok(this.#open().tasks.get(id) ?? task);
  }

  /** What a member says of its task. It counts when the member's run has ended, and its work is where others find it. */
  async report(member: string, id: string, claim: Claim): Promise<Result<string, string>> {
    const seat = this.#seats.get(member);
    const task = this.state?.tasks.get(id);
    if (seat === undefined || task === undefined) return err(noTask(id, this.state));
    if (task.owner !== member || task.status !== "in_progress") return err(`Task ${id} is not yours.`);
    if (claim.status === "completed") {
      const no = await this.#completes(task, member, seat.agentRun);
      if (no !== undefined) return err(no);
      if (this.state === undefined) return err("There is no team.");
    }
    seat.claim(claim);
    return ok(`Noted. Your work on task ${id} ends with this turn.`);
  }

  /** Gives a task to a member by the word of the lead. */
  assign(id: string, member: string): Result<string, string> {
    const task = this.state?.tasks.get(id);
    const seat = this.#seats.get(member);
    if (task === undefined || this.#state === undefined) return err(noTask(id, this.state));
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
    const receivers = receiversOf(message, state);
    if (receivers.length === 0) return err(noReceiver(message, state));
    const sent: TeamMessage = { ...message, id: `message:${inTeam(state, String(state.messages.length + 1))}` };
    this.#tell({ type: "team.message", message: sent });
    for (const name of receivers) this.#deliver(sent, name);
    this.#heed(sent);
    this.#schedule();
    return ok(`Sent to ${receivers.join(", ")}.`);
  }

  /** Takes up a team from before a resume where it was. */
  goOn(): void {
    const { recorded } = this.#source;
    if (recorded?.team === undefined || recorded.team.end !== undefined) return;
    this.#state = recorded.team;
    for (const member of this.#source.plan.members)
      if (!recorded.team.members.has(member.name))
        this.#tell({ type: "team.member.added", member: this.#termsOf(member) });
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
      if (child.call.startsWith("task:") && child.end && !ofLead.has(child.id)) this.#hear(child, recorded.team);
    for (const [name, member] of recorded.team.members) {
      const seat = this.#seats.get(name);
      if (seat && member.state !== "waiting") this.#takeUp(seat, member, recorded.team);
    }
    this.#schedule();
  }

  /** What a member was at. Between two lines of the log its task may say one thing and it another: then the task counts. */
  #takeUp(seat: Seat, { name, state }: TeamMember, team: TeamState): void {
    const { children } = this.#source;
    const task = [...team.tasks.values()].find((it) => it.owner === name && it.status === "in_progress");
    const last = task ? children.last(`task:${inTeam(team, task.id)}`) : children.lastNamed(name);
    if (task || (state === "working" && isCutOff(last))) return this.#work(seat, task, last);
    if (state !== "working") return;
    this.#update(name, { state: "idle", task: null, worktree: null });
    if (seat.leaves) this.#remove(name);
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

  #tell(fact: Fact): void {
    const event = { ...this.#source.ids, ...fact } as TeamEvent;
    this.#source.tell(event);
    this.#state = foldTeam(this.#state, event);
  }

  #update(member: string, change: MemberChange): void {
    this.#tell({ type: "team.member.updated", member, change });
  }

  #remove(member: string): void {
    this.#tell({ type: "team.member.removed", member, reason: "it was asked to stop" });
  }

  #open(): TeamState {
    if (this.#state === undefined) throw new Error("there is no team");
    return this.#state;
  }

  #termsOf({ key, ...terms }: Member): MemberTerms {
    return { ...terms, agent: this.#source.ports.agents[key]?.name ?? terms.name };
  }

  #seat(): void {
    this.#seats.clear();
    const { plan, ports, toolsOf, agent: lead, ...around } = this.#source;
    for (const terms of plan.members) {
      const { name } = terms;
      const agent = ports.agents[terms.key];
      if (agent === undefined) continue;
      const seat: Seat = new Seat({
        ...around,
        lead: lead.name,
        terms,
        agent,
        isolate: ports.isolate,
        tools: () => toolsOf(name),
        isApproved: () => this.#state?.members.get(name)?.approved === true,
        onWait: () => {
          this.#settle();
        },
      });
      this.#seats.set(name, seat);
    }
  }

  /** Hooks may refuse that a task is completed. */
  async #completes(task: TeamTask, member: string, agentRun: string): Promise<string | undefined> {
    const { ports, ids, signal } = this.#source;
    const seat = this.#seats.get(member);
    const { agent } = seat ?? this.#source;
    // Where the work is: it may not be where the others see it yet.
    const workspace = seat?.folder ?? this.#source.workspace ?? ports.workspace;
    const parent = seat && { parent: this.#source.agent };
    const hooks = ports.hooks?.(agent, { step: ids.step, agent: agentRun, workspace, ...parent });
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
      const seats = [...this.#seats.values()];
      const working = seats.filter(({ isWorking }) => isWorking).length;
      const next = working < this.#source.plan.parallel ? nextWork(this.#open(), seats) : undefined;
      if (next === undefined) break;
      this.#work(next.seat, next.task);
    }
    this.#settle();
    if (this.#isActive()) this.#wakes.gather();
  }

  /** One run of a member: a task, or what others wrote to it. Claims before anything else happens. */
  #work(seat: Seat, task: TeamTask | undefined, before?: RecordedChild): void {
    const { name } = seat;
    if (task && task.status !== "in_progress")
      this.#tell({
        type: "team.task.updated",
        task: task.id,
        by: name,
        change: { status: "in_progress", owner: name },
      });
    this.#update(name, { state: "working", ...(task && { task: task.id }), ...(!before && { approved: false }) });
    const onStart = (agentRun: string, worktree: string | undefined): void =>
      this.#update(name, { agentRun, ...(worktree !== undefined && { worktree }) });
    const { round } = this.#open();
    const isGone = (): boolean => this.#isOver || this.#open().round !== round;
    const refusal = async (): Promise<string | undefined> => {
      if (isGone()) return "the team has ended";
      return task && !seat.hasClaimed ? this.#completes(task, name, seat.agentRun) : undefined;
    };
    seat.begin({ task, before, team: this.#open(), onStart, refusal }, (done) => {
      if (!isGone()) this.#take(seat, task, done);
    });
  }

  get #isOver(): boolean {
    return this.#isClosed || this.#source.signal.aborted || this.state === undefined;
  }

  /** What the run of a member has come to: its task first, then the word to the lead, then the next. */
  #take(seat: Seat, task: TeamTask | undefined, { status, report, child }: Done): void {
    const { name } = seat;
    const hasLeft = seat.leaves && !seat.hasClaimed;
    const current = this.#open().tasks.get(task?.id ?? "");
    if (current?.status === "in_progress" && current.owner === name) {
      const change: TaskChange = hasLeft ? { status: "pending", owner: null } : { status, report };
      this.#tell({ type: "team.task.updated", task: current.id, by: seat.hasClaimed ? name : "team", change });
    }
    this.#update(name, { state: "idle", task: null, worktree: null });
    if (seat.leaves) this.#remove(name);
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
    else this.#seats.get(to)?.mail.put(letter);
  }

  /** A report of before a resume that the lead has not read. */
  #hear({ id: run, call, name, agent }: RecordedChild, team: TeamState): void {
    const { tasks } = team;
    const id = [...tasks.keys()].find((it) => call === `task:${inTeam(team, it)}`);
    const task = tasks.get(id ?? "");
    // Whose task is not at its end yet will be heard of when it is.
    if (task === undefined || task.status === "in_progress") return;
    this.#wakes.add({ from: run, text: reportText(task, { name: name ?? agent, report: task.report ?? "" }) });
  }

  /** What a message brings about beside its text; `before`: it was sent before a resume. */
  #heed({ from, to, kind, approve }: TeamMessage, before?: TeamState): void {
    const [sender, receiver] = [this.#seats.get(from), this.#seats.get(to)];
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
    return [...this.#seats.values()].some((seat) => seat.isActive(held));
  }

  #leadWaits(): void {
    if (this.state === undefined) return;
    if (this.#open().wakes >= mostWakes)
      void this.#finish("wakes", `the lead was given reports ${mostWakes} times after it had answered`);
    else this.#settle();
  }

  /** When nobody works any more, the lead gets what there is; when nothing can go on either, the team is at its end. */
  #settle(): void {
    const { mail } = this.#source.children;
    if (this.state === undefined || this.#isActive()) return;
    const left = [...this.#open().tasks.values()].filter(
      ({ status }) => status === "pending" || status === "in_progress",
    );
    const isStuck = left.length > 0 || this.#waiters().length > 0;
    if (!this.#wakes.isEmpty) this.#wakes.flush();
    else if (isStuck && mail.isWaiting) void this.#finish("deadlock", deadlockText(this.#open(), this.#waiters()));
    if (!isStuck) mail.forgo(teamWork);
  }

  /** Members whose plan nobody has answered. */
  #waiters(): readonly Seat[] {
    return [...this.#seats.values()].filter(({ waitsForLead }) => waitsForLead);
  }

  #finish(end: TeamEnd, reason: string): Promise<void> {
    return (this.#ending = this.#end(end, reason));
  }

  async #end(end: TeamEnd, reason: string): Promise<void> {
    const { mail } = this.#source.children;
    this.#tell({ type: "team.finished", end, reason });
    this.#wakes.flush();
    if (end === "deadlock" || end === "wakes") mail.put({ from: teamWork, text: `[The team has ended: ${reason}]` });
    await Promise.all([...this.#seats.values()].map((seat) => seat.stop()));
    mail.forgo(teamWork);
  }
}

/** What the runs of a member have read, those that a run began with among it. */
function readBy({ children }: Recorded, member: string): ReadonlySet<string> {
  const own = [...children.values()].filter(({ name }) => name === member);
  return new Set(
    own.flatMap((child) => [
      ...child.conversation.read,
      ...(child.end !== undefined || isCutOff(child) ? lettersOf(child.call) : []),
    ]),
  );
}

/** It has replied and not ended. */
function isCutOff(child: RecordedChild | undefined): child is RecordedChild {
  return child !== undefined && child.end === undefined && child.conversation.turns > 0;
}
