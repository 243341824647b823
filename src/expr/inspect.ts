import { unreachable } from "../model/result.ts";
import type { AccessNode, CallNode, ContextNode, Node } from "./ast.ts";
import { functionNamed, isStatusFunction } from "./functions.ts";
import type { StaticType } from "./signature.ts";
import type { ParsedExpression } from "./parse.ts";
import { kindOf } from "./value.ts";

export type { StaticType } from "./signature.ts";

/** A context and the longest chain of accesses on it. Positions cover what is written, brackets and quotes included. */
export interface Reference {
  /** In lower case. */
  readonly context: string;
  readonly path: readonly Segment[];
  readonly offset: number;
  readonly length: number;
  /** Inside an argument of `default(…)`, at any depth: it may be without a value. */
  readonly guarded: boolean;
}

/** `.name` and `['name']` are names, as written; an index is computed or a number. */
export type Segment =
  | { readonly kind: "name"; readonly name: string; readonly offset: number; readonly length: number }
  | { readonly kind: "index"; readonly value?: number }
  | { readonly kind: "star" };

export interface Call {
  /** In lower case. */
  readonly name: string;
  /** The whole call. */
  readonly offset: number;
  readonly length: number;
  /** The text of each argument that is a string literal. */
  readonly args: readonly (string | undefined)[];
  /** Where each argument stands. */
  readonly places: readonly { readonly offset: number; readonly length: number }[];
}

/** A reference compared with a string literal by `==`, on either side. */
export interface Comparison {
  readonly reference: Reference;
  readonly text: string;
  readonly offset: number;
  readonly length: number;
}

/** Every reference, in source order; one inside an index of another follows it. */
export function references(parsed: ParsedExpression): readonly Reference[] {
  const found: Reference[] = [];
  walk(parsed.root, false, (node, guarded) => {
    const reference = isChain(node) ? referenceOf(node, guarded) : undefined;
    if (reference !== undefined) found.push(reference);
  });
  return found;
}

/** Every function call, in source order. */
export function calls(parsed: ParsedExpression): readonly Call[] {
  const found: Call[] = [];
  walk(parsed.root, false, (node) => {
    if (node.type === "call") found.push(callOf(node));
  });
  return found;
}

function callOf({ name, offset, length, args }: CallNode): Call {
  const texts = args.map((arg) => (arg.type === "literal" && typeof arg.value === "string" ? arg.value : undefined));
  return { name, offset, length, args: texts, places: args };
}

/** Every `reference == 'text'`, in source order, whichever side the text is on. */
export function comparisons(parsed: ParsedExpression): readonly Comparison[] {
  const found: Comparison[] = [];
  walk(parsed.root, false, (node, guarded) => {
    if (node.type !== "compare" || node.operator !== "==") return;
    const sides = [node.left, node.right];
    const chain = sides.find(isChain);
    const literal = sides.find((side) => side.type === "literal");
    const reference = chain && referenceOf(chain, guarded);
    if (reference === undefined || typeof literal?.value !== "string") return;
    found.push({ reference, text: literal.value, offset: node.offset, length: node.length });
  });
  return found;
}

/** True when the result can never change: no reference, no status function, no `hashFiles`. */
export function isConstant(parsed: ParsedExpression): boolean {
  const changing = ({ name }: Call): boolean => isStatusFunction(name) || name === "hashfiles";
  return references(parsed).length === 0 && !calls(parsed).some(changing);
}

export function usesStatus(parsed: ParsedExpression): boolean {
  return calls(parsed).some(({ name }) => isStatusFunction(name));
}

/** The type every result has, as far as it can be known; `typeOf` knows the contexts. */
export function staticType(parsed: ParsedExpression, typeOf: (reference: Reference) => StaticType): StaticType {
  return typeOfNode(parsed.root, typeOf);
}

/** For `seenValues`: references and status calls in source order. */
export function seenNodes(root: Node): readonly Node[] {
  const found: Node[] = [];
  walk(root, false, (node) => {
    const status = node.type === "call" && isStatusFunction(node.name);
    if (status || (isChain(node) && referenceOf(node, false) !== undefined)) found.push(node);
  });
  return found;
}

