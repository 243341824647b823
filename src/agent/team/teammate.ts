import type { AgentRunIds } from "../../model/ids.ts";
import type { Json } from "../../model/json.ts";
import { textOf } from "../../model/message.ts";
import type { Agent, Member, RuleData } from "../../model/plan.ts";
import type { Judge, Tool } from "../../model/ports.ts";
import { ok, type Result } from "../../model/result.ts";
import { inTeam, type TeamState, type TeamTask } from "../../model/team.ts";
import type { AgentPorts, Brought, Isolated } from "../agent-ports.ts";
import type { Ending } from "../agent-result.ts";
import type { Orphan } from "../assignment.ts";
import type { Children } from "../children.ts";
import { Mail } from "../mail.ts";
import type { RecordedChild, RecordedEnd } from "../recorded.ts";
import { talkCall, taskCall } from "./calls.ts";
import { memberText, taskText } from "./text.ts";

export interface TeammateSource {
  readonly terms: Member;
  readonly agent: Agent;
  readonly children: Children;
  readonly isolate: AgentPorts["isolate"];
  /** The lead's run, its agent's name, and the folder it works in where that is not the workspace. */
  readonly ids: AgentRunIds;
  readonly lead: string;
  readonly workspace: string | undefined;
  /** Aborted when all below the lead is. */
  readonly signal: AbortSignal;
  readonly tools: () => readonly Tool[];
  /** Whether the lead has approved what the member plans. */
  readonly isApproved: () => boolean;
  /** It has nothing to do but to wait. */
  readonly onWait: () => void;
}

/** What a member says its task has come to. */
export interface Claim {
  readonly status: "completed" | "failed";
  readonly report: string;
}

/** One run of a member: a task, or without one what others wrote to it. */
export interface Work {
  readonly task: TeamTask | undefined;
  /** Its run from before a resume. */
  readonly before: RecordedChild | undefined;
  /** Of one without a task, in a replay: the messages it began with then. */
  readonly due: readonly string[] | undefined;
  /** In a replay: the id of its agent run. */
  readonly id: string | undefined;
  readonly team: TeamState;
  /** Its agent run has begun. */
  readonly onStart: (run: string, folder: string | undefined) => void;
  /** Why what is said to be done is not taken over: the team has ended, a hook said no. */
  readonly refusal: () => Promise<string | undefined>;
}

/** What a run of a member has come to. */
export interface Done extends Claim {
  /** The run; undefined when there was none. */
  readonly child: RecordedChild | undefined;
}

/** What a member whose plan is asked about waits for. */
export const planAnswer = "plan";

/** A member's place in a team: it does one thing after the other. */
export class Teammate {
  readonly mail: Mail = new Mail();
  readonly #source: TeammateSource;
  #stop: AbortController | undefined;
  #running: Promise<unknown> | undefined;
  #run = "";
  #folder: string | undefined;
  /** It has ended, and waits until the changes of others before it are brought in. */
  #isQueued = false;
  #order = 0;
  /** It counts when the run has ended, and the work is where others find it. */
  #claim: Claim | undefined;
  /** It was asked to stop, and has not said no. */
  leaves = false;

  constructor(source: TeammateSource) {
    this.#source = source;
    this.mail.onWait = source.onWait;
    this.mail.onHeldUp = source.onWait;
  }

  get name(): string {
    return this.#source.terms.name;
  }

  get agent(): Agent {
    return this.#source.agent;
  }

  get needsApproval(): boolean {
    return this.#source.terms.plan === true;
  }

