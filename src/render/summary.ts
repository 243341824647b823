import type { Span } from "../model/diagnostic.ts";
import type { Event } from "../model/event.ts";
import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Usage } from "../model/message.ts";
import type { Failure, RunOutcome } from "../model/outcome.ts";
import type { LimitSpent } from "../model/spending.ts";
import { foldTeam, isOfTeam, type TeamEvent, type TeamState } from "../model/team.ts";
import { budgetText } from "./budget.ts";
import type { Paint, Palette } from "./palette.ts";
import { cut, visible } from "./display.ts";
import { failureText } from "./step-text.ts";
import { teamRemarks, teamView } from "./team.ts";
import { count, duration, money, oneLine, tidy } from "./words.ts";

/** What the last block says, folded from a run's events by {@link observe}. */
export interface RunFacts {
  readonly run?: string;
  readonly name?: string;
  readonly provider?: string;
  /** Steps of the workflow itself; those inside groups, items and iterations count with theirs. */
  readonly ok: number;
  readonly failed: number;
  /** Failed, and concluded `success` by `continue-on-error`. */
  readonly forgiven: number;
  readonly skipped: number;
  readonly cancelled: number;
  readonly waiting: number;
  /** Steps and items whose outputs came from the cache; the steps among them are `ok` too. */
  readonly cached: number;
  /** Steps that concluded `failure`, in the order they ended, at most a hundred. */
  readonly failures: readonly StepFailure[];
  /** Executions whose `undo` failed or was cancelled: what they did is still there. */
  readonly notUndone: readonly StepFailure[];
  /** Teams, by their leads' agent runs. */
  readonly teams: ReadonlyMap<string, TeamState>;
  readonly end?: Extract<Event, { type: "run.finished" }>;
}

interface StepFailure {
  readonly step: string;
  readonly error: Failure | undefined;
  /** The last lines it wrote, to stderr if it wrote any there. */
  readonly tail: readonly string[];
}

export interface SummaryOptions {
  readonly palette: Palette;
  /** Where the log lies. */
  readonly log?: string;
  /** Commands worth typing next. */
  readonly next: readonly string[];
  /** Why the run failed, for a run whose log could not say it. */
  readonly error?: Failure;
  /** What was spent of the run's limits on cost and tokens. */
  readonly budget?: readonly LimitSpent[];
  /** Where a step is written, by its path. */
  readonly place?: (step: string) => Span | undefined;
}

const failureLimit = 100;
const tailLines = 10;
const tailWidth = 300;

export const noFacts: RunFacts = {
  ok: 0,
  failed: 0,
  forgiven: 0,
  skipped: 0,
  cancelled: 0,
  waiting: 0,
  cached: 0,
  failures: [],
  notUndone: [],
  teams: new Map(),
};

export function observe(facts: RunFacts, event: Event): RunFacts {
  if (event.type === "run.started" || event.type === "run.resumed")
    return { ...facts, run: event.run, name: event.name };
  if (event.type === "run.waiting") return { ...facts, waiting: new Set(event.steps.map(ownStep)).size };
  if (event.type === "run.finished") return { ...facts, end: event };
  if (event.type === "step.cached") return { ...facts, cached: facts.cached + 1 };
  if (event.type === "agent.started" && facts.provider === undefined) return { ...facts, provider: event.provider };
  if (event.type === "step.skipped" && isOwnStep(event.step)) return { ...facts, skipped: facts.skipped + 1 };
  if (event.type === "step.undone" && event.outcome !== "success" && facts.notUndone.length < failureLimit)
    return { ...facts, notUndone: [...facts.notUndone, { step: event.step, error: event.error, tail: [] }] };
  if (isOfTeam(event)) return observeTeam(facts, event);
  return event.type === "step.finished" ? observeEnd(facts, event) : facts;
}

function observeTeam(facts: RunFacts, event: TeamEvent): RunFacts {
  const team = foldTeam(facts.teams.get(event.agent), event);
  return team ? { ...facts, teams: new Map(facts.teams).set(event.agent, team) } : facts;
}

function observeEnd(facts: RunFacts, event: Extract<Event, { type: "step.finished" }>): RunFacts {
  const failures =
    event.conclusion === "failure" && facts.failures.length < failureLimit
      ? [...facts.failures, { step: event.step, error: event.error, tail: tailOf(event.outputs) }]
      : facts.failures;
  if (!isOwnStep(event.step)) return failures === facts.failures ? facts : { ...facts, failures };
  const { outcome, conclusion } = event;
  const isForgiven = outcome === "failure" && conclusion === "success";
  return {
    ...facts,
    failures,
    ok: facts.ok + Number(conclusion === "success" && !isForgiven),
    forgiven: facts.forgiven + Number(isForgiven),
    failed: facts.failed + Number(conclusion === "failure"),
    cancelled: facts.cancelled + Number(conclusion === "cancelled"),
  };
}

