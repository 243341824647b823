import type {
  Again,
  AgentEvent,
  ApprovalEvent,
  CacheMiss,
  CountedRule,
  Event,
  HookFinished,
  RunEvent,
  ServerEvent,
  StepEvent,
} from "../model/event.ts";
import { addUsage, type Block, noUsage, type Usage } from "../model/message.ts";
import type { Failure, SeenValue, SkipReason, StepOutcome } from "../model/outcome.ts";
import { unreachable } from "../model/result.ts";
import { cut, pad } from "./display.ts";
import { count, duration, money, oneLine, two } from "./words.ts";
import { teamText } from "./team.ts";
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
const textLimit = 300;

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
      return sayStep(event, usage.get(event.step));
    case "approval.requested":
    case "approval.given":
      return [[event.step, approvalText(event)]];
    case "mcp.started":
      return event.pinned && verbose < 1 ? [] : [[event.step, startedText(event)]];
    case "hook.finished":
      return event.status === "passed" && verbose < 1 ? [] : [[event.step, hookText(event)]];
    case "mcp.warning":
      return [[event.step, `warning mcp ${event.server}: ${text(event.note)}`]];
    case "worktree.opened":
    case "worktree.applying":
    case "worktree.closed":
    case "worktree.removed":
      return worktreeText(event, verbose).map((words) => ["step" in event ? event.step : "flow", words]);
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
      return sayAgent(event, verbose);
    case "team.started":
    case "team.member.added":
    case "team.member.updated":
    case "team.member.removed":
    case "team.task.added":
    case "team.task.updated":
    case "team.message":
    case "team.woken":
    case "team.finished":
      return teamText(event, verbose).map((words) => [event.step, words]);
    case "diagnostic": {
      const { severity, code, at, message } = event.diagnostic;
      return [["flow", `${severity} ${code} ${at.file}:${at.line}:${at.column} ${message}`]];
    }
    default:
      return unreachable(event);
  }
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

function sayStep(event: StepEvent, usage: Usage | undefined): Said[] {
  const { step } = event;
  switch (event.type) {
    case "step.ready":
      return [[step, "ready, waits for a free slot"]];
    case "step.started":
      // An agent step says who it is in `agent.started`; a `set` step has ended as soon as it has begun.
      return event.kind === "agent" || event.kind === "set" ? [] : [[step, `start ${event.kind}`]];
    case "step.attempt.started":
      if (event.again === "waiting") return [[step, "still waits for an answer"]];
      return event.again === undefined ? [] : [[step, `runs again: ${againText(event.again)}`]];
    case "step.attempt.finished":
      // The last failure is told by the step, those before it by their retries.
      return [];
    case "step.retrying":
      return [
        [step, `attempt ${event.attempt - 1} failed${because(event.error)}; the next in ${duration(event.delay)}`],
      ];
    case "step.reused":
      return [[step, `reused: its end is line ${event.end} of the log`]];
    case "step.cached":
      return [[step, `cached: run ${event.run} executed the same`]];
    case "step.uncached":
      return event.why === "first" ? [] : [[step, `not cached: ${missText(event)}`]];
    case "step.undo.started":
      return [];
    case "step.undone":
      return [[step, `undone: ${outcomeWord(event.outcome)}${because(event.error)} ${duration(event.duration)}`]];
    case "step.skipped":
      return [[step, `skipped: ${shortSkipText(event.reason)}`]];
    case "step.finished": {
      const spending = usage === undefined ? "" : spent(usage);
      const passed = event.outcome === event.conclusion ? "" : " (the run goes on: continue-on-error)";
      const words = event.outcome === "failure" ? `failed${becauseOf(step, event.error)}` : outcomeWord(event.outcome);
      const took = ` ${duration(event.duration)}${spending}`;
      return [[step, event.outcome === "success" ? words + took : `${words}${passed}${took}`]];
    }
    default:
      return unreachable(event);
  }
}

