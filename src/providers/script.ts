import { parseExpression } from "../expr/parse.ts";
import type { ParsedExpression } from "../expr/parse.ts";
import { scanTemplate } from "../expr/template.ts";
import type { Code } from "../model/codes.ts";
import type { Diagnostic, Span } from "../model/diagnostic.ts";
import { bySpan } from "../model/diagnostic.ts";
import { longestDuration, parseDuration } from "../model/duration.ts";
import type { Json } from "../model/json.ts";
import type { StopReason, Usage } from "../model/message.ts";
import { nearest } from "../model/names.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { locate } from "../source/document.ts";
import type { MapEntry, MapNode, ScalarNode, SourceDocument, SourceNode } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import type { Price } from "./known-models.ts";

/**
 * A script: what the models of a run say, turn by turn. The file format is described in docs/scripted.md.
 *
 * ```yaml
 * agents:
 *   reviewer:
 *     - calls: [{ name: Read, args: { file_path: notes.md } }]
 *     - when: contains(results[0].text, 'TODO')
 *       text: There is work left.
 *     - text: All done.
 * ```
 */
export interface Script {
  readonly file: string;
  /** Turns by step path (with or without its `[item]` and `#iteration`); these win over `agents`. */
  readonly steps: ReadonlyMap<string, readonly ScriptTurn[]>;
  readonly agents: ReadonlyMap<string, readonly ScriptTurn[]>;
  /** What the model is said to cost; nothing when absent. */
  readonly price?: Price;
  /** Tokens of the context window, and of the longest reply; unknown when absent. */
  readonly window?: number;
  readonly maxOutput?: number;
  /** Whether an agent without tools answers by JSON schema and not by `finish`. */
  readonly jsonSchema: boolean;
}

export interface ScriptTurn {
  /** Line of the file, from 1. */
  readonly line: number;
  readonly when?: ParsedExpression;
  readonly text?: ScriptValue;
  readonly calls: readonly ScriptCall[];
  readonly stop?: StopReason;
  readonly usage?: Pick<Usage, "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning">;
  /** Milliseconds before the first piece. */
  readonly delay: number;
  /** Characters of each piece. */
  readonly chunk: number;
  /** An HTTP status, or a way a stream can break. */
  readonly error?: number | ScriptError;
}

export type ScriptError = (typeof scriptErrors)[number];
const scriptErrors = ["timeout", "malformed", "cut", "overflow", "unreachable"] as const;

export interface ScriptCall {
  readonly name: string;
  /** The arguments, or their text as the model writes it, which need not be JSON. */
  readonly args: ScriptValue | { readonly raw: string };
}

/** Data whose strings may hold expressions, parsed when the file is read. */
export type ScriptValue =
  | { readonly type: "data"; readonly json: Json }
  /** Exactly one `${{ }}`: keeps its JSON type. */
  | { readonly type: "expression"; readonly parsed: ParsedExpression }
  | { readonly type: "text"; readonly parts: readonly (string | ParsedExpression)[] }
  | { readonly type: "list"; readonly items: readonly ScriptValue[] }
  | { readonly type: "map"; readonly entries: readonly (readonly [string, ScriptValue])[] };

/** What expressions of a script see; see docs/scripted.md. */
export const scriptContexts: readonly string[] = ["message", "prompt", "results", "turn"];

const defaultChunk = 24;

/** Reads a script and checks all of it. The errors are every problem of the file, in the order of the file. */
export function loadScript(bytes: Uint8Array, file: string): Result<Script, readonly Diagnostic[]> {
  const document = parseSource(bytes, file);
  if (!document.ok) return document;
  const reader = new ScriptReader(document.value);
  const script = reader.script();
  return reader.problems.length > 0 ? err(reader.problems.sort((a, b) => bySpan(a.at, b.at))) : ok(script);
}

const rootKeys = ["agents", "json-schema", "max-output", "price", "steps", "window"];
const priceKeys = ["cache-read", "cache-write", "input", "output"];
const turnKeys = ["calls", "chunk", "delay", "error", "stop", "text", "usage", "when"];
const callKeys = ["args", "name", "raw"];
const usageKeys = ["cache-read", "cache-write", "input", "output", "reasoning"];
const stops: readonly StopReason[] = ["end", "length", "refusal", "unknown"];

/** Walks the document once; what it cannot use becomes a problem and a harmless value. */
class ScriptReader {
  readonly problems: Diagnostic[] = [];
  readonly #document: SourceDocument;

  constructor(document: SourceDocument) {
    this.#document = document;
  }

