import type { Again, ApprovalEvent, CacheMiss, StepEvent } from "../model/event.ts";
import type { Usage } from "../model/message.ts";
import type { Failure, SeenValue, SkipReason, StepOutcome } from "../model/outcome.ts";
import { unreachable } from "../model/result.ts";
import { cut } from "./display.ts";
import { duration, excerpt, oneLine, outcomeWord, spent } from "./words.ts";

/** What a line of progress says of a step; `usage` is what its agents took. */
export function stepText(event: StepEvent, usage: Usage | undefined): string[] {
  const { step } = event;
  switch (event.type) {
    case "step.ready":
      return ["ready, waits for a free slot"];
    case "step.started":
      // An agent step says who it is in `agent.started`; a `set` step has ended as soon as it has begun.
      return event.kind === "agent" || event.kind === "set" ? [] : [`start ${event.kind}`];
    case "step.attempt.started":
      if (event.again === "waiting") return ["still waits for an answer"];
      return event.again === undefined ? [] : [`runs again: ${againText(event.again)}`];
    case "step.attempt.finished":
      // The last failure is told by the step, those before it by their retries.
      return [];
    case "step.retrying":
      return [`attempt ${event.attempt - 1} failed${because(event.error)}; the next in ${duration(event.delay)}`];
    case "step.reused":
      return [`reused: its end is line ${event.end} of the log`];
    case "step.cached":
      return [`cached: run ${event.run} executed the same`];
    case "step.uncached":
      return event.why === "first" ? [] : [`not cached: ${missText(event)}`];
    case "step.undo.started":
      return [];
    case "step.undone":
      return [`undone: ${outcomeWord(event.outcome)}${because(event.error)} ${duration(event.duration)}`];
    case "step.skipped":
      return [`skipped: ${shortSkipText(event.reason)}`];
    case "step.finished": {
      const spending = usage === undefined ? "" : spent(usage);
      const passed = event.outcome === event.conclusion ? "" : " (the run goes on: continue-on-error)";
      const words = event.outcome === "failure" ? `failed${becauseOf(step, event.error)}` : outcomeWord(event.outcome);
      const took = ` ${duration(event.duration)}${spending}`;
      return [event.outcome === "success" ? words + took : `${words}${passed}${took}`];
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

/** A question, or its answer and who gave it. */
export function approvalText(event: ApprovalEvent): string {
  if (event.type === "approval.requested") {
    const until = event.deadline === undefined ? "" : ` (until ${event.deadline})`;
    const dropped = event.dropped === undefined ? "" : "; it has changed, so the answer given does not count";
    return `asks: ${excerpt(event.question)}${until}${dropped}`;
  }
  const comment = event.comment === "" ? "" : `: ${excerpt(event.comment)}`;
  return `${event.decision} by ${excerpt(event.by)}${comment}`;
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
  return `${kind}: ${excerpt(message)}${place}`;
}

/** Why a step did not run, with the values its condition saw. */
export function skipText(reason: SkipReason): string {
  switch (reason.kind) {
    case "condition":
      return `${reason.condition} is false${seen(reason.saw)}`;
    case "edge":
      return `on the edge from ${reason.step}, ${reason.condition} is false${seen(reason.saw)}`;
    case "needs":
      return excerpt(reason.message) || `it needs ${reason.step}, which ended ${reason.outcome}`;
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
