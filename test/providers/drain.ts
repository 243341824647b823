import type { ModelClient, ModelDelta, ModelRequest } from "../../src/model/ports.ts";

export function requestWith(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  const messages: ModelRequest["messages"] = [{ role: "user", blocks: [{ type: "text", text }] }];
  return { model: "openai/gpt-4o-mini", agent: "writer", step: "draft", messages, tools: [], ...more };
}

export interface Drained {
  readonly deltas: ModelDelta[];
  readonly text: string;
  readonly thinking: string;
  /** Each call with its arguments put together, by its place. */
  readonly calls: { id: string; name: string; raw: string }[];
  readonly end: Extract<ModelDelta, { type: "done" | "failed" }> | undefined;
}

/** Reads a stream to its end; `onDelta` sees each piece first. */
export async function drain(
  client: ModelClient,
  request: ModelRequest,
  {
    signal = new AbortController().signal,
    onDelta = () => {},
  }: { signal?: AbortSignal; onDelta?: (delta: ModelDelta) => void } = {},
): Promise<Drained> {
  const deltas: ModelDelta[] = [];
  for await (const delta of client.stream(request, signal)) {
    deltas.push(delta);
    onDelta(delta);
  }
  const calls: Drained["calls"] = [];
  let text = "";
  let thinking = "";
  for (const delta of deltas) {
    if (delta.type === "text") text += delta.text;
    if (delta.type === "thinking") thinking += delta.text;
    if (delta.type === "call") calls[delta.index] = { id: delta.id, name: delta.name, raw: "" };
    const call = delta.type === "args" ? calls[delta.index] : undefined;
    if (delta.type === "args" && call !== undefined) call.raw += delta.text;
  }
  const last = deltas.at(-1);
  return { deltas, text, thinking, calls, end: last?.type === "done" || last?.type === "failed" ? last : undefined };
}
