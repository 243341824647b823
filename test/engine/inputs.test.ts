import { describe, expect, it } from "vitest";
import type { Json, JsonObject } from "../../src/model/json.ts";
import { at, plan } from "./plan-builder.ts";
import { brief, run } from "./running.ts";

const inputs = [
  { name: "count", schema: { json: { type: "integer", minimum: 1 } }, at },
  { name: "tags", schema: { json: { type: "array", items: { type: "string" } } }, default: { json: ["none"] }, at },
  { name: "constructor", schema: { json: {} }, default: { json: 7 }, at },
];
const sub = {
  name: "sub",
  inputs,
  steps: [{ id: "x", set: { got: "${{ inputs }}" } }],
  outputs: { got: "${{ inputs }}" },
};

async function call(given: JsonObject): Promise<{ outputs: Json; error: Json | undefined; lines: string[] }> {
  const steps = [{ id: "s", calls: "sub", set: given }];
  const { result, events } = await run(plan({ steps, outputs: { got: "${{ steps.s.outputs.got }}" } }, { sub }));
  return { outputs: result.outputs, error: result.error as Json | undefined, lines: brief(events) };
}

describe("the inputs of a workflow that is called", () => {
  it("get their defaults and their declared names, and inherited names are none", async () => {
    const { outputs } = await call({ COUNT: 2 });
    expect(outputs).toEqual({ got: { count: 2, tags: ["none"], constructor: 7 } });
  });

  const wrong: readonly (readonly [what: string, given: JsonObject, message: string])[] = [
    ["is missing", {}, "`sub` needs the input `count`, which was not given"],
    ["is out of range", { count: 0 }, "the input `count` of `sub` must be at least 1"],
    ["is wrong inside", { count: 1, tags: ["a", 2] }, "the input `tags` of `sub` at `1` must be text"],
  ];
  it.each(wrong)("fail the call as `input` when one %s, and nothing of it runs", async (_what, given, message) => {
    const { error, lines } = await call(given);
    expect(error).toMatchObject({ kind: "input", step: "s", position: at });
    expect((error as { message: string }).message).toContain(message);
    expect(lines).toEqual(["s failure input"]);
  });
});