/** Visits calls, and of each chain of accesses only its longest form, from left to right. */
function walk(node: Node, guarded: boolean, visit: (node: Node, guarded: boolean) => void): void {
  visit(node, guarded);
  const inside = guarded || (node.type === "call" && node.name === "default");
  for (const part of partsOf(node)) walk(part, inside, visit);
}

function partsOf(node: Node): readonly Node[] {
  switch (node.type) {
    case "literal":
    case "context":
      return [];
    case "property":
    case "index":
    case "star":
      return chainParts(node);
    case "call":
      return node.args;
    case "not":
      return [node.operand];
    case "logical":
      return node.operands;
    case "compare":
      return [node.left, node.right];
    default:
      return unreachable(node);
  }
}

/** What a chain hangs on, unless that is a context, and what is computed inside its brackets. */
function chainParts(chain: AccessNode): readonly Node[] {
  const indexes: Node[] = [];
  let base: Node = chain;
  while (isAccess(base)) {
    if (base.type === "index") indexes.unshift(base.index);
    base = base.object;
  }
  return base.type === "context" ? indexes : [base, ...indexes];
}

function isAccess(node: Node): node is AccessNode {
  return node.type === "property" || node.type === "index" || node.type === "star";
}

function isChain(node: Node): node is AccessNode | ContextNode {
  return node.type === "context" || isAccess(node);
}

/** Undefined for a chain on something else than a context: `fromJSON(…).a`. */
function referenceOf(chain: AccessNode | ContextNode, guarded: boolean): Reference | undefined {
  const path: Segment[] = [];
  let base: Node = chain;
  while (isAccess(base)) {
    path.unshift(segmentOf(base));
    base = base.object;
  }
  if (base.type !== "context") return undefined;
  return { context: base.name, path, offset: chain.offset, length: chain.length, guarded };
}

function segmentOf(access: AccessNode): Segment {
  switch (access.type) {
    case "property":
      return { kind: "name", name: access.name, offset: access.nameOffset, length: access.nameLength };
    case "star":
      return { kind: "star" };
    case "index": {
      const { index } = access;
      if (index.type !== "literal" || typeof index.value !== "number") return { kind: "index" };
      return { kind: "index", value: index.value };
    }
    default:
      return unreachable(access);
  }
}

function typeOfNode(node: Node, typeOf: (reference: Reference) => StaticType): StaticType {
  switch (node.type) {
    case "literal":
      return kindOf(node.value);
    case "not":
    case "compare":
      return "boolean";
    case "logical":
      return common(node.operands.map((operand) => typeOfNode(operand, typeOf)));
    case "call":
      return typeOfCall(node, typeOf);
    case "context":
    case "property":
    case "index":
    case "star":
      return typeOfChain(node, typeOf);
    default:
      return unreachable(node);
  }
}

/** Everything after a `*` is a list. */
function typeOfChain(chain: AccessNode | ContextNode, typeOf: (reference: Reference) => StaticType): StaticType {
  for (let node: Node = chain; isAccess(node); node = node.object) if (node.type === "star") return "array";
  const reference = referenceOf(chain, false);
  return reference === undefined ? "unknown" : typeOf(reference);
}

function typeOfCall({ name, args }: CallNode, typeOf: (reference: Reference) => StaticType): StaticType {
  const type = functionNamed(name)?.type ?? "unknown";
  if (type !== "branches") return type;
  const last = args.at(-1);
  // A `default` that ends in a reference may find no value at all and is null then.
  if (name === "default" && (last === undefined || isChain(last))) return "unknown";
  const isBranch = (index: number): boolean => name !== "case" || index % 2 === 1 || index === args.length - 1;
  return common(args.filter((_, index) => isBranch(index)).map((arg) => typeOfNode(arg, typeOf)));
}

function common(types: readonly StaticType[]): StaticType {
  const [first = "unknown", ...others] = types;
  return others.every((type) => type === first) ? first : "unknown";
}
