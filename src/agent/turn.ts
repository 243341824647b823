import type { AgentEvent, Delta, TurnIds } from "../model/event.ts";
import type { Block, Message, StopReason, Usage } from "../model/message.ts";
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
    }
  | { readonly type: "failed"; readonly text: string; readonly failure: ModelFailure };

export interface TurnCall {
  readonly ids: TurnIds;
  readonly client: ModelClient;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
}

/** Streams one reply: its pieces go out as events, the whole comes back. Calls stand last, in the model's order. */
export async function* streamTurn({ ids, client, request, signal }: TurnCall): AsyncGenerator<AgentEvent, Reply> {
  const draft: Draft = { blocks: [], calls: new Map() };
  for await (const delta of client.stream(request, signal)) {
    if (delta.type === "failed") return { type: "failed", text: textOf(draft.blocks), failure: delta.failure };
    if (delta.type === "done") return assemble(draft, delta.stop, delta.usage);
    const shown = add(draft, delta);
    if (shown !== undefined) yield { ...ids, type: "message.delta", delta: shown };
  }
  const message = `the ${client.provider} stream ended without saying that it is done`;
  return { type: "failed", text: textOf(draft.blocks), failure: { kind: "provider_error", message } };
}

type TextBlock = Extract<Block, { type: "text" | "thinking" }>;
type Piece = Extract<ModelDelta, { type: "text" | "thinking" | "call" | "args" }>;

interface Draft {
  blocks: TextBlock[];
  calls: Map<number, { id: string; name: string; raw: string }>;
}

function add(draft: Draft, delta: Piece): Delta | undefined {
  switch (delta.type) {
    case "text":
    case "thinking":
      addText(draft.blocks, delta);
      return { type: delta.type, text: delta.text };
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

function addText(blocks: TextBlock[], { type, ...piece }: Extract<Piece, { type: "text" | "thinking" }>): void {
  const last = blocks.at(-1);
  const field = last?.type === "thinking" ? last.field : undefined;
  const pieceField = "field" in piece ? piece.field : undefined;
  if (last?.type !== type || field !== pieceField) blocks.push({ type, ...piece });
  else blocks[blocks.length - 1] = { ...last, ...piece, text: last.text + piece.text };
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

function textOf(blocks: readonly TextBlock[]): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}
