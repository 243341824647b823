import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import { covers, inLowerCase, type Symbols, symbolsOf, wildcardsOf } from "./pattern.ts";
import type { Place } from "./place.ts";
import type { Decision, Layer, Rule } from "./rule.ts";
import { namePatterns, pathPatterns, saysNothing, subjectKind, urlPatterns } from "./subjects.ts";
import { commandPatterns, type IsSecret } from "./words.ts";

/** What rules are read with; handed in by who knows the tools. */
export interface Vocabulary {
  /** Every tool by its canonical name, those that only the workflow has among them. */
  readonly tools: readonly string[];
  readonly canonical: (name: string) => string | undefined;
  readonly isSecret: IsSecret;
}

/** A `permissions:` block as it was written, and where it stands. */
export interface Block {
  readonly layer: Layer;
  readonly permissions: Json;
  /** What it says widens nothing that is written below it: whoever calls an agent or a workflow has the last word. */
  readonly bounded?: boolean;
  /** With `bounded`: it does not even widen what holds where nothing is written. */
  readonly narrows?: boolean;
  readonly file?: string;
  /** The line of a rule by its place in the block: `Bash`, `Bash/git *`, `deny/0`. */
  readonly lines?: { readonly [place: string]: number };
}

/** A rule that is no rule, or that can never hold. */
export interface RuleProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly suggestion?: string;
  /** It cannot be read at all; otherwise it is only useless. */
  readonly broken: boolean;
}

export interface Notation {
  readonly rules: readonly Rule[];
  readonly problems: readonly RuleProblem[];
}

/** Names for several tools at once: what an agent may do, whatever it does it with. */
const groups: { readonly [name: string]: readonly string[] } = {
  "modify-files": ["Write", "Edit"],
  "execute-commands": ["Bash"],
  network: ["WebFetch"],
  spawn: ["Task"],
};
/** What a rule for one tool says of others that do the same, as Claude Code and OpenCode read it. */
const families: { readonly [name: string]: readonly string[] } = {
  Read: ["Read", "Grep", "Glob", "LS"],
  Edit: ["Edit", "Write"],
};
export const groupNames: readonly string[] = Object.keys(groups);

