import { type AgentNode, childrenOf, familyUsage } from "./agent-tree.ts";
import { budgetText, runLimits, stepLimits } from "./budget.ts";
import { cut, displayWidth, pad, wrap } from "./display.ts";
import type { Paint, Palette } from "./palette.ts";
import { placeOf } from "./place.ts";
import { teamRemarks, teamView } from "./team.ts";
import { approvalText, failureText, skipText } from "./step-text.ts";
import { type AttemptNode, rootCause, type StepNode, totalUsage, type Undone } from "./run-tree.ts";
import { countText, isOver, type RunView, runState, stateOf, type Word, words } from "./run-state.ts";
import { count, duration, money, oneLine, tokensOf } from "./words.ts";
import { patchText } from "./worktree-text.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../model/event.ts";
import type { Usage } from "../model/message.ts";

/** One line of the tree, or a remark below one. */
interface Row {
  readonly depth: number;
  readonly label: string;
  readonly word: Word;
  readonly what: string;
  /** Milliseconds. */
  readonly took: number | undefined;
  readonly usage: Usage | undefined;
  readonly remarks: readonly string[];
}

interface View extends RunView {
  readonly palette: Palette;
}

const columns = 100;
const widestLabel = 30;
const widestWhat = 23;
/** Longer lists of items and iterations are counted, and only those that need a look are shown. */
const shownWhole = 6;
const shownFailed = 10;

/** The tree of a run: steps, items, iterations, attempts and agents, each with its state, time, tokens and cost. */
export function runText(run: RunView, palette: Palette): string {
  const view: View = { ...run, palette };
  const rows = run.tree.root.children.flatMap((node) => stepRows(view, node, 0));
  return [heading(view), ...facts(view), "", ...table(rows, palette), ""].join("\n");
}

function heading(view: View): string {
  const { start } = view.tree;
  const { glyph, text, paint } = runState(view);
  const what = [start?.name ?? "run", start?.run ?? ""].filter((it) => it !== "").map(oneLine);
  return `${view.palette[paint](`${glyph} ${text}`)} ${cut(what.join(" "), columns - 24)}`;
}

function facts(view: View): string[] {
  const { tree, palette } = view;
  const { start, end, resumes } = tree;
  const rows: [string, string][] = [];
  if (start !== undefined && start.workflow !== "-") rows.push(["file", oneLine(start.workflow)]);
  if (tree.started !== undefined) {
    const took = end?.duration ?? tree.last - tree.started;
    rows.push(["started", `${dateText(tree.started)} UTC, ${end === undefined ? "so far" : "took"} ${duration(took)}`]);
  }
  if (resumes.length > 0) rows.push(["resumed", resumes.length === 1 ? "once" : `${resumes.length} times`]);
  rows.push(["steps", countText(view, tree.root.children)]);
  const usage = end?.usage ?? totalUsage(tree.root);
  if (tokensOf(usage) > 0) rows.push(["tokens", `${count(tokensOf(usage))}, ${money(usage.cost)}`]);
  const budget = budgetText(runLimits(tree));
  if (budget !== "") rows.push(["budget", budget]);
  const failed = tree.root.children.some(({ conclusion }) => conclusion === "failure");
  if (end?.error !== undefined && !failed) rows.push(["failed", failureText(end.error)]);
  return rows.map(([label, text]) => `  ${palette.dim(label.padEnd(7))} ${cut(oneLine(text), columns - 10)}`);
}

/** `2026-11-21 21:55:46`, in UTC as the log and the ids of runs are. */
export function dateText(time: number): string {
  return Number.isNaN(time) ? "at an unknown time" : new Date(time).toISOString().slice(0, 19).replace("T", " ");
}

function stepRows(view: View, node: StepNode, depth: number): Row[] {
  const shown = chosen(view, node.children);
  const row: Row = {
    depth,
    label: node.label,
    word: stateOf(node, isOver(view)),
    what: whatText(node),
    took: tookOf(view, node),
    usage: totalUsage(node),
    remarks: remarksOf(view, node, shown.length),
  };
  return [row, ...tryRows(view, node, depth + 1), ...shown.flatMap((child) => stepRows(view, child, depth + 1))];
}

/** Of a long list of items or iterations only what failed or goes on. */
function chosen(view: View, children: readonly StepNode[]): readonly StepNode[] {
  if (!isLongList(children)) return children;
  const states = new Set(["failed", "running", "waiting", "interrupted"]);
  return children.filter((child) => states.has(stateOf(child, isOver(view)).text)).slice(0, shownFailed);
}

