import type { Json } from "../model/json.ts";
import type { SeenValue } from "../model/outcome.ts";
import { err, ok, unreachable } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import type { AccessNode, At, CallNode, ContextNode, Node } from "./ast.ts";
import { catchFault, Fault } from "./error.ts";
import type { ExpressionError } from "./error.ts";
import { functionNamed } from "./functions.ts";
import { seenNodes } from "./inspect.ts";
import { fits, isLongerThan } from "./size.ts";
import type { ParsedExpression } from "./parse.ts";
import { describe, Refusal, shorten, tooLong } from "./refusal.ts";
import {
  entriesOf,
  Filtered,
  isEqual,
  isGreater,
  isLookup,
  isMissing,
  isObject,
  isTruthy,
  propertyOf,
  toJson,
  toNumber,
  toText,
} from "./value.ts";
import type { Item, Missing, Value } from "./value.ts";

export { lookup, missing } from "./value.ts";
export type { Lookup, Missing, Value } from "./value.ts";

/** What an expression sees. Nothing in it is copied or changed. */
export interface Scope {
  /** By name in lower case. A context that is absent has no value. */
  readonly contexts: { readonly [name: string]: Value };
  /** Absent where no status function is allowed. */
  readonly status?: StatusFunctions;
  /** Absent where `hashFiles` is not allowed. */
  readonly hashFiles?: (globs: readonly string[]) => Result<string, string>;
  /** Bytes of the JSON text of a result, and of any text that is read or made on the way to it; 1 MiB when absent. */
  readonly maxSize?: number;
}

export interface StatusFunctions {
  success(): boolean;
  failure(step?: string): boolean;
  always(): boolean;
  cancelled(): boolean;
}

/** Bytes, see {@link Scope}. */
export const defaultMaxSize: number = 1024 * 1024;

/** The value of an expression. It may share structure with the contexts: do not change it. */
export function evaluateExpression(parsed: ParsedExpression, scope: Scope): Result<Json, ExpressionError> {
  return catchFault(() => {
    const value = toJson(evaluate(parsed.root, scope));
    const refusal = fits(value, scope.maxSize ?? defaultMaxSize);
    if (refusal !== undefined) throw fault(parsed.root, refusal);
    return value;
  });
}

/** A condition is true or false; any other value is an error, for `'false'` is true and a missing number is 0. */
export function evaluateCondition(parsed: ParsedExpression, scope: Scope): Result<boolean, ExpressionError> {
  const result = evaluateExpression(parsed, scope);
  if (!result.ok) return result;
  const { value } = result;
  if (typeof value === "boolean") return ok(value);
  return err({
    kind: "evaluation",
    message: `A condition must be true or false, but this is ${describe(value)}`,
    offset: 0,
    length: parsed.source.length,
    suggestion: `Write a comparison, for example \`${comparisonWith(value, shorten(parsed.source.trim(), 60))}\`.`,
  });
}

function comparisonWith(value: Json, source: string): string {
  const tight = /^[\w.-]+$/.test(source) ? source : `(${source})`;
  if (typeof value === "string") return `${tight} == '${shorten(value, 40).replaceAll("'", "''")}'`;
  if (typeof value === "number") return `${tight} > 0`;
  return Array.isArray(value) ? `length(${source}) > 0` : `${tight} != null`;
}

/**
 * What a person needs to understand a result: every reference and status call in source order, once, with its value.
 * Long text is cut; large lists and objects are described.
 */
export function seenValues(parsed: ParsedExpression, scope: Scope): readonly SeenValue[] {
  return readValues(parsed, scope).map((seen) =>
    seen.value === undefined ? seen : { ...seen, value: preview(seen.value) },
  );
}

/** The same, with the values as they are. */
export function readValues(parsed: ParsedExpression, scope: Scope): readonly SeenValue[] {
  const seen = new Map<string, SeenValue>();
  for (const node of seenNodes(parsed.root)) {
    const expression = parsed.source.slice(node.offset, node.offset + node.length);
    if (seen.has(expression)) continue;
    const value = catchFault(() => toJson(evaluate(node, scope)));
    seen.set(expression, value.ok ? { expression, value: value.value } : { expression });
  }
  return [...seen.values()];
}

