import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import { askedAs } from "../model/ids.ts";
import { type Block, textOf } from "../model/message.ts";
import { addUsage } from "../model/message.ts";
import { elapsed } from "../model/ports.ts";
import type { Tool } from "../model/ports.ts";
import type { AgentResult, Ending } from "./agent-result.ts";
import {
  aborted,
  type AgentRun,
  failed,
  noted,
  overCap,
  type Place,
  say,
  type State,
  stateOf,
  type Turn,
} from "./agent-run.ts";
import { afterFinish, endOfAnswer, haltedBy, settleEnd } from "./answer.ts";
import type { Payer } from "./budget.ts";
import { fitContext, shortenAfterOverflow } from "./fitting.ts";
import { goOn } from "./go-on.ts";
import { afterCalls, atStart, beforeCall, type Objection, type Past } from "./guard.ts";
import { hints } from "./hints.ts";
import { subjectOf, todoTool } from "./history.ts";
import { askModel } from "./model-call.ts";
import { isNativeSchema } from "./native-schema.ts";
import { finishName, structuredOutput } from "./output.ts";
import { buildRequest } from "./request.ts";
import { runCalls } from "./tool-call.ts";
import type { Reply } from "./turn.ts";

/** Runs one agent until it has exactly one outcome. Yields its events, of which a message always precedes its effects. */
export async function* runAgent(run: AgentRun): AsyncGenerator<AgentEvent, AgentResult> {
  const state = stateOf(run);
  let ending = yield* begin(run, state);
  while (ending === undefined) ending = yield* takeTurn(run, state);
  const { asked: turns, usage, text } = state;
  return { ...ending, turns, usage, text };
}

/** The first messages, or those there were before a resume, with the end of the turn that was cut off. */
async function* begin(run: AgentRun, state: State): AsyncGenerator<AgentEvent, Ending | undefined> {
  if (run.output !== undefined) {
    const output = await structuredOutput(run.output);
    if (!output.ok) return { outcome: "invalid_output", reason: output.error };
    state.output = output.value;
  }
  if (run.recorded === undefined) {
    yield* introduce(run, state);
    return undefined;
  }
  const ids: TurnIds = { ...run.ids, turn: state.turns };
  const left = goOn(run.recorded, state, run.tools);
  if (run.more) {
    yield* say(state, ids, run.more);
    return undefined;
  }
  if (left.type === "turn") return undefined;
  if (left.type === "answer") return yield* endOrRead(run, { state, ids }, left.ending);
  return yield* conclude(run, { state, ids, reply: left.reply, known: left.known, start: run.clock.monotonic() });
}

async function* introduce(run: AgentRun, state: State): AsyncGenerator<AgentEvent, void> {
  const ids: TurnIds = { ...run.ids, turn: 0 };
  const last = run.messages.at(-1);
  const hint = last && atStart(state.guards, textOf(last.blocks));
  if (hint !== undefined) yield* noted(state, { ...ids, type: "guard", ...hint });
  for (const message of run.messages) {
    const added: Block[] = message === last && hint !== undefined ? [{ type: "text", text: hint.text }] : [];
    yield* say(state, ids, added.length === 0 ? message : { ...message, blocks: [...message.blocks, ...added] });
  }
}

async function* takeTurn(run: AgentRun, state: State): AsyncGenerator<AgentEvent, Ending | undefined> {
  if (run.signal.aborted) return aborted(run.signal);
  const over = run.border?.();
  if (over !== undefined) return over;
  const ids: TurnIds = { ...run.ids, turn: ++state.turns };
  const start = run.clock.monotonic();
  const unfit = yield* fitContext(run, state, ids);
  if (unfit !== undefined) return run.signal.aborted ? aborted(run.signal) : (overCap(run, ids.turn) ?? unfit);
  yield* readMail(run, state, ids);
  const reply = yield* ask(run, state, ids);
  if (reply.text !== "") state.text = reply.text;
  if (reply.type === "failed") return yield* endOfFailure(run, { state, ids, reply });
  yield* say(state, ids, reply.message, reply);
  return yield* conclude(run, { state, ids, reply, known: new Map(), start });
}

async function* readMail(run: AgentRun, state: State, ids: TurnIds): AsyncGenerator<AgentEvent, void> {
  const due = run.readings?.(ids.agent, ids.turn);
  if (due !== undefined) await run.mail?.settled(due, run.signal);
  const mail = run.mail?.take(due);
  if (mail !== undefined) yield* say(state, ids, mail.message, { from: mail.from });
}

async function* ask(run: AgentRun, state: State, ids: TurnIds): AsyncGenerator<AgentEvent, Reply> {
  const { signal, clock, pieces } = run;
  const { models } = state;
  const { model, client } = models.current;
  const payer: Payer = {
    pay: (payable, call) =>
      state.payer.pay(payable, (paid) => {
        state.asked = ids.turn;
        return call(paid);
      }),
  };
  const request = buildRequest({
    model,
    agent: run.name,
    step: askedAs({ ...run.ids, name: run.name }),
    messages: state.messages,
    sampling: run.sampling ?? {},
    earlier: state.dropped,
    ...offer(run, state, ids),
  });
  yield { ...ids, type: "turn.started", model, provider: client.provider, request: state.hashes.of(request) };
  const answer = yield* askModel({ ids, models, request, signal, pieces, payer, clock, masked: run.masked });
  state.usage = addUsage(state.usage, answer.lost);
  return answer;
}

interface Offer {
  readonly tools: readonly Tool[];
  readonly toolChoice?: "required";
  readonly answerSchema?: AgentRun["output"];
}

