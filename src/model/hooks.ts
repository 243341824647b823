import type { JsonObject } from "./json.ts";

/** The moments a hook can be told about. */
export const hookEvents = [
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PermissionRequest",
  "SessionStart",
  "SessionEnd",
  "SubagentStart",
  "SubagentStop",
  "Stop",
  "PreCompact",
  "TaskCompleted",
  "StepStart",
  "StepEnd",
] as const;

export type HookEvent = (typeof hookEvents)[number];

export function isHookEvent(name: string): name is HookEvent {
  return hookEvents.some((event) => event === name);
}

/** Something that is about to happen, or has happened. */
export interface HookMoment {
  readonly event: HookEvent;
  /** What a matcher is held against, the name of a tool for one; absent: every matcher fits. */
  readonly subject?: string;
  /** What the command reads beside the fields that every event has. */
  readonly fields: JsonObject;
}

/** What the hooks of one moment came to, all of them together. */
export interface HookWord {
  /** Why it must not happen. */
  readonly block?: string;
  /** Ends the agent: `continue: false`. */
  readonly stop?: string;
  /** What stands in the place of the rules: `allow` only where they ask. */
  readonly decision?: "allow" | "ask";
  /** Arguments in the place of those of the call. */
  readonly input?: JsonObject;
  /** Texts for the agent. */
  readonly texts: readonly string[];
}

/** Tells hooks of a moment and gathers what they say. Never throws; an abort ends them. */
export interface Hooks {
  fire(moment: HookMoment, signal: AbortSignal): Promise<HookWord>;
}
