import { type JsonObject, isJsonObject, own } from "../model/json.ts";
import type { Tool, ToolOutput } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { answer, plural } from "./answer.ts";

const states = ["pending", "in_progress", "completed", "cancelled"];

/** Takes an agent's plan. The list stands in the call itself, where the log has it and the guard of the agent reads it. */
export const todoWriteTool: Tool = {
  name: "TodoWrite",
  description:
    "Keeps your plan: the whole list each time, in order. Use it for work of three steps and more; exactly one item is " +
    "in_progress while you work, and an item is completed as soon as it is.",
  readOnly: false,
  parameters: {
    type: "object",
    required: ["todos"],
    additionalProperties: false,
    properties: {
      todos: {
        type: "array",
        maxItems: 200,
        items: {
          type: "object",
          required: ["content", "status"],
          properties: {
            content: { type: "string", minLength: 1, maxLength: 2000, description: "What is to be done" },
            status: { type: "string", enum: states },
            activeForm: {
              type: "string",
              maxLength: 2000,
              description: "The same while it is being done: Running tests",
            },
          },
        },
      },
    },
  },
  aliases: { names: ["todowrite", "write_todos"], parameters: {} },
  run: (args) => Promise.resolve(count(args)),
};

function count(args: JsonObject): Result<ToolOutput, string> {
  const todos = own(args, "todos");
  const list = Array.isArray(todos) ? todos.filter(isJsonObject) : [];
  if (list.length === 0) return answer("The plan is empty.");
  const found = states.flatMap((state) => {
    const amount = list.filter((todo) => own(todo, "status") === state).length;
    return amount === 0 ? [] : [`${amount} ${state.replace("_", " ")}`];
  });
  return answer(`The plan has ${plural(list.length, "item")}: ${found.join(", ")}.`);
}
