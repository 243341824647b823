import type {
  Again,
  ApprovalAnswer,
  ApprovalEvent,
  ApprovalRequest,
  Blob,
  CacheMiss,
  Event,
  LogLine,
  StepEvent,
} from "../model/event.ts";
import { isJsonObject, type Json, own } from "../model/json.ts";
import { addUsage, noUsage, type Usage } from "../model/message.ts";
import type { Failure, SkipReason, StepOutcome } from "../model/outcome.ts";
import type { Plan, StepKind } from "../model/plan.ts";
import { Spending } from "../model/spending.ts";
import { unreachable } from "../model/result.ts";
import { type AgentsOfStep, growAgent, growTeam, isAgentEvent, isTeamEvent } from "./agent-tree.ts";

/** A run as far as its events tell it. {@link grow} alone writes to it. Times are milliseconds since 1970. */
export interface RunTree {
  start: Extract<Event, { type: "run.started" }> | undefined;
  /** The plan in force; undefined when the log does not hold it. */
  plan: Plan | undefined;
  end: Extract<Event, { type: "run.finished" }> | undefined;
  /** Every time the run went on after it had stopped. */
  readonly resumes: Extract<Event, { type: "run.resumed" }>[];
  started: number | undefined;
  /** Of the last event. */
  last: number;
  /** The workflow itself; its path is empty. */
  readonly root: StepNode;
  /** Every step, item and iteration by its path. */
  readonly nodes: Map<string, StepNode>;
  readonly spending: Spending;
}

export type NodeStatus = "pending" | "ready" | "running" | "waiting" | StepOutcome;

/** A step, an item of a `foreach` (`[2]`) or an iteration of a `repeat` (`#2`). */
export interface StepNode extends AgentsOfStep {
  readonly path: string;
  /** The last part of the path: `build`, `[2]`, `#2`. */
  readonly label: string;
  kind: StepKind | undefined;
  status: NodeStatus;
  /** Differs from `status` only by `continue-on-error`. */
  conclusion: StepOutcome | undefined;
  started: number | undefined;
  duration: number | undefined;
  attempts: AttemptNode[];
  reason: SkipReason | undefined;
  error: Failure | undefined;
  /** The last lines a failed command wrote. */
  tail: readonly string[];
  undone: Undone | undefined;
  /** What became of the worktrees of its attempts, those of earlier starts and of steps that a group's next attempt forgets too. */
  worktrees: WorktreeNode[];
  /** The line of its end before the last resume, which still holds. */
  reused: number | undefined;
  /** Where its outputs came from instead of an execution, or why a step with `cache` had to run. */
  cache: CacheNote | undefined;
  /** What it asked a person, and the answer. */
  asked: ApprovalRequest | undefined;
  answer: ApprovalAnswer | undefined;
  /** How often it was started again: by a resume, or because the group around it was tried again. */
  again: number;
  /** What steps in it spent that a later attempt of it has forgotten. */
  before: Usage;
  /** How it stood when it was started again. */
  past: Pick<StepNode, "attempts" | "agents" | "earlier" | "duration" | "asked" | "answer"> | undefined;
  children: StepNode[];
}

/** A worktree that is closed. */
export type WorktreeNode = Pick<
  Extract<Event, { type: "worktree.closed" }>,
  "worktree" | "status" | "files" | "patch" | "conflicts" | "why"
>;

/** What became of the `cache` of a step; `key` is the sha256 of everything that decides. */
export type CacheNote =
  | { readonly hit: { readonly key: string; readonly run: string; readonly stored: string } }
  | { readonly miss: { readonly key: string } & CacheMiss };

export interface AttemptNode {
  /** From 1. */
  readonly attempt: number;
  outcome: Exclude<StepOutcome, "skipped"> | undefined;
  error: Failure | undefined;
  duration: number | undefined;
  /** Why it runs although a run before the last resume had begun the same execution. */
  readonly again: Again | undefined;
  /** How long the next attempt waited. */
  delay: number | undefined;
}

export interface Undone {
  /** Undefined as long as the `undo` has not ended. */
  readonly outcome: Exclude<StepOutcome, "skipped"> | undefined;
  readonly error?: Failure | undefined;
  readonly duration?: number;
}

const tailLines = 10;
const tailLength = 2000;
const longestPath = 4096;