  script(): Script {
    const { file, root } = this.#document;
    const map = this.#map(root, rootKeys, "a script");
    if (map !== undefined && map.entries.every(({ key }) => key === "price"))
      this.#report("FLOW2003", root.at, "a script needs `agents` or `steps`");
    const price = find(map, "price")?.value;
    return {
      file,
      steps: this.#lists(map, "steps"),
      agents: this.#lists(map, "agents"),
      ...optional("price", price && this.#price(price)),
      ...optional("window", this.#count(find(map, "window")?.value, { name: "`window`", least: 1 })),
      ...optional("maxOutput", this.#count(find(map, "max-output")?.value, { name: "`max-output`", least: 1 })),
      jsonSchema: this.#flag(find(map, "json-schema")?.value),
    };
  }

  #flag(node: SourceNode | undefined): boolean {
    if (node !== undefined && !(node.kind === "scalar" && typeof node.value === "boolean"))
      this.#report("FLOW2001", node.at, "`json-schema` must be true or false");
    return node?.kind === "scalar" && node.value === true;
  }

  #price(node: SourceNode): Price {
    const map = this.#map(node, priceKeys, "`price`");
    const amount = (key: string): number | undefined => {
      const given = find(map, key)?.value;
      if (given === undefined) return undefined;
      const value = given.kind === "scalar" ? given.value : undefined;
      if (typeof value === "number" && value >= 0 && value < Infinity) return value;
      return this.#wrong(given, `\`${key}\` must be US dollars for a million tokens`);
    };
    for (const key of ["input", "output"])
      if (map !== undefined && find(map, key) === undefined)
        this.#report("FLOW2003", node.at, `a \`price\` needs \`${key}\``);
    return {
      input: amount("input") ?? 0,
      output: amount("output") ?? 0,
      ...optional("cacheRead", amount("cache-read")),
      ...optional("cacheWrite", amount("cache-write")),
    };
  }

  #lists(map: MapNode | undefined, key: string): Map<string, readonly ScriptTurn[]> {
    const lists = new Map<string, readonly ScriptTurn[]>();
    const node = find(map, key)?.value;
    if (node === undefined) return lists;
    for (const { key: name, value } of this.#map(node, undefined, `\`${key}\``)?.entries ?? []) {
      const turns = this.#list(value, `the turns of \`${name}\``).map((turn) => this.#turn(turn));
      if (turns.length === 0 && value.kind === "list") this.#report("FLOW2004", value.at, `\`${name}\` has no turns`);
      lists.set(name, turns);
    }
    return lists;
  }

