import type { MapEntry, MapNode } from "../../source/document.ts";
import { asMap, asText, booleanOf, entriesOf } from "../read/nodes.ts";
import { type Draft, ignore, leaveOut, nodeOf, put, putAs, took } from "./draft.ts";
import { putModel } from "./model.ts";
import { leaveOutTools, offered, putTools, toolNamed, type ToolWord } from "./tools.ts";

const honoured: ReadonlySet<string> = new Set(["name", "description", "temperature", "hidden", "disable", "options"]);
const sessions: { readonly [key: string]: string } = {
  color: "it is shown in a session of OpenCode",
  hidden_from_cycle: "there is no list to cycle through",
};

/** An agent of OpenCode: `.opencode/agent(s)/**` + `/*.md`. What it does not know itself is an option of the provider. */
export async function readOpencode(draft: Draft, root: MapNode): Promise<void> {
  const extra: MapEntry[] = [];
  for (const theirs of root.entries) {
    const { key, value } = theirs;
    if (value.kind === "scalar" && value.value === null) ignore(draft, theirs, "it has no value");
    else if (honoured.has(key)) put(draft, theirs, key);
    else if (key === "model") await putModel(draft, theirs);
    else if (Object.hasOwn(sessions, key)) ignore(draft, theirs, sessions[key] ?? "");
    else if (!readField(draft, theirs)) extra.push(theirs);
  }
  putOptions(draft, extra);
}

/** False for a key that OpenCode hands to the provider. */
function readField(draft: Draft, theirs: MapEntry): boolean {
  switch (theirs.key) {
    case "mode":
      readMode(draft, theirs);
      return true;
    case "prompt":
      put(draft, theirs, "instructions");
      return true;
    case "steps":
    case "maxSteps":
      draft.limits.push({ ...theirs, key: "turns" });
      took(draft, theirs, "limits.turns");
      return true;
    case "top_p":
      put(draft, theirs, "top-p");
      return true;
    case "reasoningEffort":
    case "variant":
      readEffort(draft, theirs);
      return true;
    case "tools":
      readTools(draft, theirs);
      return true;
    case "permission":
      readPermission(draft, theirs);
      return true;
    default:
      return false;
  }
}

/** A step is what spawns an agent here, so one that others spawn may be the agent of a step as well. */
function readMode(draft: Draft, theirs: MapEntry): void {
  const text = asText(theirs.value);
  if (text?.value === "subagent")
    putAs(draft, theirs, { key: "mode", value: nodeOf("all", text.at), note: "all: a step may run it" });
  else put(draft, theirs, "mode");
}

