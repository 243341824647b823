/** `@openai/agents`, over Chat Completions, its tracing off. */
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { instructions, keep, measure, prompt, server, toolName, toolText } from "./client.mjs";

setTracingDisabled(true);
const model = new OpenAIChatCompletionsModel(new OpenAI({ ...server, maxRetries: 0 }), server.model);
const parameters = z.object({ todos: z.array(z.object({ content: z.string(), status: z.string() })) });
const execute = ({ todos }) => keep(todos);
const agent = new Agent({
  name: "keeper",
  instructions,
  model,
  tools: [tool({ name: toolName, description: toolText, parameters, execute })],
});

await measure(async () => {
  const stream = await run(agent, prompt, { stream: true });
  for await (const _ of stream) continue;
  await stream.completed;
  return stream.finalOutput ?? "";
});