/** Reads both notations. In lists `ask` stands after `allow`, and `deny` is final. */
export function readRules(block: Block, vocabulary: Vocabulary, place: Place): Notation {
  const rules: Rule[] = [];
  const problems: RuleProblem[] = [];
  const blockOf = isJsonObject(block.permissions) ? block.permissions : {};
  const add = (written: Written): void => {
    const { layer, file } = block;
    const line = block.lines?.[written.path.join("/")];
    const within = block.bounded === true && { within: block };
    const source = { layer, ...within, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
    const rule = readRule(written, { vocabulary, place, problems });
    if (rule) rules.push({ ...rule, ...source });
  };
  for (const written of [...inMap(blockOf), ...inLists(blockOf, problems)]) add(written);
  return { rules, problems };
}

interface Written {
  readonly path: readonly (string | number)[];
  readonly tool: string;
  readonly pattern?: string;
  readonly decision: Decision;
  readonly final: boolean;
}

const lists = ["allow", "ask", "deny"] as const;

function inMap(block: JsonObject): Written[] {
  return Object.entries(block).flatMap(([tool, value]): Written[] => {
    if (lists.some((list) => list === tool)) return [];
    if (isDecision(value)) return [{ path: [tool], tool, decision: value, final: false }];
    const patterns = isJsonObject(value) ? Object.entries(value) : [];
    return patterns.flatMap(([pattern, decision]) =>
      isDecision(decision) ? [{ path: [tool, pattern], tool, pattern, decision, final: false }] : [],
    );
  });
}

function isDecision(value: Json): value is Decision {
  return value === "allow" || value === "ask" || value === "deny";
}

function inLists(block: JsonObject, problems: RuleProblem[]): Written[] {
  return lists.flatMap((decision) => {
    const list = own(block, decision);
    if (!Array.isArray(list)) return [];
    return list.flatMap((text, index): Written[] => {
      const path = [decision, index];
      const split = typeof text === "string" ? splitRule(text) : undefined;
      if (split) return [{ path, ...split, decision, final: decision === "deny" }];
      const suggestion = "write `Tool` or `Tool(pattern)`, such as `Bash(git *)`";
      problems.push({ path, message: `${JSON.stringify(text)} is not a rule`, suggestion, broken: true });
      return [];
    });
  });
}

/** `Bash(git *)` and `Bash(git:*)` are one rule. Undefined for a text that is none. */
export function splitRule(text: string): { readonly tool: string; readonly pattern?: string } | undefined {
  const trimmed = text.trim();
  const open = trimmed.indexOf("(");
  if (open === -1) return /^[^\s()]+$/.test(trimmed) ? { tool: trimmed } : undefined;
  const tool = trimmed.slice(0, open);
  if (!/^[^\s()]+$/.test(tool) || !trimmed.endsWith(")")) return undefined;
  return { tool, pattern: trimmed.slice(open + 1, -1) };
}

interface Reading {
  readonly vocabulary: Vocabulary;
  readonly place: Place;
  readonly problems: RuleProblem[];
}

function readRule(written: Written, reading: Reading): Omit<Rule, "layer"> | undefined {
  const { path, tool, pattern, decision, final } = written;
  const { vocabulary, problems } = reading;
  const named = namedTools(tool, vocabulary);
  const text = pattern === undefined ? tool : `${tool}(${pattern})`;
  const base = { decision, text, concerns: named.concerns, final };
  const useless = (message: string, suggestion?: string): undefined => {
    problems.push({ path, message, ...(suggestion !== undefined && { suggestion }), broken: false });
  };
  if (named.tools.length === 0 && !named.foreign) {
    const near = nearest(tool, [...vocabulary.tools, ...groupNames]);
    return useless(
      `the rule \`${text}\` never holds: there is no tool \`${tool}\``,
      near === undefined ? undefined : `did you mean \`${near}\`?`,
    );
  }
  const kinds = new Set(named.tools.map(subjectKind));
  const isEvery = pattern === undefined || (saysNothing(pattern) && (decision !== "allow" || !kinds.has("path")));
  if (isEvery) return base;
  const patterns = patternsOf(pattern, kinds, reading);
  // Some file systems ignore case: what is forbidden is forbidden in any.
  const folded = decision === "allow" || !kinds.has("path") ? [] : patterns.map(inLowerCase);
  if (patterns.length > 0) return { ...base, patterns: [...patterns, ...folded] };
  return useless(
    `the rule \`${text}\` never holds: calls of \`${tool}\` are not told apart by a pattern`,
    `write \`${tool}\` alone`,
  );
}

interface Named {
  readonly tools: readonly string[];
  /** It may name a tool of an MCP server, which is not known yet. */
  readonly foreign: boolean;
  readonly concerns: (tool: string) => boolean;
}

function namedTools(name: string, { tools, canonical }: Vocabulary): Named {
  const group = Object.hasOwn(groups, name) ? groups[name] : undefined;
  if (group) return { tools: group, foreign: false, concerns: (tool) => group.includes(tool) };
  if (/[*?]/.test(name)) {
    const wildcards = wildcardsOf(name);
    const concerns = (tool: string): boolean => covers(wildcards, symbolsOf(tool));
    return { tools: tools.filter(concerns), foreign: name.startsWith("mcp__") || name.startsWith("*"), concerns };
  }
  // A server's name alone speaks of all its tools.
  if (name.startsWith("mcp__")) {
    const concerns = (tool: string): boolean => tool === name || tool.startsWith(`${name}__`);
    return { tools: [], foreign: true, concerns };
  }
  const known = tools.includes(name) ? name : canonical(name);
  if (known === undefined) return { tools: [], foreign: false, concerns: () => false };
  const family = Object.hasOwn(families, known) ? (families[known] ?? [known]) : [known];
  return { tools: family, foreign: false, concerns: (tool) => family.includes(tool) };
}

function patternsOf(
  pattern: string,
  kinds: ReadonlySet<ReturnType<typeof subjectKind>>,
  { vocabulary, place }: Reading,
): Symbols[] {
  const text = pattern.trim();
  return [
    ...(kinds.has("command") ? commandPatterns(text.replace(/:\*$/, " *"), vocabulary.isSecret) : []),
    ...(kinds.has("path") ? pathPatterns(text, place) : []),
    ...(kinds.has("url") ? urlPatterns(text) : []),
    ...(kinds.has("name") ? namePatterns(text) : []),
  ];
}
