import type { AgentNode } from "./agent-tree.ts";
import type { Again, ApprovalAnswer, ApprovalRequest } from "../model/event.ts";
import type { Span } from "../model/diagnostic.ts";
import { nearest } from "../model/names.ts";
import type { Failure, SkipReason } from "../model/outcome.ts";
import type { Step, StepKind } from "../model/plan.ts";
import { placeOf, stepOf } from "./place.ts";
import { isOver, type RunView, stateOf } from "./run-state.ts";
import {
  type AttemptNode,
  type CacheNote,
  parentPath,
  rootCause,
  type RunTree,
  type StepNode,
  type Undone,
} from "./run-tree.ts";
import { type TeamView, teamView } from "./team.ts";

/** Everything the log and the plan know about why a step went as it did. Absent: nothing of the kind happened. */
export interface Explanation {
  readonly step: string;
  readonly kind: StepKind | undefined;
  /** In a word: `ok`, `failed`, `skipped`, `running`, `pending` … */
  readonly state: string;
  /** Milliseconds. */
  readonly duration: number | undefined;
  readonly written: Span | undefined;
  /** The step, item or iteration that holds it, when it is no step of the workflow itself. */
  readonly inside: { readonly step: string; readonly state: string } | undefined;
  /** What it waited for. */
  readonly sources: readonly Source[];
  readonly join: "all" | "any";
  readonly condition: { readonly text: string; readonly hasStatus: boolean } | undefined;
  readonly skipped: SkipReason | undefined;
  /** The step behind a skip that goes back over other skipped ones, or behind the failure of what contains it. */
  readonly cause: { readonly step: string; readonly error: Failure | undefined } | undefined;
  readonly attempts: readonly AttemptNode[];
  readonly agents: readonly (Pick<AgentNode, "agent" | "parent" | "name" | "model" | "outcome" | "reason" | "turns"> & {
    readonly team: TeamView | undefined;
  })[];
  readonly error: Failure | undefined;
  readonly wrote: readonly string[];
  /** The run went on although it failed. */
  readonly forgiven: boolean;
  readonly items: Inside | undefined;
  readonly iterations: (Inside & { readonly until: string | undefined }) | undefined;
  readonly undone: Undone | undefined;
  /** The line of its end before the resume, which still holds. */
  readonly reused: number | undefined;
  readonly cache: CacheNote | undefined;
  readonly again: Again | undefined;
  /** What it asked a person, and the answer if there is one. */
  readonly asked: ApprovalRequest | undefined;
  readonly answer: ApprovalAnswer | undefined;
}

export interface Source {
  readonly step: string;
  readonly state: string;
  /** It failed, and `continue-on-error` lets it count as a success. */
  readonly forgiven: boolean;
  /** It must have succeeded; else it only comes first. */
  readonly needed: boolean;
  readonly if: string | undefined;
  readonly origin: "written" | "reference";
}

export interface Inside {
  /** By their state. */
  readonly counts: { readonly [state: string]: number };
  /** Paths of those that failed, at most twenty. */
  readonly failed: readonly string[];
}

const mostFailed = 20;

