import type { AgentEvent } from "../model/agent-event.ts";
import type { HookMoment } from "../model/hooks.ts";
import type { Message } from "../model/message.ts";
import type { Ending } from "./agent-result.ts";
import { type AgentRun, aborted, noted, type Place, type Turn, tell, type Whole } from "./agent-run.ts";
import { checked } from "./check.ts";
import { beforeEnd } from "./guard.ts";
import { hints } from "./hints.ts";
import { failedTurns } from "./history.ts";
import { allowedRepairs, finishName } from "./output.ts";

/** Turns in a row in which nothing but failing calls was made: an answer behind them rests on nothing. */
const failedTurnsToDistrust = 3;
/** Replies in a row whose calls nobody can read: the model will not learn it. */
const unreadableToStop = 3;

/** A reply without calls. Only an answer that is there, whole and of the shape asked for is `done`; nothing asks again. */
export async function* endOfAnswer(run: AgentRun, turn: Turn): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { output } = turn.state;
  const { text, stop, cutShort } = turn.reply;
  if (stop === "refusal") return { outcome: "refused", reason: text.trim() || "the model refused to answer" };
  const structured = output?.read(text);
  if (structured?.ok) return { outcome: "done", reason: "the model answered", output: structured.value };
  if (cutShort !== undefined) return { outcome: "budget", reason: cutShort };
  if (stop === "length") return { outcome: "overflow", reason: "the answer was cut off at the model's output limit" };
  // Who waits for others may say so in prose: it is judged when they have written.
  if (structured !== undefined && (text.trim() === "" || run.mail?.isOpen !== true))
    return yield* askAgain(run, turn, structured.error);
  if (text.trim() === "") return { outcome: "invalid_output", reason: "the model ended without an answer" };
  return { outcome: "done", reason: "the model answered" };
}

/** An answer in prose: only `finish` is on offer from here on, until an answer fits or the tries are used up. */
async function* askAgain(run: AgentRun, place: Place, reason: string): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { state, ids } = place;
  if (state.history.badAnswers.size >= allowedRepairs) return { outcome: "invalid_output", reason };
  const text = hints.repair(reason, finishName);
  yield* noted(state, { ...ids, type: "guard", rule: "output", action: "refuse", text });
  yield* tell(run, place, text);
  return undefined;
}

/** Whether the calls of a reply were the end of it: an answer was accepted, or refused once too often. */
export function afterFinish({ state }: Place, { calls }: Whole, results: Message): Ending | undefined {
  if (state.history.unreadable >= unreadableToStop) {
    const reason = `the arguments of its tool calls could not be read, ${unreadableToStop} times in a row`;
    return { outcome: "tool_error", reason };
  }
  if (state.output === undefined) return undefined;
  const output = state.output.accepted();
  if (output !== undefined) return { outcome: "done", reason: "the model finished", output };
  if (state.history.badAnswers.size <= allowedRepairs) return undefined;
  const finishes = new Set(calls.filter(({ name }) => name === finishName).map(({ id }) => id));
  const errors = results.blocks.flatMap((block) =>
    block.type === "result" && block.error === true && finishes.has(block.id) ? [block.blocks] : [],
  );
  const last = errors.at(-1)?.map((block) => (block.type === "text" ? block.text : "")) ?? [];
  return { outcome: "invalid_output", reason: last.join("") || "no answer fitted the `output` schema" };
}

/** An answer that was accepted still has to stand: the work behind it, the step's `check`, the agent's own list. */
export async function* settleEnd(
  run: AgentRun,
  place: Place,
  ending: Ending,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { state, ids } = place;
  if (ending.outcome !== "done") return ending;
  const prose = ending.output === undefined ? state.output?.read(state.text) : undefined;
  if (prose?.ok === false) return yield* askAgain(run, place, prose.error);
  if (failedTurns(state.history) >= failedTurnsToDistrust) return distrusted(place);
  if (run.check !== undefined) {
    const unchecked = yield* checked(run, place, run.check);
    if (unchecked === "again") return again(place);
    if (unchecked !== undefined) return unchecked;
  }
  const word = await run.hooks?.fire(stopMoment(run, state.stopRefused), run.signal);
  if (word?.stop !== undefined) return haltedBy(word.stop);
  if (word?.block !== undefined) {
    state.stopRefused = true;
    yield* tell(run, place, hints.stopRefused(word.block));
    return again(place);
  }
  const objection = beforeEnd(state.guards, state.history);
  if (objection === undefined) return run.signal.aborted ? aborted(run.signal) : ending;
  yield* noted(state, { ...ids, type: "guard", ...objection });
  yield* tell(run, place, objection.text);
  return again(place);
}

function stopMoment({ ids, name }: AgentRun, isRefused: boolean): HookMoment {
  const fields = { stop_hook_active: isRefused };
  if (ids.parent === null) return { event: "Stop", fields };
  return { event: "SubagentStop", subject: name, fields: { ...fields, agent_id: ids.agent, agent_type: name } };
}

/** A hook that ends the agent has denied it the rest. */
export function haltedBy(reason: string | undefined): Ending | undefined {
  return reason === undefined ? undefined : { outcome: "denied", reason: `a hook ended it: ${reason}` };
}

function distrusted({ state }: Place): Ending {
  const { name, error } = state.history.calls.findLast((call) => call.error !== undefined) ?? { name: "", error: "" };
  const reason = `the model answered although every tool call of its last ${failedTurns(state.history)} turns had failed; the last, of \`${name}\`: ${error}`;
  return { outcome: "tool_error", reason };
}

/** The answer does not count: the next one is taken as if it were the first. */
function again({ state }: Place): undefined {
  state.output?.retract();
}