  get #leads(): boolean {
    return this.#source.agent.team !== undefined;
  }

  get isWorking(): boolean {
    return this.#running !== undefined;
  }

  /** Its agent run, of now or the last. */
  get agentRun(): string {
    return this.#run;
  }

  /** Whether something will come of it, though the changes of tasks from `held` on are not brought in. */
  isActive(held: number): boolean {
    const waits = this.mail.waitsOnlyFor(planAnswer) || this.isHeldUp;
    return this.isWorking && !waits && !(this.#isQueued && this.#order > held);
  }

  /** In a replay: it waits for a letter that it read then. */
  get isHeldUp(): boolean {
    return this.mail.isHeldUp(planAnswer);
  }

  /** The place of its task, by which its changes are brought in. */
  get order(): number {
    return this.#order;
  }

  /** The folder it works in, where that is its own. */
  get folder(): string | undefined {
    return this.#folder;
  }

  /** Its plan is with the lead. */
  get waitsForLead(): boolean {
    return this.isWorking && this.mail.expects(planAnswer);
  }

  /** Its work on the task ends with this turn. */
  claim(claim: Claim): void {
    this.#claim = claim;
  }

  /** Whether it spoke of its task itself. */
  get hasClaimed(): boolean {
    return this.#claim !== undefined;
  }

  /** Cancels what it does. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stop?.abort("ended");
    await this.#running;
  }

  /** Works, and hands on what has come of it once nothing of it runs any more. */
  begin(work: Work, onDone: (done: Done) => void): void {
    this.#claim = undefined;
    this.#order = Number(work.task?.id ?? 0);
    this.#stop = new AbortController();
    const signal = AbortSignal.any([this.#source.signal, this.#stop.signal]);
    this.#running = this.#workThrough(work, signal, onDone);
  }

  async #workThrough(work: Work, signal: AbortSignal, onDone: (done: Done) => void): Promise<void> {
    const done = await this.#work(work, signal);
    this.#running = undefined;
    onDone(done);
  }

  async #work(work: Work, signal: AbortSignal): Promise<Done> {
    const { before } = work;
    const opened = await this.#isolate(work, signal);
    const isolated = opened.ok ? opened.value : undefined;
    this.#folder = isolated?.folder;
    // It had come to its end, and only what follows from that is missing.
    const isOver = before?.end !== undefined;
    const orphan = opened.ok && !isOver ? this.#spawn(work, signal, isolated?.folder) : undefined;
    if (orphan) {
      this.#run = orphan.child.id;
      work.onStart(this.#run, isolated?.folder);
    }
    const why = opened.ok ? "there may not be more sub-agents (`limits.children`, or 200 in a run)" : opened.error;
    const text = orphan ? await orphan.end : why;
    const child = isOver ? before : orphan && this.#source.children.last(orphan.child.call);
    const claimed = this.#claimed(child?.end, text);
    const refusal = claimed.status === "completed" ? await work.refusal() : undefined;
    const claim: Claim =
      refusal === undefined ? claimed : { status: "failed", report: `${claimed.report}\n\n${refusal}` };
    const wait = this.#queue.bind(this);
    const { problem, note }: Brought = (await isolated?.close({ apply: claim.status === "completed", wait })) ?? {};
    const status = problem === undefined ? claim.status : "failed";
    const report = [claim.report, problem ?? note ?? ""].filter((it) => it !== "").join("\n\n");
    return { status, report, child };
  }

  /** What it said of its task, unless its run tells another story. */
  #claimed(end: RecordedEnd | undefined, problem: string): Claim {
    const claim = this.#claim ?? claimOf(end, problem);
    if (claim.status === "failed") return claim;
    if (end?.outcome !== "done") {
      const why = end ? `${end.outcome}: ${end.reason}` : problem;
      return { status: "failed", report: `${claim.report}\n\n${why}` };
    }
    const isIdle = this.needsApproval && !this.#claim && !this.#source.isApproved();
    return isIdle ? { status: "failed", report: `its plan was not approved\n\n${claim.report}` } : claim;
  }

  async #queue(turn: Promise<unknown>): Promise<void> {
    this.#isQueued = true;
    this.#source.onWait();
    await turn;
    this.#isQueued = false;
  }

  async #isolate({ task, before, team }: Work, signal: AbortSignal): Promise<Result<Isolated | undefined, string>> {
    const { terms, isolate, ids, lead, workspace: into } = this.#source;
    if (terms.isolation === undefined) return ok(undefined);
    if (isolate === undefined) return { ok: false, error: "there are no worktrees here" };
    const owner = `${ids.step}/${lead}/${terms.name}.${inTeam(team, task?.id ?? "messages")}`;
    const goesOn = before !== undefined;
    const opened = await isolate({ step: ids.step, owner, order: Number(task?.id ?? 0), into, goesOn, signal });
    return opened.ok ? opened : { ok: false, error: opened.error.message };
  }

  #spawn({ task, before, team, due, id }: Work, signal: AbortSignal, folder: string | undefined): Orphan | undefined {
    const { terms, agent, children, lead, tools } = this.#source;
    const letters = task === undefined && !before ? this.mail.take(due) : undefined;
    const call = before?.call ?? (task ? taskCall(team, task.id) : talkCall(terms.name, letters?.from ?? []));
    // Who is only written to goes on with what it did last.
    const last = task === undefined && !before ? children.lastNamed(terms.name) : undefined;
    const conversation = before && before.conversation.turns > 0 ? before.conversation : last?.conversation;
    const permissions = rulesOf(terms);
    return children.spawn({
      target: { name: terms.name, key: terms.key, agent },
      spawned: { call, title: task?.subject ?? "messages", name: terms.name },
      prompt: task ? taskText(task, team) : lettersText(letters),
      attempt: { signal, ...(folder !== undefined && { workspace: folder }), ...(permissions && { permissions }) },
      ...(conversation && { recorded: conversation }),
      ...(before && { isAgain: true }),
      ...(id !== undefined && { id }),
      ...(last && letters && { more: letters.message }),
      membership: {
        // Those of the team it leads have the same names; its last words are its report.
        tools: this.#leads ? [] : tools(),
        mail: this.mail,
        told: memberText(terms.name, team, { lead, folder, leads: this.#leads }),
        border: () => this.#border(),
        gate: (judge) => this.#gate(judge),
      },
    });
  }

  #border(): Ending | undefined {
    if (this.#claim) return { outcome: "done", reason: `it reported its task as ${this.#claim.status}` };
    return this.leaves ? { outcome: "cancelled", reason: "it was asked to stop" } : undefined;
  }

  #gate(judge: Judge): Judge {
    return async (call) => {
      const verdict = await judge(call);
      const text = verdict.decision === "deny" ? undefined : this.#objection(call.tool);
      return text === undefined
        ? verdict
        : { ...verdict, decision: "deny", rule: { text, layer: "team" }, toAllow: [] };
    };
  }

  /** What in its terms forbids a tool, whatever the rules say. */
  #objection(tool: string): string | undefined {
    const { mode, paths } = this.#source.terms;
    if (looking.has(tool)) return undefined;
    if (mode === "read") return "mode: read";
    if ((mode === "edit" || paths) && !editing.has(tool)) return mode === "edit" ? "mode: edit" : "paths";
    if (!this.needsApproval || this.#source.isApproved()) return undefined;
    return "plan: required; send it to `lead` by SendMessage with the kind `plan_request`, and end your turn";
  }
}

