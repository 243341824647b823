import { calls, comparisons, isConstant, type Reference, staticType } from "../../expr/inspect.ts";
import { resolve } from "../link.ts";
import { stepsOf } from "../linked.ts";
import type { StepShape, Use } from "../shape.ts";
import type { Viewpoint } from "../types.ts";
import type { Check, CheckSource } from "./check.ts";
import { isOutside } from "./references.ts";
import { entry } from "../../source/document.ts";
import { booleanOf } from "../read/nodes.ts";

/** Conditions give true or false, can change, and do not contradict the edges they stand on. */
export const checkConditions: Check = (source) => {
  const { workflow } = source;
  for (const { step, scope } of stepsOf(workflow.scope)) {
    const from: Viewpoint = { scope, step };
    warnWhenFixed(source, step);
    if (step.condition) {
      checkCondition(source, step.condition, from);
      checkNeverTrue(source, step, step.condition, from);
    }
    for (const use of step.innerUses)
      if (use.place.what === "`until`") checkCondition(source, use, { scope: scope.inner.get(step.id) ?? scope, step });
    for (const use of step.needs.flatMap((need) => need.uses)) checkCondition(source, use, from);
  }
  for (const use of workflow.shape.scope.edges.flatMap((edge) => edge.uses))
    checkCondition(source, use, { scope: workflow.scope, step: undefined });
};

function warnWhenFixed({ report }: CheckSource, step: StepShape): void {
  const written = entry(step.node, "if");
  const fixed = booleanOf(written?.value);
  if (!written || fixed === undefined) return;
  report(
    "FLOW5007",
    written.value.at,
    fixed
      ? "`if: true` says nothing: without `if` the step runs as well"
      : `\`${step.id}\` never runs: its condition is \`false\``,
    { severity: "warning" },
  );
}

function checkCondition({ types, report }: CheckSource, use: Use, from: Viewpoint): void {
  if (isConstant(use.parsed)) {
    report("FLOW5007", use.at, "this condition gives the same answer in every run", {
      suggestion: "compare something that can change: `inputs`, `vars`, `steps` …",
    });
    return;
  }
  const viewpoint = isOutside(use) ? { ...from, step: undefined } : from;
  const type = staticType(use.parsed, (reference) => types.typeOf(reference, viewpoint));
  if (type === "unknown" || type === "boolean") return;
  const [only, second] = use.references;
  const name = only && !second ? use.source.trim() : "it";
  report("FLOW5006", use.at, `a condition must be true or false; this is of type ${type}`, {
    suggestion: comparison(type, name),
  });
}

function comparison(type: string, name: string): string {
  if (type === "string") return `compare it: \`${name} != ''\``;
  if (type === "number") return `compare it: \`${name} > 0\``;
  if (type === "array" || type === "object") return `ask for its size: \`length(${name}) > 0\``;
  return "write a comparison";
}

/** Two ways to wait for a failure that cannot happen, since a step that fails closes the hard edge that leads here. */
function checkNeverTrue({ report }: CheckSource, step: StepShape, use: Use, { scope }: Viewpoint): void {
  const status = calls(use.parsed).some((call) => ["success", "failure", "always", "cancelled"].includes(call.name));
  if (!status) {
    for (const { reference, text, offset, length } of comparisons(use.parsed)) {
      const id = text.toLowerCase() === "failure" ? outcomeOf(reference) : undefined;
      const need = step.needs.find((it) => it.step.text.toLowerCase() === id?.toLowerCase());
      if (id === undefined || !need || resolve(scope, id)?.step.step.continueOnError) continue;
      report(
        "FLOW5011",
        use.span(offset, length),
        `this is never true: \`${step.id}\` needs \`${id}\`, and runs only when \`${id}\` succeeded`,
        {
          related: [{ message: "it is needed here", at: need.step.at }],
          suggestion: `drop the \`needs\`, or write \`failure('${id}')\``,
        },
      );
    }
  }
  checkFailedOutputs({ step, use, report, scope });
}

/** The id of a reference that is exactly `steps.x.outcome`. */
function outcomeOf({ context, path: [id, property, more] }: Reference): string | undefined {
  if (context !== "steps" || id?.kind !== "name" || property?.kind !== "name" || more !== undefined) return undefined;
  return property.name.toLowerCase() === "outcome" ? id.name : undefined;
}

/** A step that runs only because another failed cannot read what that one would have given by success. */
function checkFailedOutputs({
  step,
  use,
  report,
  scope,
}: {
  step: StepShape;
  use: Use;
  report: CheckSource["report"];
  scope: Viewpoint["scope"];
}): void {
  const [call] = calls(use.parsed);
  const only = call?.name === "failure" && call.length === use.source.length ? call.args[0] : undefined;
  const failed = only === undefined ? undefined : resolve(scope, only)?.step;
  if (!failed || failed.step.kind === "run" || failed.step.foreach) return;
  for (const reading of step.uses) {
    for (const reference of reading.references) {
      const [id, outputs] = reference.path;
      const isOutput = outputs?.kind === "name" && outputs.name.toLowerCase() === "outputs";
      if (
        reference.guarded ||
        reference.context !== "steps" ||
        id?.kind !== "name" ||
        !isOutput ||
        id.name.toLowerCase() !== failed.id.toLowerCase()
      )
        continue;
      report(
        "FLOW5012",
        reading.span(reference.offset, reference.length),
        `this can never have a value: \`${step.id}\` runs only when \`${failed.id}\` failed, and a failed \`${failed.step.kind}\` step has no outputs`,
        {
          suggestion: `read \`steps.${failed.id}.error\`, or give a substitute: \`default(steps.${failed.id}.outputs, …)\``,
        },
      );
    }
  }
}
