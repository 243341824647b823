import type { HookEvent, HookWord } from "../model/hooks.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";

/** What a command that ended by itself said. */
export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Moments whose plain output is meant for the agent. */
const spoken: ReadonlySet<HookEvent> = new Set(["SessionStart"]);
/** Characters of one text that reach the agent. */
const longest = 10_000;

/** Claude Code's contract: exit code 2 blocks with what stands on stderr, 0 may answer in JSON, others are told and no more. */
export function readAnswer(event: HookEvent, { code, stdout, stderr }: Said): HookWord {
  if (code === 2) return { block: cut(stderr.trim() || stdout.trim() || "a hook said no"), texts: [] };
  if (code !== 0) return { texts: [] };
  const value = jsonOf(stdout);
  if (value === undefined) return { texts: spoken.has(event) && stdout.trim() !== "" ? [cut(stdout.trim())] : [] };
  return wordOf(event, value);
}

/** Whether it was to be JSON and is none: what it says is not known then. */
export function isGarbled({ code, stdout }: Said): boolean {
  return code === 0 && stdout.trimStart().startsWith("{") && jsonOf(stdout) === undefined;
}

function jsonOf(stdout: string): JsonObject | undefined {
  if (!stdout.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(stdout);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function wordOf(event: HookEvent, value: JsonObject): HookWord {
  const specific = objectAt(value, "hookSpecificOutput");
  const asked = objectAt(specific, "decision");
  const reason = textAt(value, "reason") ?? textAt(specific, "permissionDecisionReason") ?? textAt(asked, "message");
  const decisions = [textAt(value, "decision"), textAt(specific, "permissionDecision"), textAt(asked, "behavior")];
  const isNo = decisions.some((it) => it === "block" || it === "deny");
  const isYes = decisions.some((it) => it === "allow" || it === "approve");
  const input = own(specific, "updatedInput") ?? own(asked, "updatedInput");
  const texts = [textAt(specific, "additionalContext"), textAt(value, "systemMessage")];
  const decision = isYes ? "allow" : decisions.includes("ask") ? "ask" : undefined;
  return {
    ...(isNo && { block: cut(reason ?? "a hook said no") }),
    ...(own(value, "continue") === false && { stop: cut(textAt(value, "stopReason") ?? reason ?? "a hook ended it") }),
    ...(decision !== undefined && { decision }),
    ...((event === "PreToolUse" || event === "PermissionRequest") && isJsonObject(input) && { input }),
    texts: texts.flatMap((text) => (text === undefined || text.trim() === "" ? [] : [cut(text)])),
  };
}

function objectAt(object: JsonObject, key: string): JsonObject {
  const value: Json | undefined = own(object, key);
  return isJsonObject(value) ? value : {};
}

function textAt(object: JsonObject, key: string): string | undefined {
  const value = own(object, key);
  return typeof value === "string" ? value : undefined;
}

function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** Several answers as one: a no of any counts, the last change of the arguments, `ask` before `allow`. */
export function together(words: readonly HookWord[]): HookWord {
  const block = words.find((word) => word.block !== undefined)?.block;
  const stop = words.find((word) => word.stop !== undefined)?.stop;
  const input = words.findLast((word) => word.input !== undefined)?.input;
  const decisions = words.flatMap(({ decision }) => decision ?? []);
  const decision = decisions.includes("ask") ? "ask" : decisions[0];
  return {
    ...(block !== undefined && { block }),
    ...(stop !== undefined && { stop }),
    ...(input !== undefined && { input }),
    ...(decision !== undefined && { decision }),
    texts: words.flatMap(({ texts }) => texts),
  };
}