export function newTree(): RunTree {
  const root = newNode("", "");
  const unknown = { start: undefined, plan: undefined, end: undefined, started: undefined };
  return { ...unknown, resumes: [], last: 0, root, nodes: new Map(), spending: new Spending() };
}

/** Takes in the next event of the log. Types it does not know change nothing. */
export function grow(tree: RunTree, line: LogLine): void {
  const time = Date.parse(line.time);
  tree.started ??= time;
  tree.last = time;
  tree.spending.add(line);
  if (line.type === "run.started") begin(tree, line);
  else if (line.type === "run.resumed") goOn(tree, line);
  else if (line.type === "run.finished") finish(tree, line);
  else if (line.type === "approval.requested" || line.type === "approval.given") growApproval(tree, line);
  else if (line.type === "worktree.closed") nodeAt(tree, line.step).worktrees.push(worktreeNode(line));
  else if (isStepEvent(line)) growStep(tree, line, time);
  else if (isTeamEvent(line)) growTeam(nodeAt(tree, line.step), line);
  else if (isAgentEvent(line)) growAgent(nodeAt(tree, line.step), line, time);
}

function isStepEvent(line: LogLine): line is StepEvent & LogLine {
  return line.type.startsWith("step.");
}

/** The steps of the workflow itself are there from the start, in the order they are written. */
function begin(tree: RunTree, start: Extract<Event, { type: "run.started" }>): void {
  tree.start = start;
  expect(tree, start.plan);
}

function goOn(tree: RunTree, resumed: Extract<Event, { type: "run.resumed" }>): void {
  tree.resumes.push(resumed);
  tree.end = undefined;
  for (const node of tree.nodes.values())
    if (node.status === "running" || node.status === "ready" || node.status === "waiting") node.status = "pending";
  if (resumed.plan !== undefined) expect(tree, resumed.plan);
}

/** What still runs when a run ends as waiting contains what waits. */
function finish(tree: RunTree, end: Extract<Event, { type: "run.finished" }>): void {
  tree.end = end;
  if (end.outcome !== "waiting") return;
  for (const node of tree.nodes.values()) if (node.status === "running") node.status = "waiting";
}

function growApproval(tree: RunTree, event: ApprovalEvent): void {
  const node = nodeAt(tree, event.step);
  if (event.type === "approval.requested") {
    const { step, question, form, deadline } = event;
    const more = { ...(form !== undefined && { form }), ...(deadline !== undefined && { deadline }) };
    node.status = "waiting";
    node.asked = { step, question, ...more };
    node.answer = undefined;
    return;
  }
  const { decision, by, comment, form } = event;
  node.status = "running";
  node.answer = { decision, by, comment, form };
}

function worktreeNode(event: Extract<Event, { type: "worktree.closed" }>): WorktreeNode {
  const { worktree, status, files, patch, conflicts, why } = event;
  return {
    worktree,
    status,
    files,
    ...(patch !== undefined && { patch }),
    ...(conflicts && { conflicts }),
    ...(why !== undefined && { why }),
  };
}

function expect(tree: RunTree, plan: Plan | Blob): void {
  if ("blob" in plan) return;
  tree.plan = plan;
  for (const { id, kind } of plan.workflows[plan.root]?.scope.steps ?? []) nodeAt(tree, id).kind = kind;
}

/** The path of what contains `path`; empty for a step of the workflow itself. */
export function parentPath(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), path.lastIndexOf("["), path.lastIndexOf("#"), 0));
}

