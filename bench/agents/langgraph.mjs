/** The prebuilt agent of LangGraph. */
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { instructions, keep, measure, prompt, server, toolName, toolText } from "./client.mjs";

const { baseURL, apiKey, model } = server;
const llm = new ChatOpenAI({ model, apiKey, configuration: { baseURL }, streaming: true, maxRetries: 0 });
const schema = z.object({ todos: z.array(z.object({ content: z.string(), status: z.string() })) });
const tools = [tool(({ todos }) => keep(todos), { name: toolName, description: toolText, schema })];
const agent = createReactAgent({ llm, tools, prompt: instructions });

await measure(async () => {
  const messages = [{ role: "user", content: prompt }];
  let text = "";
  for await (const [message] of await agent.stream({ messages }, { streamMode: "messages", recursionLimit: 100 }))
    if (message.getType() === "ai" && typeof message.content === "string") text += message.content;
  return text;
});
