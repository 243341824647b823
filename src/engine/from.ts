import { nearest } from "../model/names.ts";
import { stepPath } from "../model/ids.ts";
import type { Plan, Scope, Step } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import type { Matches } from "./resume.ts";

/**
 * Which executions run again from `path` on: its own and what lies inside it, every step that comes after it by the edges
 * of its scope and of the scopes around, and the later iterations of the loops it lies in. The error says what is wrong
 * with the path.
 */
export function pathsFrom(plan: Plan, path: string): Result<Matches, string> {
  const rules: Matches[] = [(other) => isWithin(other, path)];
  let scope = plan.workflows[plan.root]?.scope;
  let prefix = "";
  const parts = path.split("/");
  for (const [place, written] of parts.entries()) {
    const part = readPart(written);
    if (part === undefined)
      return err(`\`${written}\` in \`${path}\` is not a step, an item \`x[0]\` or an iteration \`x#1\``);
    const found = findStep(scope, part, prefix);
    if (!found.ok) return found;
    const { index, step, steps } = found.value;
    rules.push(anyOf(prefix, after(steps, index)));
    const own = stepPath(prefix, part.id) + (part.item ?? "");
    if (part.iteration !== undefined) rules.push(laterThan(own, part.iteration));
    prefix = stepPath(prefix, written);
    if (place === parts.length - 1) break;
    const missing = missingMark(step, part);
    if (missing !== undefined)
      return err(
        `\`${prefix}\` is a loop: name one of its ${missing}, as in \`${path.replace(written, written + (missing === "items" ? "[0]" : "#1"))}\``,
      );
    if (step.scope === undefined) return err(`\`${prefix}\` has no steps inside`);
    scope = "inline" in step.scope ? step.scope.inline : plan.workflows[step.scope.workflow]?.scope;
  }
  return ok((other) => rules.some((rule) => rule(other)));
}

interface Part {
  readonly id: string;
  /** As written, with its brackets. */
  readonly item: string | undefined;
  readonly iteration: number | undefined;
}

function readPart(written: string): Part | undefined {
  const match = /^([A-Za-z_][A-Za-z0-9_-]*)(\[\d{1,6}\])?(?:#(\d{1,9}))?$/.exec(written);
  if (match === null) return undefined;
  const [, id = "", item, iteration] = match;
  return { id, item, iteration: iteration === undefined ? undefined : Number(iteration) };
}

interface Found {
  readonly steps: Scope;
  readonly step: Step;
  readonly index: number;
}

function findStep(scope: Scope | undefined, part: Part, prefix: string): Result<Found, string> {
  const steps = scope?.steps ?? [];
  const index = steps.findIndex(({ id }) => id === part.id);
  const step = steps[index];
  if (scope === undefined || step === undefined) {
    const ids = steps.map(({ id }) => id);
    const near = nearest(part.id, ids);
    const where = prefix === "" ? "the workflow" : `\`${prefix}\``;
    const hint = near === undefined ? `it has ${ids.slice(0, 12).join(", ")}` : `did you mean \`${near}\`?`;
    return err(`${where} has no step \`${part.id}\`; ${hint}`);
  }
  if (part.item !== undefined && step.foreach === undefined)
    return err(`\`${part.id}\` has no items: it is no \`foreach\``);
  if (part.iteration !== undefined && step.repeat === undefined)
    return err(`\`${part.id}\` has no iterations: it is no \`repeat\``);
  return ok({ steps: scope, step, index });
}

function missingMark({ foreach, repeat }: Step, part: Part): "items" | "iterations" | undefined {
  if (foreach !== undefined && part.item === undefined) return "items";
  return repeat !== undefined && part.iteration === undefined ? "iterations" : undefined;
}

/** Ids of the steps that follow `index` over any edge, near or far. */
function after({ steps, edges }: Scope, index: number): ReadonlySet<string> {
  const targets = Map.groupBy(edges, ({ from }) => from);
  const reached = new Set<number>();
  // A set that grows while it is walked.
  for (const { to } of targets.get(index) ?? []) reached.add(to);
  for (const step of reached) for (const { to } of targets.get(step) ?? []) reached.add(to);
  return new Set([...reached].map((step) => steps[step]?.id ?? ""));
}

function anyOf(prefix: string, ids: ReadonlySet<string>): Matches {
  const start = prefix === "" ? "" : `${prefix}/`;
  return (path) => path.startsWith(start) && ids.has(/^[^/[#]*/.exec(path.slice(start.length))?.[0] ?? "");
}

function laterThan(own: string, iteration: number): Matches {
  return (path) => path.startsWith(`${own}#`) && Number.parseInt(path.slice(own.length + 1), 10) > iteration;
}

function isWithin(path: string, whole: string): boolean {
  return path.startsWith(whole) && (path.length === whole.length || "/[#".includes(path[whole.length] ?? " "));
}
