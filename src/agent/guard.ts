import type { GuardRule } from "../model/agent-event.ts";
import { isJsonObject, type Json, own } from "../model/json.ts";
import { hints } from "./hints.ts";
import { type CallFact, type History, openTodos, todoTool } from "./history.ts";

/** The guard rails an agent may switch; see `guards` of an agent. */
export type Guards = { readonly [rule in Exclude<GuardRule, "output">]: boolean };

const defaults: Guards = {
  repeats: true,
  reads: true,
  errors: true,
  todos: true,
  complexity: false,
  findings: false,
};

/** `guards` as it is written: true or false for all of them, or each by its name. */
export function guardsOf(written: Json | undefined): Guards {
  const each = (rule: keyof Guards): boolean => {
    if (typeof written === "boolean") return written;
    const value = isJsonObject(written) ? own(written, rule) : undefined;
    return typeof value === "boolean" ? value : defaults[rule];
  };
  return {
    repeats: each("repeats"),
    reads: each("reads"),
    errors: each("errors"),
    todos: each("todos"),
    complexity: each("complexity"),
    findings: each("findings"),
  };
}

/** What a guard has to say. */
export interface Objection {
  readonly rule: GuardRule;
  readonly action: "hint" | "refuse" | "stop";
  readonly text: string;
  readonly subject?: string;
}

/** Turns within which the same call with the same result counts as a repeat. */
const repeatWindow = 8;
const refusalsToStop = 2;
/** Reads in a row after which a hint is given: before anything was written, and after. */
const readsBefore = 5;
const readsAfter = 10;
const strikes = 3;

export interface Past {
  readonly history: History;
  /** The turn that is judged. */
  readonly turn: number;
  /** Whether a tool of this name only reads. */
  readonly isRead: (name: string) => boolean;
  /** Whether the agent has a tool that does more than to read. */
  readonly canWrite: boolean;
}

/** What is said of a call before it runs; nothing lets it run. */
export function beforeCall(
  call: { readonly name: string; readonly subject: string },
  past: Past,
): Objection | undefined {
  const { history, turn } = past;
  const { name, subject } = call;
  if (sameResults(subject, past) < 2) return undefined;
  const isRefused = history.guards.some(
    (guard) =>
      guard.subject === subject &&
      guard.action === "refuse" &&
      guard.turn > turn - repeatWindow &&
      // Said in this very turn before a resume, it is said again.
      guard.turn < turn,
  );
  if (isRefused) return { rule: "repeats", action: "stop", text: hints.stuck(name), subject };
  return { rule: "repeats", action: "refuse", text: hints.refused(name), subject };
}

/**
 * Turns within the window in which the call gave the result it gave last. What was successfully done for the first time
 * in between may have changed the world, so that only what follows it counts: to run the same tests again after an edit
 * is no repeat.
 */
function sameResults(subject: string, { history, turn, isRead }: Past): number {
  const recent = recentCalls(history, turn);
  const occurrences = new Map<string, number>();
  for (const call of recent) occurrences.set(call.subject, (occurrences.get(call.subject) ?? 0) + 1);
  const turns = new Set<number>();
  let result: string | undefined;
  for (const call of recent) {
    if (call.subject === subject) {
      result ??= call.result;
      if (call.result === result) turns.add(call.turn);
    } else if (call.error === undefined && changes(call, isRead) && occurrences.get(call.subject) === 1) break;
  }
  return turns.size;
}

/** Newest first. */
function recentCalls({ calls }: History, turn: number): CallFact[] {
  let from = calls.length;
  while (from > 0 && (calls[from - 1]?.turn ?? 0) > turn - repeatWindow) from--;
  return calls.slice(from).reverse();
}

function changes({ name }: CallFact, isRead: Past["isRead"]): boolean {
  return name !== todoTool && !isRead(name);
}

/** What is said after the calls of a turn were answered. */
export function afterCalls(guards: Guards, past: Past): Objection[] {
  const { history, turn, canWrite } = past;
  const now = history.calls.filter((call) => call.turn === turn);
  const found: Objection[] = [];
  if (guards.repeats) {
    for (const { name, subject } of uniqueSubjects(now))
      if (sameResults(subject, past) === refusalsToStop)
        found.push({ rule: "repeats", action: "hint", text: hints.repeated(name), subject });
  }
  if (guards.errors) found.push(...sameErrors(now, history));
  if (guards.reads && canWrite) found.push(...tooManyReads(now, past));
  if (guards.findings && isSecondRead(now, past))
    found.push({ rule: "findings", action: "hint", text: hints.findings });
  return found;
}

