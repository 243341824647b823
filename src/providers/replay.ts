import type { Block, Message, StopReason, Usage } from "../model/message.ts";
import type { ModelClient, ModelDelta, ModelFacts, ModelFailure, ModelRequest } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";

/** One recorded model call. */
export interface Take {
  readonly step: string;
  readonly turn: number;
  readonly model: string;
  /** sha256 of its request. */
  readonly request: string;
  /** The messages of its request; absent where the log cannot tell. */
  readonly sent?: readonly Message[];
  /** Names of the tools on offer. */
  readonly tools: readonly string[];
  readonly answer:
    | { readonly type: "reply"; readonly message: Message; readonly stop: StopReason; readonly usage: Usage }
    | { readonly type: "failed"; readonly failure: ModelFailure };
}

export interface CassetteOptions {
  /** As somebody named it. */
  readonly name: string;
  /** Why a request may differ by no fault of the workflow's; said before what differs. */
  readonly caveat?: string;
  readonly takes: readonly Take[];
  /** The request as the log would hold it: secrets masked. */
  readonly masked: (request: ModelRequest) => ModelRequest;
  readonly hash: (request: ModelRequest) => string;
}

/** The model calls of one run's log, each of which answers once. */
export class Cassette {
  readonly #options: CassetteOptions;
  readonly #left: Set<Take>;

  constructor(options: CassetteOptions) {
    this.#options = options;
    this.#left = new Set(options.takes);
  }

  /** The recorded answer to this request of this step. The error says what differs from what was recorded. */
  take(request: ModelRequest): Result<Take, string> {
    const { masked, hash } = this.#options;
    const digest = hash(request);
    const ofStep = [...this.#left].filter(({ step }) => step === request.step);
    const found = ofStep.find((take) => take.request === digest);
    if (found === undefined) return err(this.#caveat() + this.#miss(masked(request), ofStep[0]));
    this.#left.delete(found);
    return ok(found);
  }

  #caveat(): string {
    const { caveat } = this.#options;
    return caveat === undefined ? "" : `${caveat}: `;
  }

  #miss(request: ModelRequest, nearest: Take | undefined): string {
    const { name, takes } = this.#options;
    const recorded = takes.filter(({ step }) => step === request.step).length;
    const where = `${name} has no answer for step \`${request.step}\``;
    if (recorded === 0) {
      const steps = [...new Set(takes.map(({ step }) => step))];
      const known = steps.length === 0 ? "no model was asked in it" : `it has ${steps.slice(0, 8).join(", ")}`;
      return `${where}: ${known}`;
    }
    if (nearest === undefined) return `${where}: all ${recorded} recorded calls of it were used, and there is one more`;
    return `${where}, turn ${nearest.turn}: ${difference(request, nearest)}`;
  }
}

/** A model that says what a log says. What it costs is what it cost then, so that limits decide as they did. */
export function replayClient(cassette: Cassette, facts: ModelFacts): ModelClient {
  return {
    provider: "replay",
    facts,
    async *stream(request) {
      const found = cassette.take(request);
      if (!found.ok) {
        yield { type: "failed", failure: { kind: "refused", message: found.error, transient: false } };
        return;
      }
      const { answer } = found.value;
      if (answer.type === "failed") yield answer;
      else yield* deltasOf(answer);
    },
  };
}

function* deltasOf({ message, stop, usage }: Extract<Take["answer"], { type: "reply" }>): Generator<ModelDelta> {
  let index = 0;
  for (const block of message.blocks) {
    if (block.type === "text") yield block;
    if (block.type === "thinking") {
      const { model: _, ...said } = block;
      yield said;
    }
    if (block.type !== "call") continue;
    yield { type: "call", index, id: block.id, name: block.name };
    yield { type: "args", index: index++, text: block.raw };
  }
  yield { type: "done", stop, usage };
}

/** What differs, the first thing only: everything after it differs because of it. */
function difference(request: ModelRequest, take: Take): string {
  if (request.model !== take.model) return `the model is ${request.model}, and ${take.model} was asked`;
  const { messages } = request;
  for (const [index, message] of messages.entries()) {
    const recorded = take.sent?.[index];
    if (take.sent === undefined) break;
    if (recorded === undefined)
      return `it has ${messages.length} messages, and ${take.sent.length} were recorded; message ${index + 1} is new: ${excerpt(shown(message), 0)}`;
    const [now, then] = [shown(message), shown(recorded)];
    if (now === then) continue;
    const at = firstDifference(now, then);
    return `message ${index + 1} (${message.role}) differs at character ${at + 1}: ${excerpt(now, at)} instead of the recorded ${excerpt(then, at)}`;
  }
  if (take.sent !== undefined && take.sent.length > messages.length)
    return `it has ${messages.length} messages, and ${take.sent.length} were recorded`;
  const names = request.tools.map(({ name }) => name);
  const added = names.filter((name) => !take.tools.includes(name) && name !== "finish");
  const gone = take.tools.filter((name) => !names.includes(name));
  if (names.length > 0 && added.length + gone.length > 0)
    return `its tools differ: ${[...added.map((name) => `+${name}`), ...gone.map((name) => `-${name}`)].join(" ")}`;
  return "its messages are as recorded; a description or schema of a tool, the output schema, or `temperature`, `top-p`, `max-output`, `effort` or `options` differ";
}

function shown({ role, blocks }: Message): string {
  return `${role}: ${blocks.map(blockText).join("\n")}`;
}

function blockText(block: Block): string {
  switch (block.type) {
    case "text":
    case "thinking":
      return block.text;
    case "call":
      return `${block.name} ${block.raw}`;
    case "image":
      return `image ${block.data.length}`;
    case "result":
      return `${block.error === true ? "error" : "result"} ${block.blocks.map(blockText).join("\n")}`;
  }
}

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

function excerpt(text: string, at: number): string {
  const from = Math.max(0, at - 20);
  const piece = text.slice(from, at + 40);
  return JSON.stringify(`${from > 0 ? "…" : ""}${piece}${at + 40 < text.length ? "…" : ""}`);
}