/** Tools that change nothing. */
const looking: ReadonlySet<string> = new Set(["Read", "Grep", "Glob", "LS", "TodoWrite", "Skill", "Task"]);

/** Tools that change files, and nothing else. */
const editing: ReadonlySet<string> = new Set(["Write", "Edit"]);

function lettersText(letters: ReturnType<Mail["take"]>): string {
  return textOf(letters?.message.blocks ?? []);
}

/** Of a run that came to its end without a word about its task. */
function claimOf(end: RecordedEnd | undefined, problem: string): Claim {
  if (end === undefined) return { status: "failed", report: problem };
  if (end.outcome !== "done") return { status: "failed", report: `${end.outcome}: ${end.reason}` };
  return { status: "completed", report: end.output === undefined ? end.text : JSON.stringify(end.output) };
}

/**
 * What a member's terms leave. Commands, the workflow's own tools and those of servers could write anywhere, so whoever
 * is kept to reading, to files or to places goes without.
 */
function rulesOf({ mode, paths }: Member): RuleData | undefined {
  if (mode === undefined && paths === undefined) return undefined;
  const rules: { [tool: string]: Json } = { "*": "deny" };
  for (const tool of looking) rules[tool] = "allow";
  // From the workspace, and not at any depth.
  const places = paths?.map((path) => [path.startsWith("./") ? path : `./${path}`, "allow"] as const);
  if (mode !== "read")
    for (const tool of editing) rules[tool] = places ? { "*": "deny", ...Object.fromEntries(places) } : "allow";
  return { json: rules, narrows: true, at: { file: "team", lines: {} } };
}
