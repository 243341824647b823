import type { Clock, ModelClient, ModelDelta, ModelFailure, ModelRequest } from "../model/ports.ts";
import type { Message, Usage } from "../model/message.ts";
import type { Result } from "../model/result.ts";
import { err, ok, unreachable } from "../model/result.ts";
import { kindOfStatus } from "./failure.ts";
import { holds, scriptScope, valueOf } from "./script-values.ts";
import type { Script, ScriptTurn } from "./script.ts";
import { estimateUsage } from "./usage.ts";

/**
 * A model whose replies are written in a file. The turn to play is found from the conversation itself: every reply
 * already in it stands for one turn of the list, so agents may share a client, run in parallel and run again. An
 * `error` turn is met once at each place: whoever asks there again, for the same agent and step, gets the turn after it.
 */
export function scriptedClient(script: Script, clock: Clock): ModelClient {
  const errorsMet = new Map<string, number>();
  return {
    provider: "scripted",
    facts: { jsonSchema: false, cost: () => 0 },
    async *stream(request, signal) {
      const place = JSON.stringify([request.step, request.agent, repliesIn(request.messages)]);
      const met = errorsMet.get(place) ?? 0;
      const reply = replyTo(request, { script, errorsMet: met });
      if (!reply.ok) {
        yield { type: "failed", failure: { kind: "provider_error", message: reply.error } };
        return;
      }
      const { turn, pieces } = reply.value;
      if (turn.error !== undefined) errorsMet.set(place, met + 1);
      await passed(turn.delay, { clock, signal });
      for (const piece of pieces) {
        if (signal.aborted) break;
        yield piece;
      }
      yield signal.aborted ? cancelled : ending(turn, pieces, request);
    },
  };
}

const cancelled: ModelDelta = {
  type: "failed",
  failure: { kind: "cancelled", message: "the model call was cancelled" },
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
  const { messages, agent, step } = request;
  const turns = turnsFor(script, request);
  const where = `${script.file}: agent \`${agent}\` (step \`${step}\`), turn ${repliesIn(messages) + 1}`;
  if (turns === undefined) return err(`${where}: the script has no turns for this agent or step`);
  let next = 0;
  for (const [index, { role }] of messages.entries()) {
    if (role !== "assistant") continue;
    const past = findTurn(turns, { from: next, messages: messages.slice(0, index), errorsMet: Infinity });
    if (!past.ok) return err(`${where}: ${past.error}`);
    next = past.value?.next ?? turns.length;
  }
  const found = findTurn(turns, { from: next, messages, errorsMet });
  if (!found.ok) return err(`${where}: ${found.error}`);
  if (found.value === undefined) return err(`${where}: ${nothingLeft(turns, next)}`);
  const { turn } = found.value;
  const pieces = piecesOf(turn, messages);
  return pieces.ok ? ok({ turn, pieces: pieces.value }) : err(`${where}: ${pieces.error}`);
}

/** By the step path, then by the path without the marks of items and iterations, then by the agent's name. */
function turnsFor({ steps, agents }: Script, { step, agent }: ModelRequest): readonly ScriptTurn[] | undefined {
  const plain = step.replaceAll(/\[\d+\]|#\d+/g, "");
  return steps.get(step) ?? steps.get(plain) ?? agents.get(agent);
}

function repliesIn(messages: readonly Message[]): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

interface Search {
  readonly from: number;
  readonly messages: readonly Message[];
  readonly errorsMet: number;
}

/** The first turn from `from` on whose `when` holds, behind as many error turns as were met here before. */
function findTurn(
  turns: readonly ScriptTurn[],
  { from, messages, errorsMet }: Search,
): Result<{ readonly turn: ScriptTurn; readonly next: number } | undefined, string> {
  const scope = scriptScope(messages);
  let toSkip = errorsMet;
  for (const [index, turn] of turns.entries()) {
    if (index < from) continue;
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

function piecesOf(turn: ScriptTurn, messages: readonly Message[]): Result<ModelDelta[], string> {
  const scope = scriptScope(messages);
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
    pieces.push({ type: "call", index, id: `call_${repliesIn(messages) + 1}_${index + 1}`, name });
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

/** Resolves after `ms`, or at once when the call is cancelled. */
function passed(ms: number, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<void> {
  if (ms === 0 || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const onAbort = (): void => {
      stop();
      resolve();
    };
    const stop = clock.after(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

function ending(turn: ScriptTurn, pieces: readonly ModelDelta[], request: ModelRequest): ModelDelta {
  if (turn.error !== undefined) return { type: "failed", failure: scriptedFailure(turn.error) };
  const length = pieces.reduce((sum, piece) => sum + ("text" in piece ? piece.text.length : 0), 0);
  const usage: Usage =
    turn.usage === undefined ? estimateUsage(request, length, 0) : { ...turn.usage, estimated: false, cost: 0 };
  return { type: "done", stop: turn.stop ?? (turn.calls.length > 0 ? "calls" : "end"), usage };
}

function scriptedFailure(error: NonNullable<ScriptTurn["error"]>): ModelFailure {
  switch (error) {
    case "timeout":
      return { kind: "timeout", message: "scripted: no byte from the server" };
    case "malformed":
      return { kind: "provider_error", message: "scripted: the server sent a piece that is not JSON" };
    case "cut":
      return { kind: "provider_error", message: "scripted: the reply was cut off" };
    default:
      if (typeof error !== "number") return unreachable(error);
      return {
        kind: kindOfStatus(error),
        message: `scripted: the server answered with status ${error}`,
        status: error,
      };
  }
}
