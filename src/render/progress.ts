import type { CountedRule, Event, HookFinished, RunEvent, ServerEvent } from "../model/event.ts";
import { addUsage, noUsage, type Usage } from "../model/message.ts";
import { unreachable } from "../model/result.ts";
import { agentText } from "./agent-text.ts";
import { cut, pad } from "./display.ts";
import { approvalText, failureText, stepText } from "./step-text.ts";
import { teamText } from "./team.ts";
import { duration, excerpt, oneLine, outcomeWord, spent, two } from "./words.ts";
import { worktreeText } from "./worktree-text.ts";

export interface ProgressOptions {
  /** Characters a line may have; absent: no limit. */
  readonly width?: number;
  /** 1 adds turns and tool calls, 2 adds messages. */
  readonly verbose: 0 | 1 | 2;
}

type TimedEvent = Event & { readonly time: string };
type Progress = (event: TimedEvent) => string[];
/** A line without its time: what it is about, and the words. */
type Said = readonly [subject: string, words: string];

const narrowestSubject = 10;
const widestSubject = 24;

/** Turns events, in order, into lines of plain text: no escape codes, one event a line. */
export function plainProgress({ width, verbose }: ProgressOptions): Progress {
  const usage = new Map<string, Usage>();
  let start: number | undefined;
  let column = narrowestSubject;
  const shown = withoutReused();
  const subjectOf = subjects();
  return (event) => {
    const time = Date.parse(event.time);
    start ??= time;
    if (event.type === "run.started") column = subjectWidth(event);
    if (event.type === "agent.finished") usage.set(event.step, addUsage(usage.get(event.step) ?? noUsage, event.usage));
    const elapsed = elapsedText(time - start);
    const lines = say(event, verbose, usage).map(([subject, words]) => {
      const line = `${elapsed} ${pad(oneLine(subjectOf(event, subject)), column)} ${oneLine(words)}`;
      return width === undefined ? line : cut(line, width);
    });
    if (event.type === "step.finished") usage.delete(event.step);
    return shown(event, lines);
  };
}

/** What a sub-agent does stands beside its name and the end of its id: `build>explore@1.2`. */
function subjects(): (event: TimedEvent, subject: string) => string {
  const names = new Map<string, string>();
  return (event, subject) => {
    if (event.type === "agent.started" && event.parent !== null)
      names.set(event.agent, `>${event.spawned?.name ?? event.name}${event.agent.slice(event.step.length)}`);
    const name = "agent" in event ? names.get(event.agent) : undefined;
    if (event.type === "agent.finished") names.delete(event.agent);
    return name === undefined ? subject : subject + name;
  };
}

/** After a resume, one line for each step that is reused: it neither starts nor ends. */
function withoutReused(): (event: TimedEvent, lines: string[]) => string[] {
  const reused = new Set<string>();
  let isResumed = false;
  let start: string[] = [];
  return (event, lines) => {
    const before = event.type === "step.reused" ? [] : start;
    start = [];
    if (event.type === "run.resumed") isResumed = true;
    if (event.type === "step.reused") reused.add(event.step);
    if (event.type === "step.finished" && reused.delete(event.step) && event.outcome === "success") return before;
    if (event.type !== "step.started" || !isResumed) return [...before, ...lines];
    start = lines;
    return before;
  };
}

function subjectWidth({ plan }: Extract<Event, { type: "run.started" }>): number {
  if ("blob" in plan) return narrowestSubject;
  const ids = plan.workflows[plan.root]?.scope.steps.map((step) => step.id.length) ?? [];
  return Math.min(
    widestSubject,
    ids.reduce((a, b) => Math.max(a, b), narrowestSubject),
  );
}

