import { createEvaluator } from "../expr/template.ts";
import type { JsonObject } from "../model/json.ts";
import type { AgentOutcome } from "../model/message.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Attempt, Execute } from "../model/ports.ts";
import { ActiveAgents } from "./active-agents.ts";
import type { AgentPorts } from "./agent-ports.ts";
import type { AgentResult } from "./agent-result.ts";
import { launch } from "./launch.ts";
import { Conversations } from "./conversations.ts";

/** Runs the attempts of agent steps. Every outcome of an agent but `done` and `cancelled` is a failure of that kind. */
export function createAgentExecute(
  ports: AgentPorts,
  active: ActiveAgents = new ActiveAgents(ports.before?.spawned),
): Execute {
  const shared = {
    ports,
    active,
    evaluator: createEvaluator(),
    validators: new WeakMap(),
    launch,
    heard: new Conversations(),
  };
  const runsOf = new Map<string, number>();

  return async (attempt: Attempt): Promise<StepResult> => {
    const { path, resumes } = attempt;
    const recorded = resumes === true ? ports.before?.take(path) : undefined;
    const count = (runsOf.get(path) ?? ports.before?.runsOf(path) ?? 0) + 1;
    runsOf.set(path, count);
    const ended = await launch(shared, { attempt, id: `${path}@${count}`, ...(recorded && { recorded }) });
    if (ended.ok && ended.value.result.outcome === "cancelled" && !attempt.signal.aborted)
      return { outcome: "failure", error: { kind: "signal", message: ended.value.result.reason } };
    if (ended.ok) return stepResult(ended.value.result);
    return attempt.signal.aborted ? { outcome: "cancelled" } : { outcome: "failure", error: ended.error };
  };
}

function stepResult({ outcome, reason, turns, usage, text, output }: AgentResult): StepResult {
  if (outcome === "cancelled") return { outcome };
  if (outcome !== "done") return { outcome: "failure", error: { kind: failureKind(outcome), message: reason } };
  const { cost, ...tokens } = usage;
  const result: JsonObject = { text, output: output ?? null, turns, usage: tokens, cost };
  return { outcome: "success", result, outputs: output ?? { text } };
}

/** The words are the same; this is where the compiler proves it. */
function failureKind(outcome: Exclude<AgentOutcome, "done" | "cancelled">): Failure["kind"] {
  return outcome;
}
