import { canonicalJson, isJsonObject, type Json } from "../model/json.ts";
import type { Plan, Scope, Step } from "../model/plan.ts";
import { withoutPositions } from "../model/positions.ts";

const shown = 50;

/** How a plan differs from the one before, one line a place: `step build: body, timeout`. Positions do not count. */
export function planChanges(before: Plan, now: Plan): string[] {
  const changes: string[] = [];
  if (before.root !== now.root) changes.push(`workflow: ${before.root} is now ${now.root}`);
  for (const [key, was, is] of pairs(before.workflows, now.workflows)) {
    const name = key === now.root || key === before.root ? "workflow" : `workflow ${key}`;
    if (was === undefined || is === undefined) {
      if (key !== before.root && key !== now.root) changes.push(`${name} ${is === undefined ? "removed" : "added"}`);
      continue;
    }
    const keys = differing(was, is, ["scope"]);
    if (keys.length > 0) changes.push(`${name}: ${keys.join(", ")}`);
    compareScopes(was.scope, is.scope, { at: key === now.root ? "" : `${key}: `, changes });
  }
  const [was, is] = [before.workflows[before.root], now.workflows[now.root]];
  if (before.root !== now.root && was && is) compareScopes(was.scope, is.scope, { at: "", changes });
  for (const [key, agent, other] of pairs(before.agents, now.agents)) {
    if (agent === undefined || other === undefined)
      changes.push(`agent ${key} ${other === undefined ? "removed" : "added"}`);
    else changes.push(...listed(`agent ${key}`, differing(agent, other, [])));
  }
  const rest = changes.length - shown;
  return rest > 0 ? [...changes.slice(0, shown), `and ${rest} more`] : changes;
}

interface Target {
  /** What stands before a step's path. */
  readonly at: string;
  readonly changes: string[];
}

function compareScopes(before: Scope, now: Scope, { at, changes }: Target): void {
  for (const [id, was, is] of pairs(byId(before), byId(now))) {
    const name = `step ${at}${id}`;
    if (was === undefined || is === undefined) {
      changes.push(`${name} ${is === undefined ? "removed" : "added"}`);
      continue;
    }
    changes.push(...listed(name, differing(was, is, ["scope"])));
    if (was.scope && is.scope && "inline" in was.scope && "inline" in is.scope)
      compareScopes(was.scope.inline, is.scope.inline, { at: `${at}${id}/`, changes });
    else if (!same(was.scope, is.scope)) changes.push(`${name}: scope`);
  }
  if (!same(edgesOf(before), edgesOf(now))) changes.push(`${at === "" ? "" : `${at} `}edges`);
  if (!same(before.outputs, now.outputs)) changes.push(`${at === "" ? "" : `${at} `}outputs`);
  const order = (scope: Scope): string[] => scope.steps.map(({ id }) => id);
  if (same(order(before).sort(), order(now).sort()) && !same(order(before), order(now)))
    changes.push(`${at === "" ? "" : `${at} `}order of the steps`);
}

function byId({ steps }: Scope): { readonly [id: string]: Step } {
  return Object.fromEntries(steps.map((step) => [step.id, step]));
}

/** By ids: a step that moved has other indexes. */
function edgesOf({ steps, edges }: Scope): unknown[] {
  const id = (index: number): string => steps[index]?.id ?? "";
  const named = edges.map(({ from, to, ...rest }) => ({ ...rest, from: id(from), to: id(to) }));
  return named.sort((a, b) => (`${a.to} ${a.from}` < `${b.to} ${b.from}` ? -1 : 1));
}

function listed(name: string, keys: readonly string[]): string[] {
  return keys.length === 0 ? [] : [`${name}: ${keys.join(", ")}`];
}

/** Keys whose values differ. */
function differing(before: object, now: object, except: readonly string[]): string[] {
  const [was, is] = [plain(before), plain(now)];
  if (!isJsonObject(was) || !isJsonObject(is)) return [];
  return pairs(was, is).flatMap(([key, a, b]) => (except.includes(key) || same(a, b) ? [] : [key]));
}

function pairs<T>(
  before: { readonly [key: string]: T },
  now: { readonly [key: string]: T },
): [key: string, before: T | undefined, now: T | undefined][] {
  const keys = new Set([...Object.keys(before), ...Object.keys(now)]);
  const at = (map: { readonly [key: string]: T }, key: string): T | undefined =>
    Object.hasOwn(map, key) ? map[key] : undefined;
  return [...keys].map((key) => [key, at(before, key), at(now, key)]);
}

function same(a: unknown, b: unknown): boolean {
  return canonicalJson(plain(a)) === canonicalJson(plain(b));
}

function plain(value: unknown): Json {
  return withoutPositions(value as Json);
}
