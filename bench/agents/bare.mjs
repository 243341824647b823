/** The bare loop over the `openai` SDK: what anybody would write. */
import { OpenAI } from "openai";
import { instructions, keep, measure, prompt, server, toolName, toolText } from "./client.mjs";

const client = new OpenAI({ ...server, maxRetries: 0 });
const text = { type: "string" };
const todo = { type: "object", properties: { content: text, status: text }, required: ["content", "status"] };
const parameters = { type: "object", properties: { todos: { type: "array", items: todo } }, required: ["todos"] };
const tools = [{ type: "function", function: { name: toolName, description: toolText, parameters } }];

await measure(async () => {
  const messages = [
    { role: "system", content: instructions },
    { role: "user", content: prompt },
  ];
  for (;;) {
    const { text, calls } = await ask(messages);
    if (calls.length === 0) return text;
    messages.push({ role: "assistant", content: text === "" ? null : text, tool_calls: calls });
    for (const {
      id,
      function: { arguments: args },
    } of calls) {
      const content = await keep(JSON.parse(args).todos);
      messages.push({ role: "tool", tool_call_id: id, content });
    }
  }
});

async function ask(messages) {
  const options = { stream: true, stream_options: { include_usage: true } };
  const stream = await client.chat.completions.create({ model: server.model, messages, tools, ...options });
  let text = "";
  const calls = [];
  for await (const { choices } of stream) {
    const delta = choices[0]?.delta;
    text += delta?.content ?? "";
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index] ??= { id: part.id, type: "function", function: { name: "", arguments: "" } });
      call.function.name += part.function?.name ?? "";
      call.function.arguments += part.function?.arguments ?? "";
    }
  }
  return { text, calls };
}