const efforts: ReadonlySet<string> = new Set(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

function readEffort(draft: Draft, theirs: MapEntry): void {
  if (efforts.has(asText(theirs.value)?.value ?? "")) put(draft, theirs, "effort");
  else ignore(draft, theirs, "it is none of the efforts a model can be told");
}

/** Keys that nobody knows go to the provider, as OpenCode hands them on; each is told, because it may be a typing error. */
function putOptions(draft: Draft, extra: readonly MapEntry[]): void {
  const [first] = extra;
  if (!first) return;
  for (const theirs of extra) {
    leaveOut(
      draft,
      theirs.keyAt,
      `\`${theirs.key}\` is no field of an OpenCode agent: it goes to the provider as an option`,
    );
    took(draft, theirs, `options.${theirs.key}`);
  }
  const written = draft.entries.findIndex(({ key }) => key === "options");
  const before = draft.entries[written];
  const entries = [...entriesOf(before?.value), ...extra];
  const options: MapEntry = {
    key: "options",
    keyAt: (before ?? first).keyAt,
    value: { kind: "map", entries, at: first.keyAt },
  };
  if (written === -1) draft.entries.push(options);
  else draft.entries[written] = options;
}

/** `tools: { write: false, "*": true }`: what is off at the end is not offered. */
function readTools(draft: Draft, theirs: MapEntry): void {
  const { tools } = draft.vocabulary;
  const here = [...tools].flatMap(([tool, isHere]) => (isHere ? [tool] : []));
  const off = new Set<string>();
  const words: ToolWord[] = [];
  for (const { key, keyAt, value } of entriesOf(theirs.value)) {
    const isOn = booleanOf(value) !== false;
    const named = key === "*" ? here : familyOf(toolNamed(key, draft.vocabulary));
    for (const tool of named)
      if (isOn) off.delete(tool);
      else off.add(tool);
    if (key === "*" || named.length > 0) continue;
    if (isOn) words.push({ name: key, at: keyAt });
    else leaveOut(draft, keyAt, `\`${key}\` is off for this agent, and there is no such tool here`);
  }
  const known = words.filter(({ name }) => name.startsWith("mcp__"));
  leaveOutTools(
    draft,
    words.filter((word) => !known.includes(word)),
    "there is no such tool here",
  );
  for (const it of entriesOf(theirs.value))
    if (booleanOf(it.value) === true && toolNamed(it.key, draft.vocabulary) === "Task") offerEveryone(draft, it);
  took(draft, theirs, "tools", off.size === 0 ? "all of them" : `without ${[...off].join(", ")}`);
  if (off.size === 0) return;
  const at = theirs.value.at;
  if (!entriesOf(theirs.value).some(({ key }) => key === "*")) {
    for (const tool of off) draft.rules.push({ key: tool, keyAt: theirs.keyAt, value: nodeOf("deny", at) });
    return;
  }
  const on = here.filter((tool) => !off.has(tool)).map((name) => ({ name, at }));
  putTools(draft, theirs, [...on, ...(known.length > 0 ? offered(draft, known) : [])]);
}

/** OpenCode calls everything that changes a file `edit`. */
function familyOf(tool: string | undefined): readonly string[] {
  if (tool === undefined) return [];
  return tool === "Edit" || tool === "Write" ? ["Edit", "Write"] : [tool];
}

/** Permissions of OpenCode for what flow has not, with what takes their place. */
const elsewhere: { readonly [key: string]: string } = {
  external_directory: "no file tool leaves the workspace here, whatever is written",
  doom_loop: "the guard rail `repeats` is always on, unless `guards` switches it off",
  question: "an agent asks nobody here; an `approve` step does",
  lsp: "there are no language servers here",
  websearch: "there is no such tool here",
  codesearch: "there is no such tool here",
  browser: "there is no such tool here",
  todoread: "an agent always sees its own list",
  plan_enter: "there is no such mode here",
  plan_exit: "there is no such mode here",
};

function readPermission(draft: Draft, theirs: MapEntry): void {
  const text = asText(theirs.value);
  const map = asMap(theirs.value);
  if (text) draft.rules.push({ key: "*", keyAt: theirs.keyAt, value: text });
  else if (map) for (const rule of readsFirst(map.entries)) readRule(draft, rule);
  else return put(draft, theirs, "permissions");
  return took(draft, theirs, "permissions");
}

function readRule(draft: Draft, rule: MapEntry): void {
  const { key, keyAt, value } = rule;
  const why = Object.hasOwn(elsewhere, key) ? elsewhere[key] : undefined;
  if (why !== undefined) leaveOut(draft, keyAt, `the rule for \`${key}\` is left out: ${why}`);
  else if (/\s/.test(key)) {
    const bash = asText(value)?.value ?? "deny";
    leaveOut(
      draft,
      keyAt,
      `the rule \`${key}\` never held: a tool has no such name; for commands write \`bash: { ${JSON.stringify(key)}: ${bash} }\``,
    );
  } else {
    const tool = toolNamed(key, draft.vocabulary) ?? key;
    if (tool === "Task" && asText(value)?.value !== "deny") offerEveryone(draft, rule);
    draft.rules.push({ ...rule, key: tool });
  }
}

/** Whoever is not denied may be spawned by an agent that has rules for spawning. */
function offerEveryone(draft: Draft, { keyAt }: MapEntry): void {
  if (draft.entries.some(({ key }) => key === "subagents")) return;
  draft.entries.push({ key: "subagents", keyAt, value: { kind: "list", items: [nodeOf("*", keyAt)], at: keyAt } });
}

/**
 * A rule for `read` speaks of Grep, Glob and LS here as well, and there of reading alone: between wildcards, where the
 * order says nothing, it goes first.
 */
function readsFirst(rules: readonly MapEntry[]): MapEntry[] {
  const ordered: MapEntry[] = [];
  let start = 0;
  for (const rule of rules) {
    if (rule.key === "read") ordered.splice(start, 0, rule);
    else ordered.push(rule);
    if (/[*?]/.test(rule.key)) start = ordered.length;
  }
  return ordered;
}

/** The name an agent has by its path, below the folder of agents; of one in a configuration what stands behind `#`. */
export function opencodeName(path: string): string {
  const inConfig = /^[^#]*opencode\.jsonc?#([^]*)$/.exec(path)?.[1];
  return inConfig ?? path.replace(/^.*\.(?:config\/)?opencode\/agents?\//, "").replace(/\.md$/, "");
}
