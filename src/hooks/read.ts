import { type HookEvent, isHookEvent } from "../model/hooks.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";

/** One command that is told of a moment. */
export interface Hook {
  readonly event: HookEvent;
  /** `Edit|Write`, `mcp__github__.*`; absent: everything. */
  readonly matcher?: string;
  readonly command: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Whether what it guards happens when it cannot be asked. */
  readonly onError: "block" | "allow";
  /** Where it is written, as a person names it. */
  readonly from: string;
  /** It is an agent's own: then it takes away and never gives. */
  readonly ofAgent: boolean;
}

const defaultTimeout = 60;

/** The hooks of a block that has passed its schema, in the order they are written. */
export function readHooks(block: JsonObject, { from, ofAgent }: Pick<Hook, "from" | "ofAgent">): readonly Hook[] {
  return Object.entries(block).flatMap(([event, groups]) => {
    if (!isHookEvent(event) || !Array.isArray(groups)) return [];
    return groups.filter(isJsonObject).flatMap((group) => {
      const matcher = own(group, "matcher");
      return listOf(own(group, "hooks")).flatMap((hook): Hook[] => {
        const command = own(hook, "command");
        const timeout = own(hook, "timeout");
        if (typeof command !== "string") return [];
        return [
          {
            event,
            ...(typeof matcher === "string" && { matcher }),
            command,
            timeout: (typeof timeout === "number" ? timeout : defaultTimeout) * 1000,
            onError: own(hook, "on_error") === "allow" ? "allow" : "block",
            from,
            ofAgent,
          },
        ];
      });
    });
  });
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** Whether a matcher speaks of a name. Names part at `|`; `.*` and `*` stand for anything; nothing else is special. */
export function matches(matcher: string | undefined, subject: string | undefined): boolean {
  const text = matcher?.trim() ?? "";
  if (text === "" || text === "*" || text === ".*" || subject === undefined) return true;
  const bare = text.replace(/^\^?\(?/, "").replace(/\)?\$?$/, "");
  return bare.split("|").some((part) => fits(part.trim().replaceAll(".*", "*").split("*"), subject));
}

function fits([first = "", ...rest]: readonly string[], subject: string): boolean {
  if (rest.length === 0) return subject === first;
  if (!subject.startsWith(first)) return false;
  let at = first.length;
  const last = rest.at(-1) ?? "";
  for (const piece of rest.slice(0, -1)) {
    const found = subject.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return subject.length - last.length >= at && subject.endsWith(last);
}