  #turn(node: SourceNode): ScriptTurn {
    const map = this.#map(node, turnKeys, "a turn");
    const [when, text, usage, error] = ["when", "text", "usage", "error"].map((key) => find(map, key)?.value);
    const calls = this.#list(find(map, "calls")?.value, "`calls`").map((call) => this.#call(call));
    if (map !== undefined && text === undefined && error === undefined && find(map, "calls") === undefined)
      this.#report("FLOW2003", node.at, "a turn needs `text`, `calls` or `error`");
    const stop = this.#stop(find(map, "stop")?.value);
    const parsed = when && this.#condition(when);
    return {
      line: node.at.line,
      ...optional("when", parsed),
      ...optional("text", text && this.#text(text)),
      calls,
      ...optional("stop", stop),
      ...optional("usage", usage && this.#usage(usage)),
      delay: this.#delay(find(map, "delay")?.value),
      chunk: this.#count(find(map, "chunk")?.value, { name: "`chunk`", least: 1 }) ?? defaultChunk,
      ...optional("error", error && this.#error(error)),
    };
  }

  #call(node: SourceNode): ScriptCall {
    const map = this.#map(node, callKeys, "a call");
    const name = find(map, "name")?.value;
    const raw = find(map, "raw")?.value;
    const args = find(map, "args");
    if (map !== undefined && name === undefined) this.#report("FLOW2003", node.at, "a call needs a `name`");
    if (raw !== undefined && args !== undefined)
      this.#report("FLOW2009", args.keyAt, "`args` and `raw` exclude each other");
    const shownName = name === undefined ? "" : this.#string(name, "`name`");
    if (raw !== undefined) return { name: shownName, args: { raw: this.#string(raw, "`raw`") } };
    if (args !== undefined && args.value.kind !== "map")
      this.#report("FLOW2001", args.value.at, "`args` must be a map");
    return { name: shownName, args: args === undefined ? { type: "map", entries: [] } : this.#value(args.value) };
  }

  #text(node: SourceNode): ScriptValue {
    if (node.kind === "scalar")
      return typeof node.value === "string"
        ? this.#template(node, node.value)
        : { type: "data", json: String(node.value) };
    // A map or list is a JSON answer, which is what an agent without a `finish` call would write.
    return this.#value(node);
  }

  #value(node: SourceNode): ScriptValue {
    switch (node.kind) {
      case "list":
        return { type: "list", items: node.items.map((item) => this.#value(item)) };
      case "map":
        return { type: "map", entries: node.entries.map(({ key, value }) => [key, this.#value(value)] as const) };
      case "scalar":
        return typeof node.value === "string" ? this.#template(node, node.value) : { type: "data", json: node.value };
    }
  }

  #template(node: ScalarNode, text: string): ScriptValue {
    const scanned = scanTemplate(text);
    if (!scanned.ok) {
      const { message, offset, length, suggestion } = scanned.error;
      this.#report("FLOW5001", locate(this.#document, node, offset, length), message, suggestion);
      return { type: "data", json: text };
    }
    const parts: (string | ParsedExpression)[] = [];
    for (const part of scanned.value) {
      const parsed = "text" in part ? part.text : this.#expression(node, part);
      if (parsed !== undefined) parts.push(parsed);
    }
    const [first] = parts;
    if (parts.length === 1 && typeof first === "object") return { type: "expression", parsed: first };
    return parts.every((part) => typeof part === "string") ? { type: "data", json: text } : { type: "text", parts };
  }

  #expression(node: ScalarNode, { source, offset }: { source: string; offset: number }): ParsedExpression | undefined {
    const parsed = parseExpression(source, { contexts: scriptContexts });
    if (parsed.ok) return parsed.value;
    const { error } = parsed;
    const code = error.kind === "unknown" ? "FLOW5002" : error.kind === "limit" ? "FLOW5014" : "FLOW5001";
    this.#report(
      code,
      locate(this.#document, node, offset + error.offset, error.length),
      error.message,
      error.suggestion,
    );
    return undefined;
  }

  /** Bare, or exactly one `${{ }}`. */
  #condition(node: SourceNode): ParsedExpression | undefined {
    if (node.kind !== "scalar" || node.value === null) return this.#wrong(node, "`when` must be an expression");
    const text = String(node.value);
    if (!text.includes("${{")) return this.#expression(node, { source: text, offset: 0 });
    const value = this.#template(node, text);
    if (value.type === "expression") return value.parsed;
    if (value.type === "text")
      this.#report("FLOW5005", node.at, "`when` must be one expression, without text around it");
    return undefined;
  }

  #usage(node: SourceNode): NonNullable<ScriptTurn["usage"]> {
    const map = this.#map(node, usageKeys, "`usage`");
    const tokens = (key: string): number => this.#count(find(map, key)?.value, { name: `\`${key}\``, least: 0 }) ?? 0;
    return {
      input: tokens("input"),
      output: tokens("output"),
      cacheRead: tokens("cache-read"),
      cacheWrite: tokens("cache-write"),
      reasoning: tokens("reasoning"),
    };
  }

  #stop(node: SourceNode | undefined): StopReason | undefined {
    if (node === undefined) return undefined;
    const value = this.#string(node, "`stop`");
    const stop = stops.find((each) => each === value);
    if (stop === undefined) this.#report("FLOW2004", node.at, `\`stop\` is one of ${stops.join(", ")}`);
    return stop;
  }

  #delay(node: SourceNode | undefined): number {
    if (node === undefined) return 0;
    const duration = node.kind === "scalar" && typeof node.value === "string" ? parseDuration(node.value) : undefined;
    if (duration !== undefined && duration <= longestDuration) return duration;
    this.#report("FLOW2012", node.at, "`delay` must be a duration such as `500ms` or `2s`, at most 596h");
    return 0;
  }

  #error(node: SourceNode): number | ScriptError {
    const value = node.kind === "scalar" ? node.value : undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 400 && value <= 599) return value;
    const word = scriptErrors.find((each) => each === value);
    if (word !== undefined) return word;
    this.#report("FLOW2004", node.at, `\`error\` is an HTTP status from 400 to 599, or ${scriptErrors.join(", ")}`);
    return "cut";
  }

  #count(node: SourceNode | undefined, { name, least }: { name: string; least: number }): number | undefined {
    if (node === undefined) return undefined;
    const value = node.kind === "scalar" ? node.value : undefined;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
    return this.#wrong(node, `${name} must be a whole number from ${least}`);
  }

  #string(node: SourceNode, name: string): string {
    if (node.kind === "scalar" && typeof node.value === "string") return node.value;
    this.#report("FLOW2001", node.at, `${name} must be a text`);
    return "";
  }

  #map(node: SourceNode, known: readonly string[] | undefined, what: string): MapNode | undefined {
    if (node.kind !== "map") return this.#wrong(node, `${what} must be a map`);
    for (const { key, keyAt } of known === undefined ? [] : node.entries) {
      if (known?.includes(key) !== false) continue;
      const near = nearest(key, known);
      const suggestion = near === undefined ? `known here: ${known.join(", ")}` : `did you mean \`${near}\`?`;
      this.#report("FLOW2002", keyAt, `\`${key}\` is not a key of ${what}`, suggestion);
    }
    return node;
  }

  #list(node: SourceNode | undefined, what: string): readonly SourceNode[] {
    if (node === undefined) return [];
    if (node.kind === "list") return node.items;
    this.#wrong(node, `${what} must be a list`);
    return [];
  }

  #wrong(node: SourceNode, message: string): undefined {
    this.#report("FLOW2001", node.at, message);
  }

  #report(code: Code, at: Span, message: string, suggestion?: string): void {
    this.problems.push({ code, severity: "error", message, at, ...(suggestion === undefined ? {} : { suggestion }) });
  }
}

function find(map: MapNode | undefined, key: string): MapEntry | undefined {
  return map?.entries.find((candidate) => candidate.key === key);
}

function optional<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: T });
}
