import { lookup, missing, propertyOf } from "../expr/value.ts";
import type { Lookup, Missing, Value } from "../expr/value.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Scope, Step } from "../model/plan.ts";
import type { Sight } from "./engine.ts";
import type { Settled } from "./reasons.ts";
import { whyNoValue } from "./reasons.ts";

/** The `steps` of a scope by what `settled` knows of them, then those of the scope around it. */
export function seeSteps(
  scope: Scope,
  settled: readonly (Settled | undefined)[],
  outer?: Sight,
): Pick<Sight, "settled" | "steps"> {
  const index = new Map(scope.steps.map((step, position) => [step.id.toLowerCase(), position]));
  const steps = lookup({
    get: (name) => {
      const position = index.get(name.toLowerCase());
      const step = position === undefined ? undefined : scope.steps[position];
      if (step === undefined || position === undefined) return outer?.steps.get(name);
      return seeStep(step, settled[position]);
    },
    names: () => scope.steps.map((step) => step.id).concat(outer?.steps.names() ?? []),
  });
  const find = (id: string): Settled | undefined => {
    const position = index.get(id.toLowerCase());
    return position === undefined ? outer?.settled(id) : settled[position];
  };
  return { steps, settled: find };
}

/** The same sight with more contexts: `item`, `iteration` and what else a loop gives. */
export function seeMore(sight: Sight, contexts: JsonObject): Sight {
  const { visible } = sight;
  return { ...sight, visible: { ...visible, contexts: { ...visible.contexts, ...contexts } } };
}

/** What the `undo` of one execution sees: its own step as that execution left it, whatever became of the others. */
export function seeOwn(sight: Sight, step: Step, outputs: Json): Sight {
  const own: Settled = { outcome: "success", conclusion: "success", outputs, error: undefined, skipReason: undefined };
  const steps = lookup({
    get: (name) => (name.toLowerCase() === step.id.toLowerCase() ? seeStep(step, own) : sight.steps.get(name)),
    names: () => sight.steps.names(),
  });
  const { visible } = sight;
  return { ...sight, steps, visible: { ...visible, contexts: { ...visible.contexts, steps } } };
}

/** `steps.x`. */
function seeStep(step: Step, settled: Settled | undefined): Lookup | Missing {
  if (settled === undefined) return missing(whyNoValue(step.id, settled));
  return lookup({
    get: (name) => {
      switch (name) {
        case "outcome":
        case "conclusion":
          return settled[name];
        case "error":
          return settled.error === undefined ? null : failureJson(settled.error);
        case "skipReason":
          return settled.skipReason?.kind ?? null;
        case "outputs":
          return seeOutputs(step, settled);
        default:
          return undefined;
      }
    },
    names: () => ["outcome", "conclusion", "outputs", "error", "skipReason"],
  });
}

/** `steps.x.outputs`: reading a name that is not there tells why, unless the step declares that it may be absent. */
function seeOutputs(step: Step, settled: Settled): Value | Missing {
  const { outputs } = settled;
  if (outputs === undefined) return missing(whyNoValue(step.id, settled));
  if (!isJsonObject(outputs)) return outputs;
  return lookup({
    get: (name) => {
      const value = propertyOf(outputs, name);
      if (value !== undefined) return value;
      const optional = settled.outcome === "success" && declares(step, name);
      return optional ? null : missing(whyNoValue(step.id, settled, name));
    },
    names: () => Object.keys(outputs),
  });
}

/** Whether the schema of the step's result, where its kind takes one, has a property of that name. */
function declares(step: Step, name: string): boolean {
  if (step.outputs !== undefined || !("output" in step.body)) return false;
  const schema = step.body.output?.json;
  const properties = isJsonObject(schema) ? schema["properties"] : undefined;
  return isJsonObject(properties) && propertyOf(properties, name) !== undefined;
}

function failureJson({ kind, message, position, cause, step }: Failure): JsonObject {
  return {
    kind,
    message,
    ...(position !== undefined && { position: { ...position } }),
    ...(cause !== undefined && { cause }),
    ...(step !== undefined && { step }),
  };
}
