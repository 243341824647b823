import { pause } from "../model/abort.ts";
import type { Message } from "../model/message.ts";
import type { Clock, ModelClient, ModelDelta, ModelFacts, ModelFailure, ModelRequest } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok, unreachable } from "../model/result.ts";
import { isTransientStatus } from "./error.ts";
import { costAt } from "./facts.ts";
import { kindOfStatus } from "./failure.ts";
import type { Price } from "./known-models.ts";
import { holds, scriptScope, valueOf } from "./script-values.ts";
import type { Script, ScriptTurn } from "./script.ts";
import { overWindow } from "./server.ts";
import { isOverWindow, priced, type Tokens } from "./usage.ts";

/**
 * A model whose replies are written in a file. The turn to play is found from the conversation itself: every reply
 * already in it stands for one turn of the list, so agents may share a client, run in parallel and run again. An
 * `error` turn is met once at each place: whoever asks there again, for the same agent and step, gets the turn after it.
 */
export function scriptedClient(script: Script, clock: Clock): ModelClient {
  const errorsMet = new Map<string, number>();
  const facts = factsOf(script);
  return {
    provider: "scripted",
    facts,
    async *stream(request, signal) {
      const place = JSON.stringify([request.step, request.agent, repliesIn(request)]);
      const met = errorsMet.get(place) ?? 0;
      const reply = replyTo(request, { script, errorsMet: met });
      if (!reply.ok) {
        yield { type: "failed", failure: { kind: "provider_error", message: reply.error, transient: false } };
        return;
      }
      const { turn, pieces } = reply.value;
      if (turn.error !== undefined) errorsMet.set(place, met + 1);
      if (turn.delay > 0) await pause(clock, turn.delay, signal);
      for (const piece of pieces) {
        if (signal.aborted) break;
        yield piece;
      }
      yield signal.aborted ? cancelled : ending({ turn, pieces, request, facts });
    },
  };
}

