/** An agent of Mastra. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { instructions, keep, measure, prompt, server, toolName, toolText } from "./client.mjs";

const model = createOpenAICompatible({ name: "fake", includeUsage: true, ...server })(server.model);
const inputSchema = z.object({ todos: z.array(z.object({ content: z.string(), status: z.string() })) });
const execute = async (input) => keep(input.todos ?? input.context?.todos);
const keeper = createTool({ id: toolName, description: toolText, inputSchema, execute });
const agent = new Agent({ id: "keeper", name: "keeper", instructions, model, tools: { [toolName]: keeper } });

await measure(async () => {
  const stream = await agent.stream(prompt, { maxSteps: 20 });
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  return text;
});