function preview(value: Json): Json {
  if (typeof value === "string") return shorten(value, 200);
  if (fits(value, 200) === undefined) return value;
  return Array.isArray(value) ? `(a list of ${value.length} items)` : "(a large object)";
}

function evaluate(node: Node, scope: Scope): Item {
  switch (node.type) {
    case "literal":
      return node.value;
    case "context":
      return contextOf(node, scope);
    case "property":
      return present(node, member(evaluate(node.object, scope), node.name), scope);
    case "index":
      return present(node, member(evaluate(node.object, scope), evaluate(node.index, scope)), scope);
    case "star":
      return new Filtered(itemsOf(evaluate(node.object, scope)));
    case "call":
      return call(node, scope);
    case "not":
      return !isTruthy(evaluate(node.operand, scope));
    case "logical":
      return logical(node.operands, node.operator === "||", scope);
    case "compare":
      return compare(node, evaluate(node.left, scope), evaluate(node.right, scope));
    default:
      return unreachable(node);
  }
}

function contextOf(node: ContextNode, { contexts }: Scope): Item {
  const known = Object.hasOwn(contexts, node.name);
  const name = known ? node.name : Object.keys(contexts).find((candidate) => candidate.toLowerCase() === node.name);
  return name === undefined ? noValue(node, `\`${node.name}\` has no value here`) : (contexts[name] ?? null);
}

/** Null for what does not exist, as in GitHub's language; an error for what should exist. */
function present(node: AccessNode, value: Item | Missing | undefined, { maxSize = defaultMaxSize }: Scope): Item {
  if (value === undefined) return null;
  const read = value instanceof Filtered ? value.items : [value];
  const isTooLong = read.some((text) => typeof text === "string" && isLongerThan(text, maxSize));
  if (isTooLong && rootOf(node) !== "inputs") throw fault(node, unread(node, maxSize));
  if (value instanceof Filtered || !isMissing(value)) return value;
  return noValue(node, value.reason);
}

/** The context that is read, if it is one. */
function rootOf({ object }: AccessNode): string | undefined {
  if (object.type === "property" || object.type === "index" || object.type === "star") return rootOf(object);
  return object.type === "context" ? object.name : undefined;
}

/**
 * So long an output may have lost its middle when it was captured: what is left must not be judged as the whole. An error
 * that `default(…)` does not hide, for the value is there. What somebody gave as an input is whole.
 */
function unread(node: AccessNode, limit: number): Refusal {
  const name = node.type === "property" ? `\`${node.name}\`` : "This";
  const message = `${name} is a text of more than ${limit} bytes, which no expression reads (the middle of long output is left out); write it to a file and read that`;
  return new Refusal(message, "limit");
}

function noValue({ offset, length }: At, reason: string): never {
  throw new Fault({ kind: "missing", message: reason, offset, length });
}

function member(object: Item, key: Item): Item | Missing | undefined {
  if (object instanceof Filtered) return filteredMember(object, key);
  // No list has an item at NaN, Infinity or -1.
  if (Array.isArray(object)) return object[Math.floor(toNumber(key))];
  if (!isObject(object) || isContainer(key)) return undefined;
  return propertyOf(object, typeof key === "string" ? key : toText(key));
}

function filteredMember(filtered: Filtered, key: Item): Filtered {
  const found: Value[] = [];
  for (const item of filtered.items) {
    const value = member(item, key);
    if (value !== undefined && !(value instanceof Filtered) && !isMissing(value)) found.push(value);
  }
  return new Filtered(found);
}

function isContainer(item: Item): boolean {
  return typeof item === "object" && item !== null;
}

function itemsOf(item: Item): readonly Value[] {
  if (Array.isArray(item)) return item;
  if (item instanceof Filtered) {
    const items: Value[] = [];
    for (const inner of item.items) for (const value of itemsOf(inner)) items.push(value);
    return items;
  }
  if (!isObject(item)) return [];
  return isLookup(item) ? entriesOf(item).map(([, value]) => value) : Object.values(item);
}