function tailOf(outputs: Json | undefined): string[] {
  if (!isJsonObject(outputs)) return [];
  const texts = ["stderr", "stdout"].map((name) => own(outputs, name));
  const text = texts.find((it) => typeof it === "string" && it.trim() !== "");
  if (typeof text !== "string") return [];
  // Cut before cleaning too: a line may be long.
  return text
    .trimEnd()
    .split("\n")
    .slice(-tailLines)
    .map((line) => cut(tidy(line.slice(0, tailWidth * 4)), tailWidth));
}

/** The step of the workflow itself that a path lies in. */
function ownStep(path: string): string {
  return path.split(/[/[#]/, 1)[0] ?? path;
}

function isOwnStep(path: string): boolean {
  return !/[/[#]/.test(path);
}

/** The block on stderr after a run; ends in a newline. */
export function runSummary(facts: RunFacts, { palette, log, next, place, error, budget }: SummaryOptions): string {
  const { end } = facts;
  const rows: [string, string][] = [["steps", stepsText(facts)]];
  if (end !== undefined) rows.push(["tokens", usageText(end.usage, facts.provider)]);
  if (budget !== undefined) rows.push(["budget", budgetText(budget)]);
  rows.push(...failureRows(facts, place));
  for (const { step, error } of facts.notUndone)
    rows.push(["undo", `of ${oneLine(step)} failed${error === undefined ? "" : `: ${failureText(error)}`}`]);
  for (const team of facts.teams.values())
    if ([...team.tasks.values()].some(({ status }) => status !== "completed"))
      rows.push(["team", (teamRemarks(teamView(team))[0] ?? "").replace(/^team /, "")]);
  if (end === undefined && error !== undefined) rows.push(["failed", failureText(error)]);
  if (log !== undefined) rows.push(["log", log]);
  next.forEach((command, index) => rows.push([index === 0 ? "next" : "", command]));
  const lines = rows.map(([label, text]) => `  ${palette.dim(label.padEnd(7))} ${visible(text)}`);
  return `${[heading(facts, palette), ...lines].join("\n")}\n`;
}

function heading({ end, name, run }: RunFacts, palette: Palette): string {
  const what = [name ?? "run", run ?? ""].filter((text) => text !== "").map(oneLine);
  if (end === undefined) return `${palette.yellow("no end")} ${what.join(" ")}`;
  const paint = paintOf(end.outcome, palette);
  return `${paint(palette.bold(outcomeText(end.outcome)))} ${what.join(" ")} ${duration(end.duration)}`;
}

function outcomeText(outcome: RunOutcome): string {
  if (outcome === "success") return "ok";
  if (outcome === "failure") return "failed";
  return outcome === "empty" ? "empty (no step ran)" : outcome;
}

function paintOf(outcome: RunOutcome, palette: Palette): Paint {
  if (outcome === "success") return palette.green;
  return outcome === "waiting" ? palette.yellow : palette.red;
}

function stepsText({ ok, failed, forgiven, skipped, cancelled, waiting, cached }: RunFacts): string {
  const parts = [`${ok} ok`, `${failed} failed`, `${skipped} skipped`];
  if (forgiven > 0) parts.push(`${forgiven} failed but allowed to`);
  if (waiting > 0) parts.push(`${waiting} waiting`);
  if (cancelled > 0) parts.push(`${cancelled} cancelled`);
  if (cached > 0) parts.push(`${cached} from the cache`);
  return parts.join(", ");
}

function usageText(usage: Usage, provider: string | undefined): string {
  const about = usage.estimated ? "about " : "";
  const input = usage.input + usage.cacheRead + usage.cacheWrite;
  const by = provider === undefined ? "" : ` (${provider})`;
  return `${about}${count(input)} in, ${count(usage.output)} out, ${money(usage.cost)}${by}`;
}

/** The step behind the failure of the run, if it is the failure of a step. */
export function failedStep(facts: RunFacts): { readonly step: string; readonly reason: string } | undefined {
  const failure = facts.end === undefined || facts.end.outcome === "success" ? undefined : firstFailure(facts);
  return failure && { step: failure.step, reason: failure.error?.message ?? "" };
}

/** The innermost step behind the first failure of the workflow's own steps. */
function firstFailure({ failures }: RunFacts): StepFailure | undefined {
  const outer = failures.find(({ step }) => isOwnStep(step)) ?? failures[0];
  return failures.find(({ step }) => step === outer?.error?.step) ?? outer;
}

/** What failed, where it is written, and the last lines it said; the run's own error when no step failed. */
function failureRows(facts: RunFacts, place: SummaryOptions["place"]): [string, string][] {
  const { end } = facts;
  if (end === undefined || end.outcome === "success") return [];
  const failure = firstFailure(facts);
  if (failure === undefined) return end.error === undefined ? [] : [["failed", failureText(end.error)]];
  const { step, error, tail } = failure;
  const at = error?.position === undefined ? place?.(step) : undefined;
  const where = at === undefined || at.file === "-" ? "" : ` (${at.file}:${at.line}:${at.column})`;
  const why = error === undefined ? "" : ` ${failureText(error)}`;
  return [["failed", oneLine(step) + why + where], ...tail.map((line): [string, string] => ["", `| ${line}`])];
}