/** `00:04.4`, with hours in front when there are any. */
function elapsedText(ms: number): string {
  const tenths = Math.max(0, Math.floor(ms / 100));
  const seconds = Math.floor(tenths / 10);
  const hours = Math.floor(seconds / 3600);
  const clock = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}.${tenths % 10}`;
  return hours > 0 ? `${hours}:${clock}` : clock;
}

function say(event: TimedEvent, verbose: number, usage: ReadonlyMap<string, Usage>): Said[] {
  switch (event.type) {
    case "run.started":
    case "run.resumed":
    case "run.waiting":
    case "permissions.counted":
    case "run.finished":
      return sayRun(event, verbose);
    case "step.ready":
    case "step.started":
    case "step.attempt.started":
    case "step.attempt.finished":
    case "step.retrying":
    case "step.reused":
    case "step.cached":
    case "step.uncached":
    case "step.undo.started":
    case "step.undone":
    case "step.skipped":
    case "step.finished":
      return about(event.step, stepText(event, usage.get(event.step)));
    case "approval.requested":
    case "approval.given":
      return [[event.step, approvalText(event)]];
    case "mcp.started":
      return event.pinned && verbose < 1 ? [] : [[event.step, startedText(event)]];
    case "hook.finished":
      return event.status === "passed" && verbose < 1 ? [] : [[event.step, hookText(event)]];
    case "mcp.warning":
      return [[event.step, `warning mcp ${event.server}: ${excerpt(event.note)}`]];
    case "worktree.opened":
    case "worktree.applying":
    case "worktree.closed":
    case "worktree.removed":
      return about("step" in event ? event.step : "flow", worktreeText(event, verbose));
    case "context.compressed":
    case "guard":
    case "check.started":
    case "check.finished":
    case "agent.started":
    case "agent.finished":
    case "turn.started":
    case "message":
    case "message.delta":
    case "model.retry":
    case "model.failed":
    case "model.fallback":
    case "model.warning":
    case "budget.reserved":
    case "budget.settled":
    case "budget.exceeded":
    case "turn.finished":
    case "permission.judged":
    case "tool.started":
    case "tool.finished":
      return about(event.step, agentText(event, verbose));
    case "team.started":
    case "team.member.added":
    case "team.member.updated":
    case "team.member.removed":
    case "team.task.added":
    case "team.task.updated":
    case "team.message":
    case "team.woken":
    case "team.finished":
      return about(event.step, teamText(event, verbose));
    case "diagnostic": {
      const { severity, code, at, message } = event.diagnostic;
      return [["flow", `${severity} ${code} ${at.file}:${at.line}:${at.column} ${message}`]];
    }
    default:
      return unreachable(event);
  }
}

function about(subject: string, lines: readonly string[]): Said[] {
  return lines.map((words) => [subject, words]);
}

function sayRun(event: RunEvent, verbose: number): Said[] {
  if (event.type === "run.started") {
    const root = "blob" in event.plan ? undefined : event.plan.workflows[event.plan.root];
    const steps =
      root === undefined
        ? ""
        : ` (${root.scope.steps.length} step${root.scope.steps.length === 1 ? "" : "s"}${budget(root.limits.cost)})`;
    return [["run", `${event.run} ${event.workflow === "-" ? event.name : event.workflow}${steps}`]];
  }
  if (event.type === "run.resumed") return sayResumed(event);
  if (event.type === "run.waiting") return [["run", `waits for an answer: ${event.steps.slice(0, 10).join(", ")}`]];
  if (event.type === "permissions.counted")
    return verbose < 1 ? [] : event.rules.map((rule) => ["run", countText(rule)]);
  // A step has told its own failure.
  const why = event.error === undefined || event.error.step !== undefined ? "" : `: ${failureText(event.error)}`;
  return [["run", `${outcomeWord(event.outcome)} ${duration(event.duration)}${spent(event.usage)}${why}`]];
}

function sayResumed(event: Extract<RunEvent, { type: "run.resumed" }>): Said[] {
  const { torn, changes = [], set = [], from } = event;
  const lines = [`${event.run}${event.workflow === "-" ? "" : ` ${event.workflow}`} resumed`];
  if (torn !== undefined) lines.push(`the log ended in a part of a line (${torn} bytes), which was dropped`);
  lines.push(...changes.map((change) => `changed: ${change}`));
  if (from !== undefined) lines.push(`from ${from} on everything runs again`);
  lines.push(...set.map(({ step, output, value }) => `${step}.${output} = ${cut(JSON.stringify(value), 60)}`));
  return lines.map((line) => ["run", line]);
}

function budget(cost: number | undefined): string {
  return cost === undefined ? "" : `, budget $${cost.toFixed(2)}`;
}

function startedText({
  server,
  offers,
  pinned,
  duration: took,
}: Extract<ServerEvent, { type: "mcp.started" }>): string {
  const note = pinned ? "" : "; its tools are not pinned (`flow mcp lock`)";
  return `mcp ${server} started: ${offers} tool${offers === 1 ? "" : "s"} ${duration(took)}${note}`;
}

function countText({ rule, decision, layer, file, line, hits }: CountedRule): string {
  const place = file === undefined ? "" : ` ${file}${line === undefined ? "" : `:${line}`}`;
  const used = hits === 0 ? "was never used" : `decided ${hits === 1 ? "one call" : `${hits} calls`}`;
  return `rule ${excerpt(rule)} ${excerpt(decision)} (${excerpt(`${layer}${place}`)}) ${used}`;
}

function hookText({ event, command, status, text: said }: HookFinished): string {
  return `hook ${event} ${status}: ${excerpt(command)}${said === "" ? "" : `: ${excerpt(said)}`}`;
}
