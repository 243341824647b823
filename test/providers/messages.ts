/** Events of Anthropic's protocol as its server streams them, each with its name. */
export function sseEvents(...events: readonly { readonly type: string }[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

type Streamed = { readonly type: string } & { readonly [key: string]: unknown };

export function messageStart(usage: object = { input_tokens: 10, output_tokens: 1 }): Streamed {
  return { type: "message_start", message: { id: "msg_1", role: "assistant", content: [], usage } };
}

/** One block with its pieces, from its beginning to its end. */
export function block(index: number, content_block: object, ...deltas: readonly object[]): Streamed[] {
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta): Streamed => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

export function textBlock(index: number, ...texts: readonly string[]): Streamed[] {
  return block(index, { type: "text", text: "" }, ...texts.map((text) => ({ type: "text_delta", text })));
}

export function callBlock(index: number, call: { id: string; name: string }, ...args: readonly string[]): Streamed[] {
  const deltas = args.map((partial_json) => ({ type: "input_json_delta", partial_json }));
  return block(index, { type: "tool_use", ...call, input: {} }, ...deltas);
}

export function messageEnd(stop_reason: string, usage: object = { output_tokens: 7 }): Streamed[] {
  return [{ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage }, { type: "message_stop" }];
}
