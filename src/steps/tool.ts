import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Block } from "../model/message.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Body } from "../model/plan.ts";
import type { Attempt, Execute, Tool, ToolOutput } from "../model/ports.ts";
import type { Result } from "../model/result.ts";

export interface ToolOptions {
  /** Those the step at that path may call, by their canonical names. */
  readonly tools: (path: string) => Promise<readonly Tool[]>;
  /** The tools of these names that MCP servers of the step have, until they are closed. */
  readonly serve?: (
    attempt: Attempt,
    names: readonly string[],
  ) => Promise<Result<{ readonly tools: readonly Tool[]; close(): Promise<void> }, Failure>>;
  /** Absolute; nothing outside is reachable. */
  readonly workspace: string;
  /** What is wrong with a value by a JSON Schema; empty when nothing is. */
  readonly checkValue: (schema: Json, value: Json) => Promise<readonly string[]>;
}

type ToolBody = Extract<Body, { kind: "tool" }>;

/** The kind `tool`: one call that the author of the workflow wrote, without a model. */
export function createTool(options: ToolOptions): Execute {
  return async (attempt) => {
    const { step, path, signal } = attempt;
    const { body } = step;
    if (body.kind !== "tool") throw new Error(`a ${body.kind} step was given to tool`);
    if (signal.aborted) return { outcome: "cancelled" };
    const served = body.mcp && (await options.serve?.(attempt, [body.tool]));
    if (served?.ok === false) return signal.aborted ? { outcome: "cancelled" } : failure(served.error);
    try {
      const found = served?.value.tools ?? (await options.tools(path));
      return await callTool(attempt, body, { ...options, found });
    } finally {
      await served?.value.close();
    }
  };
}

async function callTool(
  { inputs, signal }: Attempt,
  body: ToolBody,
  options: ToolOptions & { readonly found: readonly Tool[] },
): Promise<StepResult> {
  const tool = options.found.find(({ name }) => name === body.tool);
  if (tool === undefined) return failure({ kind: "unavailable", message: `there is no tool \`${body.tool}\`` });
  const args = own(inputs, "with") ?? {};
  const problems = isJsonObject(args) ? await options.checkValue(tool.parameters, args) : ["it must be a map"];
  if (!isJsonObject(args) || problems.length > 0)
    return failure({ kind: "input", message: `\`with\` does not fit \`${tool.name}\`: ${problems.join("; ")}` });
  const answer = await tool.run(args, { workspace: options.workspace, signal });
  if (signal.aborted) return { outcome: "cancelled" };
  return answer.ok ? conclude(answer.value, body, options) : failure({ kind: "tool_error", message: answer.error });
}

async function conclude(
  { blocks, structured }: ToolOutput,
  { tool, output }: ToolBody,
  { checkValue }: ToolOptions,
): Promise<StepResult> {
  const text = blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  const result = { text, content: structured ?? contentOf(blocks) };
  const outputs = isJsonObject(structured) ? structured : { text };
  if (output === undefined) return { outcome: "success", result, outputs };
  if (structured === undefined)
    return failure({ kind: "output", message: `\`${tool}\` gave text and no structured content` }, { text });
  const problems = await checkValue(output.json, structured);
  if (problems.length === 0) return { outcome: "success", result, outputs };
  return failure({ kind: "output", message: `what \`${tool}\` gave does not fit: ${problems.join("; ")}` }, { text });
}

/** As the tool gave it: a list of blocks. */
function contentOf(blocks: readonly Block[]): Json {
  return blocks.map((block) => JSON.parse(JSON.stringify(block)) as Json);
}

function failure(error: Failure, outputs?: Json): StepResult {
  return { outcome: "failure", error, ...(outputs !== undefined && { outputs }) };
}
