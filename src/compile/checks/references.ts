import type { Reference } from "../../expr/inspect.ts";
import { nearest } from "../../model/names.ts";
import { type LinkedScope, resolve } from "../link.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { didYouMean, oneOf } from "../report.ts";
import type { Use } from "../shape.ts";
import { follow } from "../known.ts";
import { ofInputs, pathOf, type Viewpoint } from "../types.ts";
import type { Check, CheckSource } from "./check.ts";

/** Every reference names something that is declared, as far as schemas reach. */
export const checkReferences: Check = (source) => {
  const { workflow } = source;
  const root: Viewpoint = { scope: workflow.scope, step: undefined };
  const see = (uses: readonly Use[], from: Viewpoint): void =>
    uses.forEach((use) => use.references.forEach((reference) => checkReference(source, use, reference, from)));
  see(workflow.shape.uses, root);
  see(workflow.shape.scope.outputUses, root);
  for (const { step, scope } of stepsOf(workflow.scope)) {
    see([...step.uses, ...step.needs.flatMap((need) => need.uses)], { scope, step });
    see(step.undoUses, { scope, step, undoing: true });
    see(step.innerUses, { scope: scope.inner.get(step.id) ?? scope, step });
  }
  for (const edge of workflow.shape.scope.edges) see(edge.uses, root);
  for (const agent of agentsOf(workflow)) {
    const inputs = ofInputs(agent.agent.inputs);
    for (const use of agent.uses) {
      for (const reference of use.references) {
        const isSecret = reference.context === "secrets";
        const followed = isSecret ? source.types.follow(reference, root) : follow(inputs, pathOf(reference));
        if (followed.kind === "unknown_property")
          reportUnknown({ source, use, reference, name: followed.name, at: followed.at, known: followed.known });
      }
    }
  }
};

function checkReference(source: CheckSource, use: Use, reference: Reference, from: Viewpoint): void {
  if (!use.place.contexts.has(reference.context) || isToItself(reference, from)) return;
  const followed = source.types.follow(reference, isOutside(use) ? { ...from, step: undefined } : from);
  if (followed.kind === "unknown_property")
    reportUnknown({
      source,
      use,
      reference,
      name: followed.name,
      at: followed.at,
      known: followed.known,
      scope: from.scope,
    });
  else if (reference.context === "steps") checkScriptOutput(source, use, reference, from);
}

/** Whether a use stands on a step and outside of its loops: `item` there is the item of a loop further out. */
export function isOutside({ place }: Use): boolean {
  return ["`if`", "an edge's `if`", "`foreach`", "`matrix`"].includes(place.what);
}

/** A step's reference to its own `steps` entry has been refused as a whole; only an `undo` may have one. */
function isToItself(reference: Reference, { scope, step, undoing }: Viewpoint): boolean {
  const [id] = reference.path;
  if (reference.context !== "steps" || id?.kind !== "name" || !step || undoing) return false;
  return resolve(scope, id.name)?.step === step;
}

interface Unknown {
  readonly source: CheckSource;
  readonly use: Use;
  readonly reference: Reference;
  readonly name: string;
  /** Index into the reference's path. */
  readonly at: number;
  readonly known: readonly string[];
  readonly scope?: LinkedScope;
}

function reportUnknown({ source, use, reference, name, at, known }: Unknown): void {
  const part = reference.path[at];
  const span =
    part?.kind === "name" ? use.span(part.offset, part.length) : use.span(reference.offset, reference.length);
  const owner = [
    reference.context,
    ...reference.path.slice(0, at).map((it) => (it.kind === "name" ? it.name : "[…]")),
  ].join(".");
  const code = reference.context === "secrets" ? "FLOW8005" : "FLOW5010";
  const message =
    reference.context === "secrets"
      ? `the secret \`${name}\` is not declared`
      : known.length === 0
        ? `\`${owner}\` has no \`${name}\`; nothing is declared there`
        : `\`${owner}\` has no \`${name}\`; it has ${oneOf(known)}`;
  const declare = reference.context === "secrets" ? { suggestion: `declare it: \`secrets: [${name}]\`` } : {};
  source.report(code, span, message, () => {
    const near = nearest(name, known);
    return near === undefined ? declare : didYouMean(near);
  });
}

/** A script may write any output to `$FLOW_OUTPUT`, so a misspelt one can only be guessed at. */
function checkScriptOutput({ report }: CheckSource, use: Use, reference: Reference, from: Viewpoint): void {
  const [id, outputs, name] = reference.path;
  if (
    id?.kind !== "name" ||
    outputs?.kind !== "name" ||
    outputs.name.toLowerCase() !== "outputs" ||
    name?.kind !== "name"
  )
    return;
  const step = resolve(from.scope, id.name)?.step.step;
  if (step?.body.kind !== "run" || step.outputs || step.foreach) return;
  const always = ["stdout", "stderr", "exit-code"];
  if (always.includes(name.name.toLowerCase())) return;
  const near = nearest(name.name, always);
  const script = "script" in step.body.command ? step.body.command.script : "";
  if (near === undefined || script.includes(name.name)) return;
  report(
    "FLOW5016",
    use.span(name.offset, name.length),
    `nothing in the script of \`${id.name}\` writes an output \`${name.name}\``,
    { severity: "warning", ...didYouMean(near) },
  );
}