function uniqueSubjects(calls: readonly CallFact[]): Iterable<CallFact> {
  return new Map(calls.map((call) => [call.subject, call])).values();
}

/** Three strikes on one error, and again after three more. */
function sameErrors(now: readonly CallFact[], { calls }: History): Objection[] {
  const found: Objection[] = [];
  const errors = new Map(now.flatMap((call) => (call.error === undefined ? [] : [[errorKey(call), call] as const])));
  for (const [key, { name }] of errors) {
    const all = calls.filter((call) => call.error !== undefined && errorKey(call) === key);
    const before = all.length - now.filter((call) => errorKey(call) === key).length;
    if (Math.floor(all.length / strikes) === Math.floor(before / strikes)) continue;
    const history = all.slice(-strikes).map((call) => `turn ${call.turn}: ${call.error}`);
    found.push({ rule: "errors", action: "hint", text: hints.errors(name, history) });
  }
  return found;
}

function errorKey({ name, error }: CallFact): string {
  return `${name} ${error}`;
}

function tooManyReads(now: readonly CallFact[], { history, isRead }: Past): Objection[] {
  const hasWritten = history.calls.some((call) => call.error === undefined && changes(call, isRead));
  let streak = 0;
  for (const call of history.calls.toReversed()) {
    if (call.error !== undefined) continue;
    if (changes(call, isRead)) break;
    if (isRead(call.name)) streak++;
  }
  const limit = hasWritten ? readsAfter : readsBefore;
  const before = streak - countReads(now, isRead);
  if (streak < limit || before >= limit) return [];
  return [{ rule: "reads", action: "hint", text: hints.reads(streak) }];
}

function isSecondRead(now: readonly CallFact[], { history, isRead }: Past): boolean {
  const all = countReads(history.calls, isRead);
  return Math.floor(all / 2) > Math.floor((all - countReads(now, isRead)) / 2);
}

function countReads(calls: readonly CallFact[], isRead: Past["isRead"]): number {
  return calls.filter((call) => call.error === undefined && isRead(call.name)).length;
}

/** How often the end may be refused because of open items. */
const refusalsForTodos = 2;

/** What is said when the agent wants to stop. */
export function beforeEnd(guards: Guards, history: History): Objection | undefined {
  const open = openTodos(history);
  if (!guards.todos || open.length === 0) return undefined;
  const refusals = new Set(history.guards.flatMap(({ rule, turn }) => (rule === "todos" ? [turn] : [])));
  if (refusals.size >= refusalsForTodos) return undefined;
  return { rule: "todos", action: "refuse", text: hints.openTodos(open) };
}

const complexWords = ["refactor", "migrat", "redesign", "rewrite", "rearchitect"];
const moderateWords = [
  "add feature",
  "add a feature",
  "new feature",
  "fix bug",
  "fix a bug",
  "fix the bug",
  "implement",
];
const simpleWords = ["create a", "create an", "rename", "what is", "list the", "show the"];

/** Read from the words of a prompt; nothing where they do not tell. */
export function complexityOf(prompt: string): "simple" | "moderate" | "complex" | undefined {
  const text = prompt.slice(0, 10_000).toLowerCase();
  const has = (words: readonly string[]): boolean => words.some((word) => text.includes(word));
  const steps = text.split("\n").filter((line) => /^\s{0,8}(\d{1,3}[.)]|[-*])\s/.test(line)).length;
  if (has(complexWords) || steps >= 3) return "complex";
  if (has(moderateWords)) return "moderate";
  return has(simpleWords) ? "simple" : undefined;
}

/** What is said beside the prompt. */
export function atStart(guards: Guards, prompt: string): Objection | undefined {
  const complexity = guards.complexity ? complexityOf(prompt) : undefined;
  return complexity && { rule: "complexity", action: "hint", text: hints.complexity[complexity] };
}