/** Explains the step, item or iteration of a path. Undefined: the run has none. */
export function explain(view: RunView, path: string): Explanation | undefined {
  const { tree } = view;
  const planned = tree.plan === undefined ? undefined : stepOf(tree.plan, path);
  const node = tree.nodes.get(path);
  if (node === undefined && (planned === undefined || /[[#]/.test(path.slice(path.lastIndexOf("/") + 1))))
    return undefined;
  const over = isOver(view);
  const state = (at: string): string => {
    const found = tree.nodes.get(at);
    return found === undefined ? (over ? "not started" : "pending") : stateOf(found, over).text;
  };
  const container = parentPath(path);
  const isOwn = path[container.length] !== "[" && path[container.length] !== "#";
  const step = planned?.step;
  return {
    step: path,
    kind: node?.kind ?? step?.kind,
    state: state(path),
    duration: node?.duration,
    written: step?.at,
    inside: container === "" ? undefined : { step: container, state: state(container) },
    sources: isOwn ? sourcesOf(tree, path, state) : [],
    join: step?.join ?? "all",
    condition: isOwn && step?.if !== undefined ? { text: step.if.source, hasStatus: step.if.status } : undefined,
    skipped: node?.reason,
    cause: node === undefined ? undefined : causeOf(tree, node),
    attempts: node?.attempts ?? [],
    agents: (node?.agents ?? []).map(({ agent, parent, name, model, outcome, reason, turns, team }) => ({
      agent,
      parent,
      name,
      model,
      outcome,
      reason,
      turns,
      team: team && teamView(team),
    })),
    asked: node?.asked,
    answer: node?.answer,
    ...endOf(tree, node),
    ...loopsOf(node, step, (it) => stateOf(it, over).text),
  };
}

function endOf(
  tree: RunTree,
  node: StepNode | undefined,
): Pick<Explanation, "error" | "wrote" | "forgiven" | "undone" | "reused" | "cache" | "again"> {
  const error = node?.error;
  const position =
    error?.position ?? (tree.plan === undefined || node === undefined ? undefined : placeOf(tree.plan, node.path));
  return {
    error: error && { ...error, ...(position !== undefined && { position }) },
    wrote: node?.tail ?? [],
    forgiven: isForgiven(node),
    undone: node?.undone,
    reused: node?.reused,
    cache: node?.cache,
    again: node?.attempts[0]?.again,
  };
}

function isForgiven(node: StepNode | undefined): boolean {
  return node?.status === "failure" && node.conclusion === "success";
}

/** Every edge that ends at the step, with how its source stands in the same item and iteration. */
function sourcesOf(tree: RunTree, path: string, state: (path: string) => string): Source[] {
  const found = tree.plan === undefined ? undefined : stepOf(tree.plan, path);
  if (found === undefined) return [];
  const { scope, index } = found;
  const prefix = path.slice(0, path.lastIndexOf("/") + 1);
  return scope.edges
    .filter((edge) => edge.to === index)
    .map(({ from, hard, if: condition, origin }) => {
      const step = prefix + (scope.steps[from]?.id ?? "");
      const forgiven = isForgiven(tree.nodes.get(step));
      return { step, state: state(step), forgiven, needed: hard, if: condition?.source, origin };
    });
}

/** Follows skipped steps back to what they go back to, and a failure to the innermost step. */
function causeOf(tree: RunTree, node: StepNode): Explanation["cause"] {
  let at = node;
  const prefix = node.path.slice(0, node.path.lastIndexOf("/") + 1);
  for (const seen = new Set<StepNode>(); !seen.has(at) && at.reason?.kind === "needs";) {
    seen.add(at);
    at = tree.nodes.get(prefix + at.reason.step) ?? at;
  }
  const cause = rootCause(tree, at);
  const isTold = node.reason?.kind === "needs" && cause.path === prefix + node.reason.step;
  return cause === node || isTold ? undefined : { step: cause.path, error: cause.error };
}

function loopsOf(
  node: StepNode | undefined,
  step: Step | undefined,
  state: (node: StepNode) => string,
): Pick<Explanation, "items" | "iterations"> {
  const inside = (sign: string): Inside | undefined => {
    const children = node?.children.filter(({ label }) => label.startsWith(sign)) ?? [];
    if (children.length === 0) return undefined;
    const counts: { [state: string]: number } = {};
    for (const child of children) counts[state(child)] = (counts[state(child)] ?? 0) + 1;
    const failed = children.filter(({ status }) => status === "failure");
    return { counts, failed: failed.slice(0, mostFailed).map(({ path }) => path) };
  };
  const iterations = inside("#");
  return {
    items: inside("["),
    iterations: iterations && { ...iterations, until: step?.repeat?.until.source },
  };
}

/** Up to three paths that somebody who typed `path` may have meant. */
export function nearestPaths({ nodes }: RunTree, path: string): string[] {
  const known = new Set(nodes.keys());
  const found: string[] = [];
  while (found.length < 3) {
    const next = nearest(path, known);
    if (next === undefined) break;
    known.delete(next);
    found.push(next);
  }
  // What was left out: `inner` for `group#2/inner`.
  for (const other of known) if (found.length < 3 && other.endsWith(`/${path}`)) found.push(other);
  return found;
}
