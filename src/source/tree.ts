import { isAlias, isCollection, isMap, isNode, isScalar } from "yaml";
import type { Alias, Node, Pair, Scalar, YAMLMap, YAMLSeq } from "yaml";
import type { Code } from "../model/codes.ts";
import type { Span } from "../model/diagnostic.ts";
import type { ListNode, MapEntry, MapNode, ScalarNode, ScalarStyle, SourceNode } from "./node.ts";
import type { Positions } from "./positions.ts";
import { keyProblem, scalarProblem, scalarValue } from "./values.ts";
import { maxDepth } from "./scan.ts";
import { shown } from "./refusals.ts";
import { maxProblems } from "./text.ts";
import type { Problem } from "./text.ts";

/** Pairs a mapping may have. */
const maxPairs = 100_000;
/** Nodes of the document with every alias counted as often as it is used. */
const maxNodes = 1_000_000;
/** Maps up to this size are searched pair by pair. */
const smallMap = 8;

/** Our own nodes from the library's; everything that is wrong with keys, aliases and values goes to `problems`. */
export function buildTree(root: Node | null, positions: Positions, problems: Problem[]): SourceNode {
  return build(root, positions.text.length, { positions, problems, anchors: new Map(), nodes: 0, deepest: 0 });
}

interface Building {
  readonly positions: Positions;
  readonly problems: Problem[];
  /** The latest of each name; null while its own value is being built. */
  readonly anchors: Map<string, Anchored | null>;
  nodes: number;
  /** The greatest depth seen since it was last set. */
  deepest: number;
}

interface Anchored {
  readonly node: SourceNode;
  readonly nodes: number;
  readonly height: number;
}

/** `end` is where an absent node stands. */
function build(node: Node | null, end: number, building: Building, depth = 0): SourceNode {
  building.nodes++;
  if (depth > building.deepest) building.deepest = depth;
  if (isAlias(node)) return follow(node, depth, building);
  if (!isScalar(node) && !isCollection(node)) return empty(end, building);
  const name = node.anchor;
  if (name === undefined) return bare(node, depth, building);
  const { nodes, deepest } = building;
  building.anchors.set(name, null);
  building.deepest = depth;
  const built = bare(node, depth, building);
  if (building.anchors.get(name) === null)
    building.anchors.set(name, { node: built, nodes: building.nodes - nodes, height: building.deepest - depth });
  building.deepest = Math.max(building.deepest, deepest);
  return built;
}

function bare(node: Scalar | YAMLMap | YAMLSeq, depth: number, building: Building): SourceNode {
  if (isScalar(node)) return scalar(node, building);
  return isMap(node) ? map(node, depth, building) : list(node, depth, building);
}

function follow(alias: Alias, depth: number, building: Building): SourceNode {
  const [from, to] = range(alias);
  const target = building.anchors.get(alias.source);
  const refuse = (message: string, code: Code = "FLOW1009"): SourceNode => {
    report(building, { code, message, from, to });
    return empty(from, building);
  };
  if (target === undefined) return refuse(`the alias ${shown(`*${alias.source}`)} has no anchor before it`);
  if (target === null) return refuse(`the alias ${shown(`*${alias.source}`)} refers to the value it stands in`);
  if (building.nodes > maxNodes) return empty(from, building);
  building.nodes += target.nodes;
  building.deepest = Math.max(building.deepest, depth + target.height);
  if (building.nodes > maxNodes)
    return refuse(`with its aliases written out the document would have more than ${maxNodes} values`);
  if (depth + target.height > maxDepth)
    return refuse("with this alias written out the document is nested too deep", "FLOW1010");
  return target.node;
}