function nodeAt(tree: RunTree, path: string): StepNode {
  const known = path === "" ? tree.root : tree.nodes.get(path);
  if (known !== undefined) return known;
  const parent = path.length > longestPath ? "" : parentPath(path);
  const node = newNode(path, path.slice(parent.length).replace(/^\//, ""));
  tree.nodes.set(path, node);
  nodeAt(tree, parent).children.push(node);
  return node;
}

function newNode(path: string, label: string): StepNode {
  return {
    path,
    label,
    kind: undefined,
    status: "pending",
    conclusion: undefined,
    started: undefined,
    duration: undefined,
    attempts: [],
    agents: [],
    reason: undefined,
    error: undefined,
    tail: [],
    undone: undefined,
    worktrees: [],
    reused: undefined,
    cache: undefined,
    asked: undefined,
    answer: undefined,
    again: 0,
    before: noUsage,
    earlier: [],
    past: undefined,
    children: [],
  };
}

function growStep(tree: RunTree, event: StepEvent, time: number): void {
  const node = nodeAt(tree, event.step);
  switch (event.type) {
    case "step.ready":
      node.status = "ready";
      return;
    case "step.started":
      if (node.started !== undefined || node.status === "skipped") startAgain(node);
      node.kind = event.kind;
      node.status = "running";
      node.started = time;
      return;
    case "step.attempt.started":
    case "step.attempt.finished":
    case "step.retrying":
      growAttempts(tree, node, event);
      return;
    case "step.reused":
      node.reused = event.end;
      Object.assign(node, node.past);
      return;
    case "step.cached":
      node.cache = { hit: { key: event.key, run: event.run, stored: event.stored } };
      return;
    case "step.uncached": {
      const { key, why, changed, than } = event;
      node.cache = { miss: { key, why, ...(changed && { changed }), ...(than && { than }) } };
      return;
    }
    case "step.undo.started":
      node.undone = { outcome: undefined };
      return;
    case "step.undone":
      node.undone = { outcome: event.outcome, error: event.error, duration: event.duration };
      return;
    case "step.skipped":
      node.status = "skipped";
      node.conclusion = "skipped";
      node.reason = event.reason;
      return;
    case "step.finished":
      node.status = event.outcome;
      node.conclusion = event.conclusion;
      node.error = event.error;
      if (node.reused === undefined) node.duration = event.duration;
      if (event.outcome === "failure") node.tail = tailOf(event.outputs);
      return;
    default:
      unreachable(event);
  }
}

type AttemptEvent = Extract<StepEvent, { type: "step.attempt.started" | "step.attempt.finished" | "step.retrying" }>;

function growAttempts(tree: RunTree, node: StepNode, event: AttemptEvent): void {
  if (event.type === "step.attempt.started") {
    const { attempt, again } = event;
    if (attempt > 1 && node.children.length > 0) forgetInside(tree, node);
    if (again === "waiting") Object.assign(node, { status: "waiting", asked: node.past?.asked });
    node.attempts.push({ attempt, again, outcome: undefined, error: undefined, duration: undefined, delay: undefined });
    return;
  }
  const attempt = node.attempts.at(-1);
  if (attempt === undefined) return;
  if (event.type === "step.retrying") attempt.delay = event.delay;
  else Object.assign(attempt, { outcome: event.outcome, error: event.error, duration: event.duration });
}

function startAgain(node: StepNode): void {
  const { path, label, again, children, attempts, agents, earlier, worktrees, before, duration, asked, answer } = node;
  const past = { attempts, agents, earlier, duration, asked, answer };
  const times = node.started === undefined ? again : again + 1;
  const kept = { worktrees, before, children, earlier: [...earlier, ...agents] };
  Object.assign(node, newNode(path, label), kept, { again: times, past });
}

/** Another attempt of a group begins with none of its steps done; the money stays spent, and patches stay kept. */
function forgetInside(tree: RunTree, node: StepNode): void {
  node.before = node.children.reduce((sum, child) => addUsage(sum, totalUsage(child)), node.before);
  const forget = (children: readonly StepNode[]): void => {
    for (const child of children) {
      tree.nodes.delete(child.path);
      node.worktrees.push(...child.worktrees);
      forget(child.children);
    }
  };
  forget(node.children);
  node.children = [];
}

/** Tokens and money of a step with everything in it. */
export function totalUsage({ before, earlier, agents, children }: StepNode): Usage {
  const own = [...earlier, ...agents].reduce((sum, { usage }) => addUsage(sum, usage), before);
  return children.reduce((sum, child) => addUsage(sum, totalUsage(child)), own);
}

/** The innermost step behind a failure. */
export function rootCause(tree: RunTree, node: StepNode): StepNode {
  const inner = node.error?.step;
  return (inner === undefined ? undefined : tree.nodes.get(inner)) ?? node;
}

function tailOf(outputs: Json | undefined): string[] {
  if (!isJsonObject(outputs)) return [];
  const text = ["stderr", "stdout"].map((name) => own(outputs, name)).find((it) => typeof it === "string" && it !== "");
  return typeof text === "string" ? text.slice(-tailLength).trimEnd().split("\n").slice(-tailLines) : [];
}