/** What the model may do in a turn: nothing but write in the last, nothing but answer after an answer that was none. */
function offer(run: AgentRun, { output, history, models }: State, { turn }: TurnIds): Offer {
  if (overCap(run, turn) !== undefined) return { tools: [] };
  if (output === undefined) return { tools: run.tools };
  if (history.onlyFinish) return { tools: [output.finish], toolChoice: "required" };
  if (run.tools.length === 0 && models.facts.jsonSchema && isNativeSchema(run.output ?? {}))
    return { tools: [], answerSchema: run.output };
  return { tools: [...run.tools, output.finish] };
}

interface Failed extends Place {
  readonly reply: Extract<Reply, { type: "failed" }>;
}

async function* endOfFailure(
  run: AgentRun,
  { state, ids, reply }: Failed,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  if (run.signal.aborted) return aborted(run.signal);
  const over = overCap(run, ids.turn);
  if (over !== undefined) return over;
  if (reply.failure.kind !== "overflow" || state.shortened) return failed(reply.failure);
  return yield* shortenAfterOverflow(run, { state, ids, why: reply.failure.message });
}

/** What follows a reply: its calls are answered, or it is the end. */
async function* conclude(run: AgentRun, turn: Turn): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { state, ids, reply, start } = turn;
  let ending = overCap(run, ids.turn);
  if (ending === undefined && reply.calls.length === 0) ending = yield* endOfAnswer(run, turn);
  else if (ending === undefined) ending = yield* answerCalls(run, turn);
  const { stop, usage } = reply;
  yield { ...ids, type: "turn.finished", stop, usage, duration: elapsed(run.clock, start) };
  return ending?.outcome === "done" ? yield* endOrRead(run, { state, ids }, ending) : ending;
}

/** Nobody is done who has not read what he waits for: his answer does not count then, and the next one does. */
async function* endOrRead(
  run: AgentRun,
  { state, ids }: Place,
  ending: Ending,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { mail, readings, signal } = run;
  const due = readings?.(ids.agent, ids.turn + 1);
  // When a letter comes is a matter of time: in a replay it is read where it was read then, or by the next run.
  if (mail?.isOpen === false && due) {
    await mail.settled(due, signal);
    if (signal.aborted) return aborted(signal);
  }
  const wasLast = due === undefined && readings?.(ids.agent, ids.turn) !== undefined;
  if (mail?.isOpen !== true || (wasLast && !mail.isOwed)) return yield* settleEnd(run, { state, ids }, ending);
  await mail.arrival(signal, due);
  if (signal.aborted) return aborted(signal);
  if (!mail.hasLetters) return yield* settleEnd(run, { state, ids }, ending);
  state.output?.retract();
  return undefined;
}

async function* answerCalls(run: AgentRun, turn: Turn): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { state, ids, reply } = turn;
  const past = pastOf(run, turn);
  const known = new Map(turn.known);
  const stuck = yield* refuseRepeats(turn, past, known);
  if (stuck !== undefined) return stuck;
  const { withheld, rights, hooks, workspace, signal, clock, spill } = run;
  let halted: string | undefined;
  const halt = (reason: string): void => void (halted ??= reason);
  const { tools } = offer(run, state, ids);
  const { validators } = state;
  const setting = { known, ids, tools, withheld, validators, rights, hooks, halt, workspace, signal, clock, spill };
  const results = yield* following(state, runCalls(reply.calls, setting));
  if (signal.aborted && results.blocks.length < reply.calls.length) return aborted(signal);
  const ending = haltedBy(halted) ?? afterFinish(turn, reply, results);
  const objections = ending === undefined ? afterCalls(state.guards, past) : [];
  for (const objection of objections) yield* noted(state, { ...ids, type: "guard", ...objection });
  yield* say(state, ids, { ...results, blocks: [...results.blocks, ...notes(run, ids, ending, objections)] });
  return ending;
}

function pastOf({ tools }: AgentRun, { state, ids }: Place): Past {
  const reading = new Set(tools.flatMap(({ name, readOnly }) => (readOnly ? [name] : [])));
  const canWrite = tools.some(({ name, readOnly }) => !readOnly && name !== todoTool);
  return { history: state.history, turn: ids.turn, isRead: (name) => reading.has(name), canWrite };
}

/** A call that was made before with nothing new to learn from gets its refusal for a result, in `known`. */
async function* refuseRepeats(
  { state, ids, reply }: Turn,
  past: Past,
  known: Map<string, Block>,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  if (!state.guards.repeats) return undefined;
  for (const { id, name, args } of reply.calls) {
    const isAnswer = name === finishName && state.output !== undefined;
    const objection =
      known.has(id) || isAnswer ? undefined : beforeCall({ name, subject: subjectOf(name, args) }, past);
    if (objection === undefined) continue;
    yield* noted(state, { ...ids, type: "guard", ...objection, call: id });
    if (objection.action === "stop") return { outcome: "stuck", reason: objection.text };
    known.set(id, { type: "result", id, blocks: [{ type: "text", text: objection.text }], error: true });
  }
  return undefined;
}

/** RunTools events on, and lets the history know them. */
async function* following<T>(state: State, events: AsyncGenerator<AgentEvent, T>): AsyncGenerator<AgentEvent, T> {
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) yield* noted(state, next.value);
  return next.value;
}

/** What is said to the model beside the results of its calls. */
function notes(
  run: AgentRun,
  { turn }: TurnIds,
  ending: Ending | undefined,
  objections: readonly Objection[],
): Block[] {
  const texts = objections.map(({ text }) => text);
  if (ending === undefined && overCap(run, turn + 1) !== undefined) texts.push(hints.lastTurn);
  return texts.map((text) => ({ type: "text", text }));
}
