import { isHookEvent } from "../../model/hooks.ts";
import type { MapEntry } from "../../source/document.ts";
import { asText, entriesOf, itemsOf } from "../read/nodes.ts";
import { type Draft, ignore, leaveOut, took } from "./draft.ts";

const hookKeys: ReadonlySet<string> = new Set(["type", "command", "timeout", "on_error"]);

/** Hooks have the same shape here; what flow has no moment for, and what is no command, is left out and told. */
export function putHooks(draft: Draft, theirs: MapEntry): void {
  if (theirs.value.kind !== "map") return ignore(draft, theirs, "it is no mapping of events");
  const events = theirs.value.entries.flatMap((event) => {
    if (!isHookEvent(event.key)) {
      leaveOut(draft, event.keyAt, `the hooks of \`${event.key}\` are left out: flow has no such moment`);
      return [];
    }
    const groups = itemsOf(event.value).map((group) => (group.kind === "map" ? withCommands(draft, group) : group));
    return [{ ...event, value: { kind: "list" as const, items: groups, at: event.value.at } }];
  });
  draft.entries.push({ ...theirs, value: { ...theirs.value, entries: events } });
  took(draft, theirs, "hooks");
}

function withCommands(draft: Draft, group: Extract<MapEntry["value"], { kind: "map" }>): typeof group {
  const entries = group.entries.map((entry) => {
    if (entry.key !== "hooks") return entry;
    const items = itemsOf(entry.value).flatMap((hook) => {
      const type = entriesOf(hook).find(({ key }) => key === "type");
      const text = asText(type?.value);
      if (text && text.value !== "command") {
        leaveOut(draft, text.at, `a hook of the type \`${text.value}\` is left out: flow runs commands only`);
        return [];
      }
      return [hook.kind === "map" ? { ...hook, entries: hook.entries.filter((it) => isKnown(draft, it)) } : hook];
    });
    return { ...entry, value: { kind: "list" as const, items, at: entry.value.at } };
  });
  return { kind: "map", at: group.at, entries };
}

function isKnown(draft: Draft, { key, keyAt }: MapEntry): boolean {
  if (hookKeys.has(key)) return true;
  leaveOut(draft, keyAt, `\`${key}\` of a hook has no effect here`);
  return false;
}
