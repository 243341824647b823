import type { AgentEvent, Delta, TurnIds } from "../model/agent-event.ts";
import { type Block, type Message, type StopReason, textOf, type Usage } from "../model/message.ts";
import type { ModelClient, ModelDelta, ModelFailure, ModelRequest } from "../model/ports.ts";
import { unreachable } from "../model/result.ts";
import { maxArgumentBytes, parseArguments } from "./arguments.ts";

export type CallBlock = Extract<Block, { type: "call" }>;

/** What one model call gave. A failed one keeps the text that had arrived and nothing else of it. */
export type Reply =
  | {
      readonly type: "message";
      readonly message: Message;
      readonly text: string;
      readonly calls: readonly CallBlock[];
      readonly stop: StopReason;
      readonly usage: Usage;
      /** Why it is no longer, when the limits could not pay for a longer one. */
      readonly cutShort?: string;
    }
  | {
      readonly type: "failed";
      readonly text: string;
      readonly failure: ModelFailure;
      readonly usage?: Usage | undefined;
    };

export interface TurnCall {
  readonly ids: TurnIds;
  readonly client: ModelClient;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  /** False: the pieces do not go out, since nobody keeps them and each has a long way. */
  readonly pieces?: boolean | undefined;
}

/** Streams one reply: its pieces go out as events, the whole comes back. Calls stand last, in the model's order. */
export async function* streamReply(turn: TurnCall): AsyncGenerator<AgentEvent, Reply> {
  const { ids, client, request, signal, pieces = true } = turn;
  const draft: Draft = { model: request.model, blocks: [], calls: new Map() };
  for await (const delta of client.stream(request, signal)) {
    switch (delta.type) {
      case "failed":
        return { ...delta, text: textOf(draft.blocks) };
      case "done":
        return assemble(draft, delta.stop, delta.usage);
      case "warning":
        yield { ...ids, type: "model.warning", model: request.model, note: delta.message };
        break;
      default: {
        const shown = add(draft, delta);
        if (shown !== undefined && pieces) yield { ...ids, type: "message.delta", delta: shown };
      }
    }
  }
  const message = `the ${client.provider} stream ended without saying that it is done`;
  return { type: "failed", text: textOf(draft.blocks), failure: { kind: "provider_error", message, transient: true } };
}

type TextBlock = Extract<Block, { type: "text" | "thinking" }>;
type Piece = Extract<ModelDelta, { type: "text" | "thinking" | "call" | "args" }>;

interface Draft {
  readonly model: string;
  blocks: TextBlock[];
  calls: Map<number, { id: string; name: string; raw: string }>;
}

function add(draft: Draft, delta: Piece): Delta | undefined {
  switch (delta.type) {
    case "text":
    case "thinking":
      addText(draft, delta);
      return delta.text === "" ? undefined : { type: delta.type, text: delta.text };
    case "call":
      draft.calls.set(delta.index, { id: delta.id, name: delta.name, raw: "" });
      return { type: "call.started", id: delta.id, name: delta.name };
    case "args": {
      const call = draft.calls.get(delta.index);
      if (call === undefined) throw new Error(`arguments for call ${delta.index}, which has not begun`);
      // One character over the limit is enough to refuse the call; the rest is not kept.
      if (call.raw.length > maxArgumentBytes) return undefined;
      call.raw += delta.text.slice(0, maxArgumentBytes + 1 - call.raw.length);
      return { type: "call.args", id: call.id, text: delta.text };
    }
    default:
      return unreachable(delta);
  }
}

/** A signature ends its block: what comes after it is another one, even if it is thinking again. */
function addText({ blocks, model }: Draft, delta: Extract<Piece, { type: "text" | "thinking" }>): void {
  const last = blocks.at(-1);
  if (delta.type === "text") {
    if (last?.type === "text") blocks[blocks.length - 1] = { ...last, text: last.text + delta.text };
    else blocks.push({ type: "text", text: delta.text });
    return;
  }
  const { type: _, text, ...marks } = delta;
  const goesOn = last?.type === "thinking" && last.signature === undefined && last.field === delta.field;
  if (goesOn) blocks[blocks.length - 1] = { ...last, ...marks, text: last.text + text };
  else blocks.push({ type: "thinking", text, ...marks, model });
}

function assemble(draft: Draft, stop: StopReason, usage: Usage): Reply {
  const inOrder = [...draft.calls].sort(([a], [b]) => a - b);
  const calls = inOrder.map(([, { id, name, raw }]): CallBlock => {
    const args = parseArguments(raw);
    return { type: "call", id, name, args: args.ok ? args.value : null, raw };
  });
  const message: Message = { role: "assistant", blocks: [...draft.blocks, ...calls] };
  return { type: "message", message, text: textOf(draft.blocks), calls, stop, usage };
}