function map(node: YAMLMap, depth: number, building: Building): MapNode {
  const [from, to] = range(node);
  const at = building.positions.firstLine(from, to);
  const entries: MapEntry[] = [];
  const index = node.items.length > smallMap ? new Map<string, MapEntry>() : undefined;
  if (node.items.length > maxPairs) {
    const message = `this mapping has ${node.items.length} entries; at most ${maxPairs} are allowed`;
    report(building, { code: "FLOW1015", message, from, to: from });
    return { kind: "map", entries, at };
  }
  for (const pair of node.items) {
    const built = mapEntry(pair, depth, building);
    if (built === undefined) continue;
    const first = index === undefined ? entries.find(({ key }) => key === built.key) : index.get(built.key);
    if (first !== undefined) {
      report(building, keyTwice(pair, built.key, first.keyAt));
      continue;
    }
    entries.push(built);
    index?.set(built.key, built);
  }
  return index === undefined ? { kind: "map", entries, at } : { kind: "map", entries, at, index };
}

/** Undefined for a key that is no text, which the parser has already refused. */
function mapEntry(pair: Pair, depth: number, building: Building): MapEntry | undefined {
  const { key } = pair;
  if (!isScalar(key) || typeof key.value !== "string") return undefined;
  const [from, to] = range(key);
  const problem = keyProblem({ key: key.value, plain: key.type === "PLAIN", from, to });
  if (problem !== undefined) report(building, problem);
  return {
    key: key.value,
    keyAt: building.positions.span(from, to),
    value: build(nodeOf(pair.value), to, building, depth + 1),
  };
}

function keyTwice(pair: Pair, key: string, first: Span): Problem {
  const [from, to] = isScalar(pair.key) ? range(pair.key) : [0, 0];
  return {
    code: "FLOW1011",
    message: `the key ${shown(key)} stands twice in this mapping`,
    from,
    to,
    related: { message: "the first is here", at: first },
    suggestion: "Remove or rename one of them.",
  };
}

function list(node: YAMLSeq, depth: number, building: Building): ListNode {
  const [from, to] = range(node);
  const at = building.positions.firstLine(from, to);
  return { kind: "list", items: node.items.map((item) => build(nodeOf(item), to, building, depth + 1)), at };
}

const styles: Readonly<Record<Scalar.Type, ScalarStyle>> = {
  PLAIN: "plain",
  QUOTE_SINGLE: "single",
  QUOTE_DOUBLE: "double",
  BLOCK_LITERAL: "literal",
  BLOCK_FOLDED: "folded",
};

function scalar(node: Scalar, building: Building): ScalarNode {
  const { positions } = building;
  const style = styles[node.type ?? "PLAIN"];
  const [start, end] = range(node);
  const block = style === "literal" || style === "folded";
  const [from, to] = block ? below(positions, start, end) : style === "plain" ? [start, end] : [start + 1, end - 1];
  const problem = scalarProblem({ value: node.value, raw: () => positions.text.slice(from, to), style, from, to });
  if (problem !== undefined) report(building, problem);
  const value = scalarValue(node.value);
  return { kind: "scalar", value, style, at: positions.span(start, block ? to : end), from, to };
}

/** The lines of a block scalar, without the line of its `|` and the empty ones at its end. */
function below(positions: Positions, start: number, end: number): [from: number, to: number] {
  const { text } = positions;
  const header = positions.lineEnd(start);
  const from = Math.min(end, header + (text[header] === "\r" ? 2 : 1));
  let to = end;
  while (to > from && (text[to - 1] === "\n" || text[to - 1] === "\r")) to--;
  return [from, to];
}

/** A value that is absent (`key:`) stands behind its key and is null. */
function empty(at: number, building: Building): ScalarNode {
  return { kind: "scalar", value: null, style: "plain", at: building.positions.span(at, at), from: at, to: at };
}

function range(node: Node): readonly [from: number, to: number] {
  const [from = 0, to = 0] = node.range ?? [];
  return [from, to];
}

/** The library types the parts of a composed document as unknown. */
function nodeOf(value: unknown): Node | null {
  return isNode(value) ? value : null;
}

function report(building: Building, problem: Problem): void {
  if (building.problems.length < maxProblems) building.problems.push(problem);
}
