import type { AgentEvent } from "../model/agent-event.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { StepResult } from "../model/outcome.ts";
import { elapsed } from "../model/ports.ts";
import type { Ending } from "./agent-result.ts";
import { aborted, type AgentCheck, type AgentRun, noted, type Place, tell } from "./agent-run.ts";
import { capped } from "./cap.ts";
import { hints } from "./hints.ts";
import type { CheckFact } from "./history.ts";

/**
 * Runs the command that judges the work. Undefined: it passed. `again`: it failed, its output stands in the conversation,
 * and the agent goes on. One that ended just before a resume is not run a second time.
 */
export async function* checked(
  run: AgentRun,
  place: Place,
  check: AgentCheck,
): AsyncGenerator<AgentEvent, Ending | "again" | undefined> {
  const { history } = place.state;
  const fact = history.check ?? (yield* runOnce(run, place, check));
  if (fact === undefined) return aborted(run.signal);
  switch (fact.status) {
    case "passed":
      return undefined;
    case "broken":
      return { outcome: "check", reason: `the check could not be run: ${fact.text}` };
    case "failed": {
      const { failedChecks } = history;
      const reason = `the check failed ${failedChecks === 1 ? "once" : `${failedChecks} times`}: ${lastLine(fact.text)}`;
      if (failedChecks > check.max) return { outcome: "check", reason };
      yield* tell(run, place, hints.failedCheck(check.script.trim(), fact.text));
      return "again";
    }
  }
}

async function* runOnce(
  run: AgentRun,
  { state, ids }: Place,
  check: AgentCheck,
): AsyncGenerator<AgentEvent, CheckFact | undefined> {
  const count = state.history.failedChecks + 1;
  yield { ...ids, type: "check.started", count };
  const start = run.clock.monotonic();
  const fact = await check.run(run.signal);
  if (fact === undefined) return undefined;
  const { text } = capped(fact.text, run.spill);
  const duration = elapsed(run.clock, start);
  yield* noted(state, { ...ids, type: "check.finished", count, status: fact.status, text, duration });
  return { ...fact, text };
}

function lastLine(text: string): string {
  const line = text.trimEnd().split("\n").at(-1) ?? "";
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** What the attempt of a `run` step says about the work. */
export function checkFact(result: StepResult): CheckFact | undefined {
  if (result.outcome === "cancelled") return undefined;
  if (result.outcome === "success") return { status: "passed", text: printed(result.outputs) };
  const { kind, message } = result.error;
  if (kind !== "exit" && kind !== "signal") return { status: "broken", text: message };
  return { status: "failed", text: `${printed(result.outputs)}[${message.split(":", 1)[0]}]` };
}

function printed(outputs: StepResult["outputs"]): string {
  if (!isJsonObject(outputs)) return "";
  const streams = ["stdout", "stderr"].map((name) => own(outputs, name));
  return streams.flatMap((text) => (typeof text === "string" && text !== "" ? [`${text}\n`] : [])).join("");
}