/** Why a step with `cache` had to run. */
export function missText({ why, changed = [] }: CacheMiss): string {
  switch (why) {
    case "first":
      return "nothing was kept of it";
    case "changed":
      return changed.length === 0 ? "what was kept is gone" : `${changed.join(", ")} changed`;
    case "damaged":
      return "what was kept cannot be read";
    case "refresh":
      return "--no-cache";
    default:
      return unreachable(why);
  }
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

/** A question, or its answer and who gave it. */
export function approvalText(event: ApprovalEvent): string {
  if (event.type === "approval.requested") {
    const until = event.deadline === undefined ? "" : ` (until ${event.deadline})`;
    const dropped = event.dropped === undefined ? "" : "; it has changed, so the answer given does not count";
    return `asks: ${text(event.question)}${until}${dropped}`;
  }
  const comment = event.comment === "" ? "" : `: ${text(event.comment)}`;
  return `${event.decision} by ${text(event.by)}${comment}`;
}

/** Why an execution that is in the log runs again. */
export function againText(why: Again): string {
  switch (why) {
    case "from":
      return "asked for by --from";
    case "uncertain":
      return "uncertain, it was running when the run died";
    case "waiting":
      return "it waited for an answer";
    case "undone":
      return "it was undone";
    case "failed":
      return "it failed";
    case "cancelled":
      return "it was cancelled";
    case "definition":
      return "its definition changed";
    case "given":
      return "its inputs changed";
    case "needs":
      return "a step it needs ran again";
    default:
      return unreachable(why);
  }
}

function sayAgent(event: AgentEvent, verbose: number): Said[] {
  const { step } = event;
  switch (event.type) {
    case "agent.started": {
      const title = event.spawned === undefined ? "" : ` ${JSON.stringify(text(event.spawned.title))}`;
      return [[step, `start${title} agent=${event.name} model=${event.model}`]];
    }
    case "agent.finished":
      if (event.parent !== null) return [[step, childEnd(event)]];
      if (event.outcome === "done" && verbose < 1) return [];
      // Why it failed is told by the step, or by its retry.
      return [[step, `agent ${event.outcome} after ${event.turns} ${event.turns === 1 ? "turn" : "turns"}`]];
    case "turn.started":
    case "message.delta":
      return [];
    case "message":
      return verbose < 2
        ? []
        : event.message.blocks.map((block) => [step, `${event.message.role}: ${blockText(block)}`]);
    case "model.retry":
      return [[step, `${event.model} again in ${duration(event.delay)}: ${text(event.error.message)}`]];
    case "model.failed":
      return [[step, `${event.model} failed: ${text(event.error.message)}`]];
    case "model.fallback":
      return [[step, `${event.from} failed, ${event.model} is asked`]];
    case "budget.reserved":
    case "budget.settled":
    case "budget.exceeded":
      // What was spent is told with the turn, a limit that stopped an agent by its end.
      return [];
    case "model.warning":
      return [[step, `warning ${event.model}: ${text(event.note)}`]];
    case "context.compressed":
    case "guard":
    case "check.started":
    case "check.finished":
      return sayMind(event, verbose);
    case "turn.finished":
      return verbose < 1
        ? []
        : [[step, `turn ${event.turn} ${event.stop} ${duration(event.duration)}${spent(event.usage)}`]];
    case "permission.judged":
      return event.decision === "allow" && verbose < 2 ? [] : [[step, judgedText(event)]];
    case "tool.started":
      return verbose < 1 ? [] : [[step, `tool ${event.name} ${text(JSON.stringify(event.args))}`]];
    case "tool.finished":
      return verbose < 1 ? [] : [[step, `tool ${event.name} ${toolEnd(event)}`]];
    default:
      return unreachable(event);
  }
}

/** Nobody else says how a sub-agent ended: no step ends with it. */
function childEnd(event: Extract<AgentEvent, { type: "agent.finished" }>): string {
  const word = event.outcome === "done" ? "ok" : event.outcome;
  const why = event.outcome === "done" ? "" : ` ${text(event.reason)}`;
  const turns = `${event.turns} ${event.turns === 1 ? "turn" : "turns"}`;
  return `${word} ${turns} ${duration(event.duration)}${spent(event.usage)}${why}`;
}

type MindEvent = Extract<AgentEvent, { type: "context.compressed" | "guard" | "check.started" | "check.finished" }>;

/** What the loop does of its own accord. */
function sayMind(event: MindEvent, verbose: number): Said[] {
  const { step } = event;
  switch (event.type) {
    case "context.compressed": {
      const { before, after } = event.tokens;
      return [[step, `context ${event.how}: ${count(before)} → ${count(after)} tok`]];
    }
    case "guard":
      return verbose < 1 && event.action === "hint"
        ? []
        : [[step, `guard ${event.rule} ${event.action}: ${text(event.text)}`]];
    case "check.started":
      return verbose < 1 ? [] : [[step, `check ${event.count}`]];
    case "check.finished":
      return event.status === "passed" && verbose < 1
        ? []
        : [[step, `check ${event.count} ${event.status} ${duration(event.duration)}`]];
    default:
      return unreachable(event);
  }
}

function countText({ rule, decision, layer, file, line, hits }: CountedRule): string {
  const place = file === undefined ? "" : ` ${file}${line === undefined ? "" : `:${line}`}`;
  const used = hits === 0 ? "was never used" : `decided ${hits === 1 ? "one call" : `${hits} calls`}`;
  return `rule ${text(rule)} ${text(decision)} (${text(`${layer}${place}`)}) ${used}`;
}

/** What was not allowed is said at once: it is what somebody has to change. */
function hookText({ event, command, status, text: said }: HookFinished): string {
  return `hook ${event} ${status}: ${text(command)}${said === "" ? "" : `: ${text(said)}`}`;
}

function judgedText(event: Extract<AgentEvent, { type: "permission.judged" }>): string {
  const { decision, name, rule, layer, file, line, toAllow = [] } = event;
  const place = file === undefined ? "" : ` ${file}${line === undefined ? "" : `:${line}`}`;
  const source = `${text(rule)} (${text(`${layer}${place}`)})`;
  if (decision === "allow") return `${text(name)} allowed by ${source}`;
  const verdict = decision === "deny" ? "denied" : "needs approval, so denied,";
  return `${text(name)} ${verdict} by ${source}${toAllow.length === 0 ? "" : `; allow with ${toAllow.map(text).join(", ")}`}`;
}

function toolEnd(event: Extract<AgentEvent, { type: "tool.finished" }>): string {
  const took = duration(event.duration);
  if (event.status === "error") return `error ${took}: ${text(event.text)}`;
  const kept = event.file === undefined ? "" : `, the whole in ${event.file}`;
  return `ok ${took} ${count(event.text.length)} characters${kept}`;
}

function blockText(block: Block): string {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "thinking":
      return `(thinking) ${text(block.text)}`;
    case "call":
      return `calls ${block.name} ${text(block.raw)}`;
    case "image":
      return `image ${text(block.mediaType)}`;
    case "result":
      return `${block.error === true ? "error" : "result"}: ${text(block.blocks.map(blockText).join(" "))}`;
    default:
      return unreachable(block);
  }
}