function isLongList(children: readonly StepNode[]): boolean {
  return children.length > shownWhole && children.every(({ label }) => /^[[#]/.test(label));
}

function whatText({ kind, children, again, reused, cache }: StepNode): string {
  const first = children[0]?.label;
  const items = first?.startsWith("[") === true ? ` ×${children.length}` : "";
  const iterations = first?.startsWith("#") === true ? ` ↻${children.length}` : "";
  const often = reused === undefined ? (again > 0 ? `, start ${again + 1}` : "") : ", reused";
  const kept = cache !== undefined && "hit" in cache ? ", cached" : "";
  return `${kind ?? ""}${items}${iterations}${kept}${often}`;
}

function tookOf(view: View, { duration: took, started, status }: StepNode): number | undefined {
  return took ?? (status === "running" && started !== undefined ? view.tree.last - started : undefined);
}

function remarksOf(view: View, node: StepNode, shown: number): string[] {
  const { error, reason, undone, worktrees, children, status, conclusion } = node;
  const remarks: string[] = [];
  const budget = budgetText(stepLimits(view.tree, node));
  if (budget !== "") remarks.push(`budget: ${budget}`);
  if (error !== undefined && status === "failure") remarks.push(failureRemark(view, node));
  if (status === "failure" && conclusion === "success") remarks.push("the run goes on: continue-on-error");
  if (node.asked !== undefined) remarks.push(...askedRemarks(node.asked, node.answer));
  if (reason !== undefined) remarks.push(skipText(reason));
  if (isLongList(children)) {
    const hidden = children.length - shown;
    remarks.push(`${countText(view, children)}${shown > 0 ? `; ${hidden} not shown` : ""}`);
  }
  if (undone !== undefined) remarks.push(undoneText(undone));
  remarks.push(...worktrees.map(patchText));
  return remarks;
}

function askedRemarks(asked: ApprovalRequest, answer: ApprovalAnswer | undefined): string[] {
  const question = approvalText({ type: "approval.requested", ...asked });
  return answer === undefined ? [question] : [approvalText({ type: "approval.given", step: asked.step, ...answer })];
}

export function undoneText({ outcome, error, duration: took }: Undone): string {
  if (outcome === undefined) return "its undo began and has no end in the log";
  const why = error === undefined ? "" : `: ${failureText(error)}`;
  return `undone: ${words[outcome].text}${why}${took === undefined ? "" : ` ${duration(took)}`}`;
}

/** The failure with its place; what is told at the step inside is not told twice. */
function failureRemark({ tree }: View, node: StepNode): string {
  const { error, path } = node;
  if (error === undefined) return "";
  const cause = rootCause(tree, node);
  if (cause !== node && cause.error !== undefined) return `because ${oneLine(cause.path)} failed`;
  const position = error.position ?? (tree.plan === undefined ? undefined : placeOf(tree.plan, path));
  return failureText({ ...error, ...(position !== undefined && { position }) });
}

/** Attempts, where there was more than one, and agents below the attempt they belong to; first those of earlier starts. */
function tryRows(view: View, { attempts, agents, earlier, status }: StepNode, depth: number): Row[] {
  const before = agentRows(view, earlier, depth).map((row) => ({ ...row, what: `earlier, ${row.what}` }));
  if (attempts.length < 2) return [...before, ...agentRows(view, agents, depth)];
  const tried = attempts.flatMap((attempt) => {
    // The failure of the last attempt is the step's own and stands there.
    const isTold = attempt === attempts.at(-1) && status === "failure";
    const own = agents.filter((agent) => agent.attempt === attempt.attempt);
    const row = attemptRow(view, isTold ? { ...attempt, error: undefined } : attempt, depth);
    return [row, ...agentRows(view, own, depth + 1)];
  });
  return [...before, ...tried];
}

function attemptRow(view: View, { attempt, outcome, error, duration: took, delay }: AttemptNode, depth: number): Row {
  const word = outcome === undefined ? (isOver(view) ? words.interrupted : words.running) : words[outcome];
  const next = delay === undefined ? [] : [`the next one ${waitText(delay)} later`];
  const remarks = error === undefined ? next : [failureText(error), ...next];
  return { depth, label: `attempt ${attempt}`, word, what: "", took, usage: undefined, remarks };
}

/** A wait between attempts is often shorter than a tenth of a second. */
export function waitText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : duration(ms);
}

/** Those whose parent is not among them, each with what it spawned below it; every one once. */
function agentRows(view: View, agents: readonly AgentNode[], depth: number): Row[] {
  const spawned = new Set(agents.flatMap((agent) => childrenOf(agents, agent)));
  const shown = new Set<AgentNode>();
  const rows = (agent: AgentNode, at: number): Row[] => {
    if (shown.has(agent)) return [];
    shown.add(agent);
    return [
      agentRow(view, agents, { agent, depth: at }),
      ...childrenOf(agents, agent).flatMap((child) => rows(child, at + 1)),
    ];
  };
  return agents.filter((agent) => !spawned.has(agent)).flatMap((agent) => rows(agent, depth));
}

function agentRow(
  view: View,
  agents: readonly AgentNode[],
  { agent, depth }: { readonly agent: AgentNode; readonly depth: number },
): Row {
  const { name, spawned, model, outcome, reason, turns, usage } = agent;
  const took = agent.duration ?? (isOver(view) ? undefined : view.tree.last - agent.started);
  const remarks = outcome === undefined || outcome === "done" || reason === "" ? [] : [cut(oneLine(reason), 300)];
  if (agent.sandbox === "off") remarks.push("its commands ran without a sandbox");
  if (agent.sandbox === "unavailable") remarks.push("its commands ran without a sandbox: this machine has none");
  const what = `${turns} ${turns === 1 ? "turn" : "turns"} ${model}`;
  const all = familyUsage(agents, agent);
  if (tokensOf(all) > tokensOf(usage))
    remarks.push(`with its sub-agents ${count(tokensOf(all))} tok, ${all.cost === null ? "unknown" : money(all.cost)}`);
  for (const team of [...agent.earlierTeams, ...(agent.team ? [agent.team] : [])])
    remarks.push(...teamRemarks(teamView(team)));
  if (spawned) remarks.unshift(`${agent.agent} ${spawnedText(spawned)}`);
  const label = spawned?.name === undefined ? name : `${name} ${spawned.name}`;
  return { depth, label: `agent ${label}`, word: agentWord(view, outcome), what, took, usage, remarks };
}

function spawnedText({ call, title, background }: NonNullable<AgentNode["spawned"]>): string {
  // In front of a task's number stands that of its team, where it is not the first.
  const [, task] = /^task:(?:\d+\.)?(\d+)$/.exec(call) ?? [];
  if (task !== undefined) return `task ${task} of the team: ${title}`;
  if (call.startsWith("talk:")) return "messages of the team";
  return `${title}${background ? " (in the background)" : ""}`;
}

function agentWord(view: View, outcome: AgentNode["outcome"]): Word {
  if (outcome === undefined) return isOver(view) ? words.interrupted : words.running;
  if (outcome === "done") return words.success;
  return outcome === "cancelled" ? words.cancelled : { ...words.failure, text: outcome };
}

function table(rows: readonly Row[], palette: Palette): string[] {
  const labels = rows.map(({ depth, label }) =>
    cut(`${"  ".repeat(Math.min(depth, 10))}${oneLine(label)}`, widestLabel),
  );
  const whats = rows.map(({ what }) => cut(oneLine(what), widestWhat));
  const widths = {
    label: widest(labels),
    word: widest(rows.map(({ word }) => word.text)),
    what: widest(whats),
  };
  return rows.flatMap((row, index) => {
    const { word, took, usage, depth, remarks } = row;
    const paint: Paint = palette[word.paint];
    const label = labels[index] ?? "";
    const indent = label.length - label.trimStart().length;
    const cells = [
      pad(
        `${" ".repeat(indent)}${paint(word.glyph)} ${label.trimStart()}`,
        widths.label + 2 + paint(word.glyph).length - 1,
      ),
      paint(pad(word.text, widths.word)),
      pad(whats[index] ?? "", widths.what),
      (took === undefined ? "" : duration(took)).padStart(7),
      usage === undefined || tokensOf(usage) === 0 ? "" : `${count(tokensOf(usage))} tok`.padStart(10),
      usage === undefined || tokensOf(usage) === 0
        ? ""
        : (usage.cost === null ? "unknown" : money(usage.cost)).padStart(8),
    ];
    const margin = " ".repeat(Math.min(depth, 10) * 2 + 4);
    const below = remarks.flatMap((remark) => wrap(oneLine(remark), columns - margin.length, 4));
    return [cells.join(" ").trimEnd(), ...below.map((text) => margin + palette.dim(text))];
  });
}

function widest(texts: readonly string[]): number {
  return texts.reduce((width, text) => Math.max(width, displayWidth(text)), 0);
}