function logical(operands: readonly Node[], until: boolean, scope: Scope): Item {
  let value: Item = null;
  for (const operand of operands) {
    value = evaluate(operand, scope);
    if (isTruthy(value) === until) break;
  }
  return value;
}

function compare({ operator }: Node & { readonly type: "compare" }, left: Item, right: Item): boolean {
  switch (operator) {
    case "==":
      return isEqual(left, right);
    case "!=":
      return !isEqual(left, right);
    case ">":
      return isGreater(left, right);
    case ">=":
      return isEqual(left, right) || isGreater(left, right);
    case "<":
      return isGreater(right, left);
    case "<=":
      return isEqual(left, right) || isGreater(right, left);
    default:
      return unreachable(operator);
  }
}

function call(node: CallNode, scope: Scope): Item {
  switch (node.name) {
    case "default":
      return firstPresent(node.args, scope);
    case "case":
      return firstTrue(node.args, scope);
    case "success":
    case "failure":
    case "always":
    case "cancelled":
      return status(node, node.name, scope);
    case "hashfiles":
      return hashFiles(node, scope);
    default:
      return apply(node, scope);
  }
}

/** `default(a, b, …)`: the first argument that has a value and is not null. Any other error in one still counts. */
function firstPresent(args: readonly Node[], scope: Scope): Item {
  for (const arg of args) {
    try {
      const value = evaluate(arg, scope);
      if (value !== null) return value;
    } catch (thrown) {
      if (!(thrown instanceof Fault) || thrown.error.kind !== "missing") throw thrown;
    }
  }
  return null;
}

/** `case(condition, value, …, otherwise)`: only the conditions up to the first true one, and its value, are evaluated. */
function firstTrue(args: readonly Node[], scope: Scope): Item {
  const last = args.length - 1;
  for (const [index, arg] of args.entries()) {
    if (index === last) return evaluate(arg, scope);
    if (index % 2 === 1) continue;
    const holds = evaluate(arg, scope);
    if (typeof holds !== "boolean") throw fault(arg, new Refusal("case predicate must evaluate to a boolean value"));
    const value = args[index + 1];
    if (holds && value !== undefined) return evaluate(value, scope);
  }
  return null;
}

function status(node: CallNode, name: keyof StatusFunctions, scope: Scope): boolean {
  if (scope.status === undefined) throw fault(node, new Refusal(`${name}() is not allowed here`));
  if (name !== "failure") return scope.status[name]();
  const [step] = node.args.map((arg) => toJson(evaluate(arg, scope)));
  if (step === undefined) return scope.status.failure();
  if (typeof step !== "string") {
    throw fault(node, new Refusal(`failure() takes the id of a step, not ${describe(step)}`));
  }
  return scope.status.failure(step);
}

function hashFiles(node: CallNode, scope: Scope): string {
  if (scope.hashFiles === undefined) throw fault(node, new Refusal("hashFiles() is not allowed here"));
  const globs = node.args.map((arg) => {
    const glob = toJson(evaluate(arg, scope));
    if (typeof glob === "string") return glob;
    throw fault(arg, new Refusal(`hashFiles() takes file patterns, not ${describe(glob)}`));
  });
  const hash = scope.hashFiles(globs);
  if (!hash.ok) throw fault(node, new Refusal(hash.error));
  return hash.value;
}

function apply(node: CallNode, scope: Scope): Json {
  const limit = scope.maxSize ?? defaultMaxSize;
  const args = node.args.map((arg) => toJson(evaluate(arg, scope)));
  const signature = functionNamed(node.name);
  const result = signature?.call?.(args, limit) ?? null;
  if (result instanceof Refusal) throw fault(node, result);
  if (typeof result === "string" && isLongerThan(result, limit)) {
    throw fault(node, tooLong(signature?.name ?? node.name, limit));
  }
  return result;
}

function fault({ offset, length }: At, { kind, message }: Refusal): Fault {
  return new Fault({ kind, message, offset, length });
}
