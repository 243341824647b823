import { hash } from "node:crypto";
import type { AgentEvent, GuardRule } from "../model/agent-event.ts";
import { canonicalJson, isJsonObject, type Json, own } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import { finishName } from "./output.ts";

/** One answered tool call of an agent run. */
export interface CallFact {
  readonly turn: number;
  readonly id: string;
  readonly name: string;
  /** Stands for tool and arguments: 16 hex digits. Of a call that was refused before it ran, for the tool and the refusal. */
  readonly subject: string;
  /** Stands for the result. */
  readonly result: string;
  /** The first line of an error; absent when it succeeded. */
  readonly error?: string;
}

export interface GuardFact {
  readonly turn: number;
  readonly rule: GuardRule;
  readonly action: "hint" | "refuse" | "stop";
  readonly subject?: string;
}

export interface Todo {
  readonly content: string;
  readonly status: string;
}

/** The end of the last check, while the model has not been told of it. */
export interface CheckFact {
  readonly status: "passed" | "failed" | "broken";
  readonly text: string;
}

/**
 * What an agent run has to know of its past beside the conversation, which may have been made shorter. It is folded
 * from the events the run sends, so that it is the same live and after a resume.
 */
export interface History {
  readonly calls: CallFact[];
  readonly guards: GuardFact[];
  /** Calls that were asked for, until they end. */
  readonly open: Map<string, { readonly subject: string; readonly todos: readonly Todo[] | undefined }>;
  /** The plan as the agent wrote it last. */
  todos: readonly Todo[];
  /** Answers that did not fit the schema, since the last one that did: after a resume one is refused once more. */
  readonly badAnswers: Set<string>;
  /** Only `finish` is on offer, because the last answer was prose. */
  onlyFinish: boolean;
  failedChecks: number;
  check: CheckFact | undefined;
  /** Replies in a row of whose calls none had arguments that could be read. */
  unreadable: number;
}

export const todoTool: string = "TodoWrite";

export function emptyHistory(): History {
  return {
    calls: [],
    guards: [],
    open: new Map(),
    todos: [],
    badAnswers: new Set(),
    onlyFinish: false,
    failedChecks: 0,
    check: undefined,
    unreadable: 0,
  };
}

export function copyOf(history: History): History {
  const { calls, guards, open, badAnswers } = history;
  return {
    ...history,
    calls: [...calls],
    guards: [...guards],
    open: new Map(open),
    badAnswers: new Set(badAnswers),
  };
}

/** Stands for a call: equal tools and arguments give equal subjects, whatever the order of the keys. */
export function subjectOf(name: string, args: Json): string {
  return digest(`${name} ${canonicalJson(args)}`);
}

/** Takes an event into the history. */
export function remember(history: History, event: Pick<AgentEvent, "type"> & AgentEvent): void {
  switch (event.type) {
    case "tool.started": {
      // By whatever name the model called it: the message says which call it is.
      const subject = history.open.get(event.id)?.subject ?? subjectOf(event.name, event.args);
      history.open.set(event.id, { subject, todos: event.name === todoTool ? todosIn(event.args) : undefined });
      break;
    }
    case "tool.finished":
      rememberEnd(history, event);
      break;
    case "guard": {
      const { turn, rule, action, subject } = event;
      // After a resume the end of a turn is said once more.
      if (history.guards.some((guard) => guard.turn === turn && guard.rule === rule && guard.subject === subject))
        break;
      history.guards.push({ turn, rule, action, ...(subject !== undefined && { subject }) });
      if (rule === "output") {
        history.badAnswers.add(`${turn}`);
        history.onlyFinish = true;
      } else if (rule === "todos") answeredAnew(history);
      break;
    }
    case "check.finished":
      history.check = { status: event.status, text: event.text };
      if (event.status !== "failed") break;
      history.failedChecks++;
      answeredAnew(history);
      break;
    case "message":
      history.check = undefined;
      rememberCalls(history, event.message);
      break;
    default:
  }
}

/** A call that is refused does not begin: what it asked for is in the message. */
function rememberCalls(history: History, { role, blocks }: Message): void {
  // A message that lies beside the log has none here.
  const calls = (blocks ?? []).filter((block) => block.type === "call");
  for (const { id, name, args } of calls) history.open.set(id, { subject: subjectOf(name, args), todos: undefined });
  if (role !== "assistant") return;
  const isUnreadable = calls.length > 0 && calls.every(({ name, args }) => args === null && name !== finishName);
  history.unreadable = isUnreadable ? history.unreadable + 1 : 0;
}

/** The answer was of the right shape and is asked for again: it has all its tries. */
function answeredAnew(history: History): void {
  history.badAnswers.clear();
  history.onlyFinish = false;
}

function rememberEnd(history: History, event: Extract<AgentEvent, { type: "tool.finished" }>): void {
  const { turn, id, name, status, text } = event;
  const begun = history.open.get(id);
  history.open.delete(id);
  if (name === finishName) {
    if (status === "error") history.badAnswers.add(`${turn} ${id}`);
    return;
  }
  // A text that lies beside the log stands for itself by its hash.
  const said = typeof text === "string" ? text : JSON.stringify(text);
  const subject = begun?.subject ?? digest(`${name} ${said}`);
  const error = status === "error" ? { error: firstLine(said) } : {};
  history.calls.push({ turn, id, name, subject, result: digest(`${status} ${said}`), ...error });
  if (begun?.todos !== undefined && status === "completed") history.todos = begun.todos;
}

function digest(text: string): string {
  return hash("sha256", text).slice(0, 16);
}

function firstLine(text: string): string {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** The items of a `TodoWrite` call; undefined when it has no list of them. */
function todosIn(args: Json): readonly Todo[] | undefined {
  const list = isJsonObject(args) ? own(args, "todos") : undefined;
  if (!Array.isArray(list)) return undefined;
  return list.flatMap((item) => {
    const [content, status] = isJsonObject(item) ? [own(item, "content"), own(item, "status")] : [];
    return typeof content === "string" && typeof status === "string" ? [{ content, status }] : [];
  });
}

export function openTodos({ todos }: History): readonly Todo[] {
  return todos.filter(({ status }) => status !== "completed" && status !== "cancelled");
}

/** Turns at the end of the history, without a break, in which every call failed. */
export function failedTurns({ calls }: History): number {
  const failed = new Set<number>();
  for (const call of calls.toReversed()) {
    if (call.error === undefined) return failed.has(call.turn) ? failed.size - 1 : failed.size;
    failed.add(call.turn);
  }
  return failed.size;
}
