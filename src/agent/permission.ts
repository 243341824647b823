import type { TurnIds, AgentEvent } from "../model/agent-event.ts";
import type { JudgedCall, Rights, Tool, Verdict } from "../model/ports.ts";
import type { AgentResult } from "./agent-result.ts";
import type { CallBlock } from "./turn.ts";

/** What one agent run may do, and what it has come upon. */
export interface RunRights extends Rights {
  /** The marks of files, as {@link ToolCall.seen} has them. */
  readonly seen: Map<string, string>;
  /** Rules that would have let a call go ahead that nobody could be asked about, each with the rule that asked. */
  readonly wanting: Map<string, Verdict["rule"]>;
}

/** `wanting` of before, where the agent run is gone on with. */
export function runRights(rights: Rights, wanting: RunRights["wanting"] = new Map()): RunRights {
  return { ...rights, seen: new Map(), wanting: new Map(wanting) };
}

export interface Judged {
  /** Absent where no rules are in force. */
  readonly event?: AgentEvent;
  /** Why the call does not go ahead; a sentence for the model. */
  readonly refusal: string | undefined;
}

/** Asks the rules about one call. A question nobody can be asked is a no, and kept in mind. */
export async function judge(
  call: CallBlock,
  { tool, ...asked }: { readonly tool: Tool } & Omit<JudgedCall, "tool">,
  { ids, rights }: { readonly ids: TurnIds; readonly rights?: RunRights | undefined },
): Promise<Judged> {
  if (rights === undefined || tool.unjudged) return { refusal: undefined };
  const verdict = await rights.judge({ tool: tool.name, ...asked });
  const { decision, rule, toAllow } = verdict;
  if (decision === "ask") for (const text of toAllow) rights.wanting.set(text, rule);
  const { text, layer, file, line } = rule;
  return {
    event: {
      ...ids,
      type: "permission.judged",
      id: call.id,
      name: tool.name,
      decision,
      rule: text,
      layer,
      ...(file !== undefined && { file }),
      ...(line !== undefined && { line }),
      ...(decision !== "allow" && { toAllow }),
    },
    refusal: decision === "allow" ? undefined : refusalOf(tool.name, verdict),
  };
}

function refusalOf(tool: string, { decision, rule }: Verdict): string {
  const place = rule.file === undefined ? "" : `, ${rule.file}${rule.line === undefined ? "" : `:${rule.line}`}`;
  const source = `the rule \`${rule.text}\` (${rule.layer}${place})`;
  if (decision === "deny") return `This call of \`${tool}\` is denied by ${source}. Do the work without it.`;
  return `This call of \`${tool}\` needs a person's approval by ${source}, and nobody is there to give it. Do what you can without it.`;
}

/** Ends that a refused call may well have brought about; all others have reasons of their own. */
const byDenial: ReadonlySet<AgentResult["outcome"]> = new Set([
  "done",
  "tool_error",
  "stuck",
  "check",
  "invalid_output",
  "max_turns",
]);

/** An agent that wanted more than it may, with nobody to ask, has not done its work. */
export function withDenials(result: AgentResult, rights: RunRights | undefined): AgentResult {
  if (!byDenial.has(result.outcome) || rights === undefined || rights.wanting.size === 0) return result;
  const reason = `it needed approval, and nobody was there to give it; to allow the same next time, ${advice(rights.wanting)}`;
  return { ...result, outcome: "denied", reason };
}

/** Only what works: no rule that is added to a file outweighs one that asks there, or an agent's `approval`. */
function advice(wanting: RunRights["wanting"]): string {
  const rules = [...wanting.keys()].slice(0, 5);
  const asking = [...wanting.values()];
  const list = rules.map((rule) => JSON.stringify(rule)).join(", ");
  const flags = rules.map((rule) => `--allow '${rule.replaceAll("'", "'\\''")}'`).join(" ");
  if (asking.every(({ layer }) => layer === "default" || layer === "profile"))
    return `write \`permissions: { allow: [${list}] }\` or run with ${flags}`;
  if (asking.some(({ layer }) => layer === "managed"))
    return "run it in a terminal: a managed rule wants a person asked";
  if (asking.some(({ layer }) => layer === "hook")) return "run it in a terminal: a hook wants a person asked";
  if (asking.every(({ text }) => text.startsWith("approval: ")))
    return `run with ${flags}, or write \`approval: never\` in the agent`;
  const places = asking.flatMap(({ text, file, line }) =>
    file === undefined ? [] : [`\`${text}\` (${file}${line === undefined ? "" : `:${line}`})`],
  );
  return `run with ${flags}${places.length === 0 ? "" : `, or change ${[...new Set(places)].join(", ")}`}`;
}
