import { isJsonObject } from "../model/json.ts";
import { type Block, textOf } from "../model/message.ts";
import type { Tool } from "../model/ports.ts";
import type { Ending } from "./agent-result.ts";
import type { State, Whole } from "./agent-run.ts";
import { trimmed, withoutOrphans } from "./context.ts";
import { allowedRepairs, finishName } from "./output.ts";
import { type Recorded, type RecordedCall, recordedResult } from "./recorded.ts";
import type { CallBlock } from "./turn.ts";

/** What of a turn that was cut off is left to do. */
export type Left =
  | { readonly type: "turn" }
  /** Its reply is there: the model is not asked a second time. */
  | { readonly type: "reply"; readonly reply: Whole; readonly known: ReadonlyMap<string, Block> }
  /** Its answer was accepted, or refused for the last time, and only the end itself is missing. */
  | { readonly type: "answer"; readonly ending: Ending };

/** Puts the conversation of before in place, as short as it had been made. */
export function goOn(recorded: Recorded, state: State, tools: readonly Tool[]): Left {
  state.messages = withoutOrphans(trimmed(recorded.messages, recorded.trimmed));
  state.dropped = recorded.replies - state.messages.filter(({ role }) => role === "assistant").length;
  for (const message of state.messages)
    if (message.role === "assistant") state.text = textOf(message.blocks) || state.text;
  const last = state.messages.at(-1);
  if (last?.role !== "assistant") {
    const ending = accepted(state);
    return ending === undefined ? { type: "turn" } : { type: "answer", ending };
  }
  const calls = last.blocks.filter((block) => block.type === "call");
  const { stop = "unknown", lastUsage: usage } = recorded;
  const reply: Whole = { type: "message", message: last, text: textOf(last.blocks), calls, stop, usage };
  return { type: "reply", reply, known: knownResults(recorded, tools) };
}

function accepted({ output, messages, history }: State): Ending | undefined {
  if (output === undefined) return undefined;
  if (history.badAnswers.size > allowedRepairs)
    return { outcome: "invalid_output", reason: "no answer fitted the `output` schema" };
  const results = messages.at(-1)?.blocks.filter((block) => block.type === "result" && block.error !== true) ?? [];
  const ids = new Set(results.map((block) => (block.type === "result" ? block.id : "")));
  const answer = messages.at(-2)?.blocks.find((block) => isFinish(block) && ids.has(block.id));
  if (answer?.type !== "call" || !isJsonObject(answer.args)) return undefined;
  return { outcome: "done", reason: "the model finished", output: answer.args };
}

function isFinish(block: Block): block is CallBlock {
  return block.type === "call" && block.name === finishName;
}

/**
 * Results that the log has. An answer is always given anew: to read it changes nothing; and so is a call that goes on
 * where it was, or has done nothing yet.
 */
function knownResults({ calls }: Recorded, tools: readonly Tool[]): ReadonlyMap<string, Block> {
  const isMade = ({ name, text, wasTold }: RecordedCall): boolean => {
    const tool = tools.find((it) => it.name === name);
    return text !== undefined || !(tool?.goesOn === true || (tool?.told === true && wasTold !== true));
  };
  const others = [...calls].filter(([, call]) => call.name !== finishName && isMade(call));
  return new Map(others.map(([id, call]) => [id, recordedResult(id, call)]));
}