function factsOf({ price, window, maxOutput, jsonSchema }: Script): ModelFacts {
  return {
    ...scriptedFacts,
    jsonSchema,
    ...(window !== undefined && { window }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(price !== undefined && { cost: costOf(price) }),
  };
}

function costOf(price: Price): ModelFacts["cost"] {
  return (tokens) => costAt(price, tokens);
}

/** Of a script that names no price. */
export const scriptedFacts: ModelFacts = { jsonSchema: false, cost: () => 0 };

const cancelled: ModelDelta = {
  type: "failed",
  failure: { kind: "cancelled", message: "the model call was cancelled", transient: false },
};

interface Reply {
  readonly turn: ScriptTurn;
  readonly pieces: readonly ModelDelta[];
}

/** The error is a sentence that names the file, the agent, the turn and what the script has for it. */
function replyTo(
  request: ModelRequest,
  { script, errorsMet }: { readonly script: Script; readonly errorsMet: number },
): Result<Reply, string> {
  const { messages, agent, step, earlier = 0 } = request;
  const turns = turnsFor(script, request);
  const where = `${script.file}: agent \`${agent}\` (step \`${step}\`), turn ${repliesIn(request) + 1}`;
  if (turns === undefined) return err(`${where}: the script has no turns for this agent or step`);
  let next = behind(turns, earlier);
  for (const [index, { role }] of messages.entries()) {
    if (role !== "assistant") continue;
    const past = findTurn(turns, { from: next, messages: messages.slice(0, index), earlier, errorsMet: Infinity });
    if (!past.ok) return err(`${where}: ${past.error}`);
    next = past.value?.next ?? turns.length;
  }
  const found = findTurn(turns, { from: next, messages, earlier, errorsMet });
  if (!found.ok) return err(`${where}: ${found.error}`);
  if (found.value === undefined) return err(`${where}: ${nothingLeft(turns, next)}`);
  const { turn } = found.value;
  const pieces = piecesOf(turn, request);
  return pieces.ok ? ok({ turn, pieces: pieces.value }) : err(`${where}: ${pieces.error}`);
}

/** By the step path, then by the path without the marks of items and iterations, then by the agent's name. */
function turnsFor({ steps, agents }: Script, { step, agent }: ModelRequest): readonly ScriptTurn[] | undefined {
  const plain = step.replaceAll(/\[\d+\]|#\d+/g, "");
  return steps.get(step) ?? steps.get(plain) ?? agents.get(agent);
}

function repliesIn({ messages, earlier = 0 }: ModelRequest): number {
  return earlier + messages.filter(({ role }) => role === "assistant").length;
}

/** Replies that are no longer in the conversation stand for the first turns of the list, whatever their `when`. */
function behind(turns: readonly ScriptTurn[], replies: number): number {
  let left = replies;
  let index = 0;
  for (; left > 0 && index < turns.length; index++) if (turns[index]?.error === undefined) left--;
  return index;
}

interface Search {
  readonly from: number;
  readonly messages: readonly Message[];
  readonly earlier: number;
  readonly errorsMet: number;
}

/** The first turn from `from` on whose `when` holds, behind as many error turns as were met here before. */
function findTurn(
  turns: readonly ScriptTurn[],
  { from, messages, earlier, errorsMet }: Search,
): Result<{ readonly turn: ScriptTurn; readonly next: number } | undefined, string> {
  const scope = scriptScope(messages, earlier);
  let toSkip = errorsMet;
  for (let index = from; index < turns.length; index++) {
    const turn = turns[index];
    if (turn === undefined) break;
    const matches = holds(turn.when, scope);
    if (!matches.ok) return err(`the \`when\` of the turn in line ${turn.line}: ${matches.error}`);
    if (!matches.value) continue;
    if (turn.error === undefined || toSkip <= 0) return ok({ turn, next: index + 1 });
    toSkip--;
  }
  return ok(undefined);
}

function nothingLeft(turns: readonly ScriptTurn[], next: number): string {
  const left = turns.slice(next);
  if (left.length === 0) return `the script is used up; it has ${turns.length} turns for it`;
  const lines = left.slice(0, 5).map(({ line }) => line);
  return `no turn left in the script fits; looked at the ${left.length} from line ${lines.join(", ")}`;
}

function piecesOf(turn: ScriptTurn, request: ModelRequest): Result<ModelDelta[], string> {
  const scope = scriptScope(request.messages, request.earlier);
  const pieces: ModelDelta[] = [];
  if (turn.text !== undefined) {
    const text = valueOf(turn.text, scope);
    if (!text.ok) return err(`the \`text\` of the turn in line ${turn.line}: ${text.error}`);
    const written = typeof text.value === "string" ? text.value : JSON.stringify(text.value);
    pieces.push(...chunks(written, turn.chunk).map((chunk): ModelDelta => ({ type: "text", text: chunk })));
  }
  for (const [index, { name, args }] of turn.calls.entries()) {
    const value = "raw" in args ? ok(args.raw) : valueOf(args, scope);
    if (!value.ok) return err(`the call of \`${name}\` in the turn of line ${turn.line}: ${value.error}`);
    const raw = "raw" in args ? args.raw : JSON.stringify(value.value);
    pieces.push({ type: "call", index, id: `call_${repliesIn(request) + 1}_${index + 1}`, name });
    pieces.push(...chunks(raw, turn.chunk).map((text): ModelDelta => ({ type: "args", index, text })));
  }
  return ok(pieces);
}

/** Pieces of `size` characters; a character of two units is never split. */
function chunks(text: string, size: number): string[] {
  const pieces: string[] = [];
  let piece = "";
  for (const character of text) {
    piece += character;
    if (piece.length < size) continue;
    pieces.push(piece);
    piece = "";
  }
  return piece === "" ? pieces : [...pieces, piece];
}

interface Played {
  readonly turn: ScriptTurn;
  readonly pieces: readonly ModelDelta[];
  readonly request: ModelRequest;
  readonly facts: ModelFacts;
}

function ending({ turn, pieces, request, facts }: Played): ModelDelta {
  const length = pieces.reduce((sum, piece) => sum + ("text" in piece ? piece.text.length : 0), 0);
  const usage = priced(turn.usage ?? estimatedTokens(request, length), facts, turn.usage === undefined);
  if (turn.error !== undefined)
    return { type: "failed", failure: scriptedFailure(turn.error), ...(pieces.length > 0 && { usage }) };
  // Only what the script itself says was counted: a guess is no reason to fail.
  if (turn.usage !== undefined && isOverWindow(turn.usage, facts)) return { ...overWindow(facts), usage };
  return { type: "done", stop: turn.stop ?? (turn.calls.length > 0 ? "calls" : "end"), usage };
}

/** Characters a token has on average, in English and in code. */
const charactersPerToken = 4;

function estimatedTokens(request: ModelRequest, reply: number): Tokens {
  const sent = JSON.stringify(request.messages).length + JSON.stringify(request.tools).length;
  const tokens = { input: Math.ceil(sent / charactersPerToken), output: Math.ceil(reply / charactersPerToken) };
  return { ...tokens, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}

function scriptedFailure(error: NonNullable<ScriptTurn["error"]>): ModelFailure {
  switch (error) {
    case "timeout":
      return { kind: "timeout", message: "scripted: no byte from the server", transient: true };
    case "malformed":
      return { kind: "provider_error", message: "scripted: the server sent a piece that is not JSON", transient: true };
    case "cut":
      return { kind: "provider_error", message: "scripted: the reply was cut off", transient: true };
    case "overflow":
      return {
        kind: "overflow",
        message: "scripted: the conversation is longer than the model's window",
        transient: false,
      };
    case "unreachable":
      return { kind: "unavailable", message: "scripted: the server cannot be reached", transient: false };
    default:
      if (typeof error !== "number") return unreachable(error);
      return {
        kind: kindOfStatus(error),
        message: `scripted: the server answered with status ${error}`,
        status: error,
        transient: isTransientStatus(error),
      };
  }
}