function text(value: string): string {
  // Cut before cleaning too: a result may be long.
  return cut(oneLine(value.slice(0, textLimit * 4)), textLimit);
}

function spent(usage: Usage): string {
  const tokens = usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
  return tokens === 0 && usage.cost === 0 ? "" : ` ${count(tokens)} tok ${money(usage.cost)}`;
}

function outcomeWord(outcome: StepOutcome | "waiting" | "empty"): string {
  if (outcome === "success") return "ok";
  return outcome === "failure" ? "failed" : outcome;
}

function because(error: Failure | undefined): string {
  return error === undefined ? "" : ` ${failureText(error)}`;
}

/** A step that failed by one inside it names that one, which has said why. */
function becauseOf(step: string, error: Failure | undefined): string {
  return error?.step === undefined || error.step === step ? because(error) : ` by ${error.step}`;
}

/** `exit: exit code 3 (examples/a.yaml:12:5)`. */
export function failureText({ kind, message, position }: Failure): string {
  const place = position === undefined ? "" : ` (${position.file}:${position.line}:${position.column})`;
  return `${kind}: ${text(message)}${place}`;
}

/** Why a step did not run, with the values its condition saw. */
export function skipText(reason: SkipReason): string {
  switch (reason.kind) {
    case "condition":
      return `${reason.condition} is false${seen(reason.saw)}`;
    case "edge":
      return `on the edge from ${reason.step}, ${reason.condition} is false${seen(reason.saw)}`;
    case "needs":
      return text(reason.message) || `it needs ${reason.step}, which ended ${reason.outcome}`;
    case "empty":
      return "every step in it was skipped";
    case "cancelled":
      return "the run was cancelled";
    default:
      return unreachable(reason);
  }
}

/** In one line after those of the steps it speaks of. */
function shortSkipText(reason: SkipReason): string {
  if (reason.kind !== "needs") return skipText(reason);
  return `needs ${reason.step}, which ${reason.outcome === "success" ? "did not succeed" : wasWord(reason.outcome)}`;
}

function wasWord(outcome: Exclude<StepOutcome, "success">): string {
  return outcome === "failure" ? "failed" : `was ${outcome}`;
}

function seen(values: readonly SeenValue[]): string {
  if (values.length === 0) return "";
  const pairs = values.map(
    ({ expression, value }) =>
      `${expression} = ${value === undefined ? "no value" : cut(oneLine(JSON.stringify(value)), 60)}`,
  );
  return ` (${pairs.join(", ")})`;
}
