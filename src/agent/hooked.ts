import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import type { Hooks, HookWord } from "../model/hooks.ts";
import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/ports.ts";
import { ok, type Result } from "../model/result.ts";
import { judge, type RunRights } from "./permission.ts";
import type { CallBlock } from "./turn.ts";

export interface Admission {
  readonly ids: TurnIds;
  readonly rights?: RunRights | undefined;
  readonly hooks?: Hooks | undefined;
  readonly signal: AbortSignal;
  /** Arguments that somebody else wrote, checked as the model's were. */
  readonly fit: (tool: Tool, args: JsonObject) => Promise<Result<JsonObject, string>>;
  /** Ends the agent once its calls are answered. */
  readonly halt: (reason: string) => void;
}

/** Whether a call goes ahead, and with which arguments. */
export interface Admitted {
  readonly args: JsonObject;
  /** What the rules said; absent where they were not asked. */
  readonly event?: AgentEvent;
  readonly refusal: string | undefined;
  /** What hooks want the model to know. */
  readonly texts: readonly string[];
}

const nothing: HookWord = { texts: [] };

/** Hooks first, then the rules on what the hooks made of the call; where the rules ask, hooks may answer for a person. */
export async function admit(
  call: CallBlock,
  { tool, args }: { readonly tool: Tool; readonly args: JsonObject },
  { ids, rights, hooks, signal, fit, halt }: Admission,
): Promise<Admitted> {
  const fire = (event: "PreToolUse" | "PermissionRequest", input: JsonObject): Promise<HookWord> | undefined =>
    hooks?.fire(
      { event, subject: tool.name, fields: { tool_name: tool.name, tool_input: input, tool_use_id: call.id } },
      signal,
    );
  const word = tool.unjudged === true ? nothing : ((await fire("PreToolUse", args)) ?? nothing);
  const { texts } = word;
  if (word.stop !== undefined) halt(word.stop);
  const no = word.block ?? word.stop;
  if (no !== undefined) return { args, texts, refusal: `This call of \`${tool.name}\` was refused by a hook: ${no}` };
  const fitted = word.input === undefined ? ok(args) : await fit(tool, word.input);
  if (!fitted.ok) return { args, texts, refusal: `A hook changed this call of \`${tool.name}\`: ${fitted.error}` };
  let answered: Promise<"allow" | "deny" | undefined> | undefined;
  const answer = (): Promise<"allow" | "deny" | undefined> =>
    (answered ??=
      word.decision === "allow" ? Promise.resolve("allow") : answerOf(fire("PermissionRequest", fitted.value)));
  const asked = hooks ? { answer, ...(word.decision === "ask" && { asks: true }) } : {};
  const judged = await judge(call, { tool, args: fitted.value, signal, ...asked }, { ids, ...(rights && { rights }) });
  return { args: fitted.value, texts, ...judged };
}

async function answerOf(word: Promise<HookWord> | undefined): Promise<"allow" | "deny" | undefined> {
  const { block, stop, decision } = (await word) ?? nothing;
  if (block !== undefined || stop !== undefined) return "deny";
  return decision === "allow" ? "allow" : undefined;
}

/** The result of a call with what hooks say of it. */
export async function withHooks(
  call: CallBlock,
  { tool, args, text }: { readonly tool: Tool; readonly args: JsonObject; readonly text: Result<string, string> },
  { hooks, signal, halt }: Pick<Admission, "hooks" | "signal" | "halt">,
): Promise<Result<string, string>> {
  if (hooks === undefined || tool.unjudged === true) return text;
  const event = text.ok ? "PostToolUse" : "PostToolUseFailure";
  const said = text.ok ? { tool_response: { text: text.value } } : { error: text.error };
  const fields = { tool_name: tool.name, tool_input: args, tool_use_id: call.id, ...said };
  const word = await hooks.fire({ event, subject: tool.name, fields }, signal);
  if (word.stop !== undefined) halt(word.stop);
  return noted(text, [...(word.block === undefined ? [] : [word.block]), ...word.texts]);
}

/** A result with more to say below it. */
export function noted(text: Result<string, string>, texts: readonly string[]): Result<string, string> {
  if (texts.length === 0) return text;
  const more = texts.map((it) => `\n\n[A hook says: ${it}]`).join("");
  return text.ok ? ok(text.value + more) : { ok: false, error: text.error + more };
}
