/** Step ids, input, variable and output names. Prototype names match too and are refused by {@link isReservedName}. */
export const namePattern: RegExp = /^[A-Za-z_][A-Za-z0-9_-]*$/;

const reserved = new Set(
  Object.getOwnPropertyNames(Object.prototype)
    .map((name) => name.toLowerCase())
    .concat("prototype"),
);

/** `constructor`, `__proto__`, `toString` …: names every JavaScript object inherits. */
export function isReservedName(name: string): boolean {
  return reserved.has(name.toLowerCase());
}

/** `path[2]`: item 2 of a step, from 0. */
export function itemPath(path: string, index: number): string {
  return `${path}[${index}]`;
}

/** `path#3`: iteration 3 of a step or item, from 1. */
export function iterationPath(path: string, iteration: number): string {
  return `${path}#${iteration}`;
}

/** The path of a step inside the scope at `scope` (empty for the workflow's own). */
export function stepPath(scope: string, id: string): string {
  return scope === "" ? id : `${scope}/${id}`;
}

/** Where an agent's event belongs: its step, its own id, the agent run that spawned it, the turn (from 1). */
export interface AgentRunIds {
  readonly step: string;
  readonly agent: string;
  readonly parent: string | null;
}

/** What an agent run asks its model as: the path of its step, and behind it its name where another agent spawned it. */
export function askedAs({
  step,
  parent,
  name,
}: Pick<AgentRunIds, "step" | "parent"> & { readonly name: string }): string {
  return parent === null ? step : `${step}/${name}`;
}
