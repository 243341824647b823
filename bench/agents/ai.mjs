/** `streamText` of the Vercel AI SDK. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { instructions, keep, measure, prompt, server, toolName, toolText } from "./client.mjs";

const model = createOpenAICompatible({ name: "fake", includeUsage: true, ...server })(server.model);
const inputSchema = z.object({ todos: z.array(z.object({ content: z.string(), status: z.string() })) });
const tools = {
  [toolName]: tool({ description: toolText, inputSchema, execute: ({ todos }) => keep(todos) }),
};
const stopWhen = (stepCountIs ?? isStepCount)(20);

await measure(async () => {
  const result = streamText({ model, instructions, system: instructions, prompt, tools, stopWhen });
  let text = "";
  for await (const piece of result.textStream) text += piece;
  return text;
});
