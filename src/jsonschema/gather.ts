import type { ErrorObject } from "ajv";
import { isJsonObject, own } from "../model/json.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { branchesOf, describe, jsonType, requiredKeys } from "./describe.ts";
import { mostIssues } from "./issue.ts";
import type { SchemaIssue } from "./issue.ts";

/** Turns ajv's errors (made with `verbose`) about `value` into at most 1,000 issues, one for each thing to repair. */
export function toIssues(errors: readonly ErrorObject[], value: Json, schema: JsonObject): readonly SchemaIssue[] {
  const nameReasons = new Map<string, ErrorObject>();
  const byPlace = new Map<string, Map<string, SchemaIssue>>();
  const choices = new Set(errors.filter((one) => requiredKeys(one) !== undefined).map((one) => one.instancePath));
  let count = 0;
  for (const error of withoutBranches(errors)) {
    if (error.schemaPath.includes("/oneOf/") && error.keyword === "required" && choices.has(error.instancePath))
      continue;
    if (error.propertyName !== undefined) nameReasons.set(nameKey(error, error.propertyName), error);
    else if (count < mostIssues) {
      const reason = nameReasons.get(nameKey(error, String(error.params["propertyName"])));
      const path = pathOf(error.instancePath, value);
      const said = describe({ error, reason, path, schema });
      if (said !== undefined) count += add(byPlace, error.instancePath, { path, ...said });
    }
  }
  return [...byPlace.values()].flatMap((place) => [...place.values()]);
}

/** Keeps one issue per message, and where the type is wrong nothing else about the same value: the widest type. */
function add(byPlace: Map<string, Map<string, SchemaIssue>>, at: string, issue: SchemaIssue): number {
  const place = byPlace.get(at) ?? new Map<string, SchemaIssue>();
  byPlace.set(at, place);
  const before = place.size;
  const [only] = place.values();
  if (only?.problem.kind === "type") {
    const wider = issue.problem.kind === "type" && issue.problem.expected.length > only.problem.expected.length;
    if (wider) byPlace.set(at, new Map([[issue.message, issue]]));
    return 0;
  }
  if (issue.problem.kind === "type") place.clear();
  if (issue.problem.kind === "choice") dropUnknown(place);
  if (issue.problem.kind === "unknown_key" && hasChoice(place)) return 0;
  place.set(issue.message, issue);
  return place.size - before;
}

/** With two kinds in one step, each kind calls the other's keys unknown: what to say is only that there are two. */
function dropUnknown(place: Map<string, SchemaIssue>): void {
  for (const [message, issue] of place) if (issue.problem.kind === "unknown_key") place.delete(message);
}

function hasChoice(place: Map<string, SchemaIssue>): boolean {
  return [...place.values()].some((issue) => issue.problem.kind === "choice");
}

/**
 * An `anyOf` or `oneOf` that failed brings the errors of all its branches just before its own. What stays is what the
 * branch for the value's type says, when there is exactly one; else the only thing that is wrong beside the type, or
 * the types of all branches; else the `anyOf` itself.
 */
function withoutBranches(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    const failed = isAlternative(error) && !error.params["passingSchemas"];
    const dropped = failed ? kept.splice(firstOfBranches(kept, error)) : [];
    // No spread into push: a flood of errors is more arguments than the stack takes.
    for (const one of failed ? instead(error, dropped) : [error]) kept.push(one);
  }
  return kept;
}

function isAlternative(error: ErrorObject): boolean {
  return (error.keyword === "anyOf" || error.keyword === "oneOf") && requiredKeys(error) === undefined;
}

function instead(error: ErrorObject, dropped: readonly ErrorObject[]): readonly ErrorObject[] {
  const branch = onlyBranchFor(error);
  if (branch !== undefined) {
    const prefix = `${error.schemaPath}/${branch}/`;
    const deeper = (one: ErrorObject): boolean => one.instancePath !== error.instancePath;
    const chosen = dropped.filter((one) => one.schemaPath.startsWith(prefix) || deeper(one));
    if (chosen.length > 0) return chosen;
  }
  const others = dropped.filter((one) => one.keyword !== "type" || one.instancePath !== error.instancePath);
  if (others.length === 1) return others;
  if (others.length > 0 || dropped.length === 0) return [error];
  const types = new Set(dropped.flatMap((one) => one.params["type"]));
  return [{ ...error, keyword: "type", params: { type: [...types] } }];
}

/** The index of the first error that a branch of `alternative` may have brought. */
function firstOfBranches(kept: readonly ErrorObject[], alternative: ErrorObject): number {
  const references = branchesOf(alternative).some((branch) => isJsonObject(branch) && Object.hasOwn(branch, "$ref"));
  let start = kept.length;
  while (start > 0) {
    const error = kept[start - 1];
    if (error === undefined || error.parentSchema === alternative.parentSchema) break;
    const inside = `${error.instancePath}/`.startsWith(`${alternative.instancePath}/`);
    const inline = error.schemaPath.startsWith(`${alternative.schemaPath}/`);
    if (!inside || (!inline && !references)) break;
    start--;
  }
  return start;
}

function onlyBranchFor(error: ErrorObject): number | undefined {
  const type = jsonType(error.data);
  const fitting = branchesOf(error).flatMap((branch, index) => {
    const types = isJsonObject(branch) ? [own(branch, "type") ?? []].flat() : [];
    return types.includes(type) || (type === "integer" && types.includes("number")) ? [index] : [];
  });
  return fitting.length === 1 ? fitting[0] : undefined;
}

function nameKey(error: ErrorObject, name: string): string {
  return `${error.instancePath}\n${name}`;
}

/** Reads ajv's JSON pointer; the value tells which parts are indexes. */
function pathOf(pointer: string, value: Json): readonly (string | number)[] {
  const path: (string | number)[] = [];
  let at: Json | undefined = value;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(at)) {
      path.push(Number(key));
      at = at[Number(key)];
    } else {
      path.push(key);
      at = isJsonObject(at) ? own(at, key) : undefined;
    }
  }
  return path;
}
