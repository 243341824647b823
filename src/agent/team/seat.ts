import type { AgentRunIds } from "../../model/event.ts";
import type { Json } from "../../model/json.ts";
import type { Agent, Member, RuleData } from "../../model/plan.ts";
import type { Judge, Tool } from "../../model/ports.ts";
import { ok, type Result } from "../../model/result.ts";
import type { TeamState, TeamTask } from "../../model/team.ts";
import type { Ending } from "../agent-result.ts";
import type { Orphan } from "../assignment.ts";
import type { Children } from "../children.ts";
import type { AgentHouse, Brought, Isolated } from "../house.ts";
import { Mail } from "../mail.ts";
import type { RecordedChild, RecordedEnd } from "../recorded.ts";
import { memberText, taskText } from "./text.ts";

export interface SeatSource {
  readonly terms: Member;
  readonly agent: Agent;
  readonly children: Children;
  readonly isolate: AgentHouse["isolate"];
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
export class Seat {
  readonly mail: Mail = new Mail();
  readonly #source: SeatSource;
  #stop: AbortController | undefined;
  #running: Promise<unknown> | undefined;
  #run = "";
  #folder: string | undefined;
  /** It counts when the run has ended, and the work is where others find it. */
  #claim: Claim | undefined;
  /** It was asked to stop, and has not said no. */
  leaves = false;

  constructor(source: SeatSource) {
    this.#source = source;
    this.mail.onWait = source.onWait;
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
    this.#stop?.abort();
    await this.#running;
  }

  /** Works, and hands on what has come of it once nothing of it runs any more. */
  begin(work: Work, onDone: (done: Done) => void): void {
    this.#claim = undefined;
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
    const why = opened.ok ? "there may not be more sub-agents in this run" : opened.error;
    const text = orphan ? await orphan.end : why;
    const child = isOver ? before : orphan && this.#source.children.last(orphan.child.call);
    const claimed = this.#claim ?? claimOf(child?.end, text);
    const refusal = claimed.status === "completed" ? await work.refusal() : undefined;
    const claim: Claim =
      refusal === undefined ? claimed : { status: "failed", report: `${claimed.report}\n\n${refusal}` };
    const isGood = claim.status === "completed" && child?.end?.outcome === "done";
    const { problem, note }: Brought = (await isolated?.close({ apply: isGood })) ?? {};
    const status = problem === undefined ? claim.status : "failed";
    const report = [claim.report, problem ?? note ?? ""].filter((it) => it !== "").join("\n\n");
    return { status, report, child };
  }

  async #isolate({ task, before }: Work, signal: AbortSignal): Promise<Result<Isolated | undefined, string>> {
    const { terms, isolate, ids, lead, workspace: into } = this.#source;
    if (terms.isolation === undefined) return ok(undefined);
    if (isolate === undefined) return { ok: false, error: "there are no worktrees here" };
    const owner = `${ids.step}/${lead}/${terms.name}.${task?.id ?? "messages"}`;
    const goesOn = before !== undefined;
    const opened = await isolate({ step: ids.step, owner, order: Number(task?.id ?? 0), into, goesOn, signal });
    return opened.ok ? opened : { ok: false, error: opened.error.message };
  }

  #spawn({ task, before, team }: Work, signal: AbortSignal, folder: string | undefined): Orphan | undefined {
    const { terms, agent, children, lead, tools } = this.#source;
    const letters = task === undefined ? this.mail.take() : undefined;
    const call = task ? `task:${task.id}` : `talk:${terms.name}:${letters?.from.join(",") ?? ""}`;
    // Who is only written to goes on with what it did last.
    const last = task === undefined && !before ? children.lastNamed(terms.name) : undefined;
    const conversation = before && before.conversation.turns > 0 ? before.conversation : last?.conversation;
    const permissions = rulesOf(terms);
    return children.spawn({
      target: { name: terms.name, key: terms.key, agent },
      spawned: { call, title: task?.subject ?? "messages", name: terms.name },
      prompt: task ? taskText(task, team) : textOf(letters),
      attempt: { signal, ...(folder !== undefined && { workspace: folder }), ...(permissions && { permissions }) },
      ...(conversation && { recorded: conversation }),
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
      const isFree = !this.needsApproval || this.#source.isApproved() || looking.has(call.tool);
      if (isFree || verdict.decision === "deny") return verdict;
      return { ...verdict, decision: "deny", rule: { text: "plan: required", layer: "team" }, toAllow: [] };
    };
  }
}

/** Tools that change nothing. */
const looking: ReadonlySet<string> = new Set(["Read", "Grep", "Glob", "LS", "TodoWrite", "Skill", "Task"]);

function textOf(letters: ReturnType<Mail["take"]>): string {
  const blocks = letters?.message.blocks ?? [];
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** Of a run that came to its end without a word about its task. */
function claimOf(end: RecordedEnd | undefined, problem: string): Claim {
  if (end === undefined) return { status: "failed", report: problem };
  if (end.outcome !== "done") return { status: "failed", report: `${end.outcome}: ${end.reason}` };
  return { status: "completed", report: end.output === undefined ? end.text : JSON.stringify(end.output) };
}

/** What a member's terms take away; a command could write anywhere, so who is kept to places goes without. */
function rulesOf({ mode, paths }: Member): RuleData | undefined {
  const rules: { [tool: string]: Json } = {};
  if (mode === "read") rules["modify-files"] = "deny";
  if (mode !== undefined || paths) rules["execute-commands"] = "deny";
  if (paths && mode !== "read")
    rules["modify-files"] = { "*": "deny", ...Object.fromEntries(paths.map((path) => [path, "allow"])) };
  if (Object.keys(rules).length === 0) return undefined;
  return { json: rules, narrows: true, at: { file: "team", lines: {} } };
}
