import { describe, expect, it } from "vitest";
import { compileSchema } from "../../src/jsonschema/compile.ts";
import type { Json, JsonObject } from "../../src/model/json.ts";
import type { StepResult } from "../../src/model/outcome.ts";
import type { Body } from "../../src/model/plan.ts";
import type { Tool, ToolCall, ToolOutput } from "../../src/model/ports.ts";
import { err, ok, type Result } from "../../src/model/result.ts";
import { createTool } from "../../src/steps/tool.ts";
import { attempt } from "./attempt.ts";

interface Called {
  readonly args: JsonObject;
  readonly call: ToolCall;
}

interface Given {
  readonly answer?: Result<ToolOutput, string>;
  readonly inputs?: JsonObject;
  readonly output?: Json;
  readonly name?: string;
  readonly cancel?: "before" | "meanwhile";
}

async function call(given: Given): Promise<{ result: StepResult; calls: Called[]; loads: number }> {
  const { answer = ok({ blocks: [{ type: "text", text: "hi" }] }), inputs = {}, output, name = "Echo" } = given;
  const calls: Called[] = [];
  const cancel = new AbortController();
  let loads = 0;
  const tool: Tool = {
    name: "Echo",
    description: "",
    readOnly: true,
    parameters: {
      type: "object",
      required: ["text"],
      additionalProperties: false,
      properties: { text: { type: "string" } },
    },
    run: (args, made) => {
      calls.push({ args, call: made });
      if (given.cancel === "meanwhile") cancel.abort();
      return Promise.resolve(answer);
    },
  };
  const execute = createTool({
    tools: () => Promise.resolve((loads++, [tool])),
    workspace: "/the/workspace",
    checkValue: async (schema, value) => {
      const check = await compileSchema(schema);
      return check.ok ? check.value(value).map((issue) => issue.message) : ["a schema that cannot be used"];
    },
  });
  if (given.cancel === "before") cancel.abort();
  const body: Body = { kind: "tool", tool: name, ...(output !== undefined && { output: { json: output } }) };
  return { result: await execute(attempt("tool", body, inputs, cancel.signal)), calls, loads };
}

const fine = { with: { text: "hello" } };

describe("a tool step", () => {
  it("calls the tool with its arguments in the workspace, and gives its text", async () => {
    const { result, calls } = await call({ inputs: fine });
    expect(result).toEqual({
      outcome: "success",
      result: { text: "hi", content: [{ type: "text", text: "hi" }] },
      outputs: { text: "hi" },
    });
    expect(calls).toMatchObject([{ args: { text: "hello" }, call: { workspace: "/the/workspace" } }]);
  });

  it("gives the fields of structured content", async () => {
    const answer = ok({ blocks: [{ type: "text", text: "2" }], structured: { count: 2 } } as const);
    const output = { type: "object", required: ["count"], properties: { count: { type: "integer" } } };
    const { result } = await call({ inputs: fine, answer, output });
    expect(result).toEqual({ outcome: "success", result: { text: "2", content: { count: 2 } }, outputs: { count: 2 } });
  });

  it("fails with kind `tool_error` and the tool's own words", async () => {
    const { result } = await call({ inputs: fine, answer: err("nothing there") });
    expect(result).toEqual({ outcome: "failure", error: { kind: "tool_error", message: "nothing there" } });
  });

  const wrong: readonly (readonly [what: string, inputs: JsonObject, problem: string])[] = [
    ["no arguments", {}, "text"],
    ["a wrong type", { with: { text: 1 } }, "must be text"],
    ["an argument too many", { with: { text: "a", other: 1 } }, "other"],
    ["no map", { with: ["text"] }, "it must be a map"],
  ];
  it.each(wrong)("with %s fails as `input` and calls nothing", async (_what, inputs, problem) => {
    const { result, calls } = await call({ inputs });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "input" } });
    expect(result.outcome === "failure" && result.error.message).toContain(problem);
    expect(calls).toEqual([]);
  });

  it("fails as `output` when the content does not fit, or there is none", async () => {
    const output = { type: "object", required: ["count"] };
    const misfit = await call({ inputs: fine, output, answer: ok({ blocks: [], structured: { other: 1 } }) });
    expect(misfit.result).toMatchObject({ error: { kind: "output" }, outputs: { text: "" } });
    const none = await call({ inputs: fine, output });
    expect(none.result).toMatchObject({
      error: { kind: "output", message: "`Echo` gave text and no structured content" },
    });
  });

  it("of a tool that is not there fails as `unavailable`", async () => {
    expect((await call({ name: "Nothing" })).result).toMatchObject({ error: { kind: "unavailable" } });
  });

  it("is cancelled before the call, and during it whatever the tool answers", async () => {
    const before = await call({ inputs: fine, cancel: "before" });
    expect(before).toEqual({ result: { outcome: "cancelled" }, calls: [], loads: 0 });
    expect((await call({ inputs: fine, cancel: "meanwhile" })).result).toEqual({ outcome: "cancelled" });
  });
});
