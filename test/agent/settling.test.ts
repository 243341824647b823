import { describe, expect, it } from "vitest";
import { Mail } from "../../src/agent/mail.ts";
import type { AgentCheck } from "../../src/agent/agent-run.ts";
import { checkFact } from "../../src/agent/check.ts";
import { guardsOf } from "../../src/agent/guard.ts";
import type { CheckFact } from "../../src/agent/history.ts";
import type { ModelClient, ModelRequest } from "../../src/model/ports.ts";
import { err, ok } from "../../src/model/result.ts";
import { playing, type Ran, running, tool } from "./running.ts";

const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } }, additionalProperties: false };

/** Plays `turns` and keeps what was asked. */
function watched(
  turns: string,
  facts: Partial<ModelClient["facts"]> = {},
): { client: ModelClient; asked: ModelRequest[] } {
  const inner = playing(turns);
  const asked: ModelRequest[] = [];
  const client: ModelClient = {
    provider: inner.provider,
    facts: { ...inner.facts, ...facts },
    stream(request, signal) {
      asked.push(request);
      return inner.stream(request, signal);
    },
  };
  return { client, asked };
}

function checking(...facts: readonly (CheckFact | undefined)[]): AgentCheck & { readonly ran: () => number } {
  let count = 0;
  return { script: "npm test", max: 2, run: () => Promise.resolve(facts[count++]), ran: () => count };
}

const failed: CheckFact = { status: "failed", text: "1 test failed\n[exited with 1]" };
const passed: CheckFact = { status: "passed", text: "" };

function lastUserText({ events }: Ran): string {
  const said = events.findLast((event) => event.type === "message" && event.message.role === "user");
  return JSON.stringify(said);
}

describe("an answer in prose where a shape was asked for", () => {
  it("is asked for again with only finish on offer", async () => {
    const { client, asked } = watched("- text: I think it is five.\n- calls: [{ name: finish, args: { n: 5 } }]");
    const ran = await running(client, { output, tools: [tool("Read")] });
    expect(ran.result).toMatchObject({ outcome: "done", output: { n: 5 }, turns: 2 });
    expect(asked.map(({ tools, toolChoice }) => [tools.map(({ name }) => name), toolChoice])).toEqual([
      [["Read", "finish"], undefined],
      [["finish"], "required"],
    ]);
    expect(ran.events.filter(({ type }) => type === "guard")).toMatchObject([{ rule: "output", action: "refuse" }]);
  });

  it("names the places of what does not fit, with the schema's path", async () => {
    const ran = await running('- text: \'{"n": "five"}\'\n- calls: [{ name: finish, args: { n: 5 } }]', { output });
    expect(ran.result.outcome).toBe("done");
    expect(lastUserText({ ...ran, events: ran.events.slice(0, -2) })).toContain("/n: ");
  });

  it("shares its two repairs with calls of finish that do not fit", async () => {
    const ran = await running(
      "- text: five\n- calls: [{ name: finish, args: { n: x } }]\n- { text: still five, calls: [{ name: finish, args: {} }] }\n- calls: [{ name: finish, args: { n: 5 } }]",
      { output },
    );
    expect(ran.result).toMatchObject({ outcome: "invalid_output", turns: 3, text: "still five" });
  });

  it("an empty one too, and one that is only thought", async () => {
    const thinking: ModelClient = {
      ...playing("- text: x"),
      async *stream() {
        await Promise.resolve();
        yield { type: "thinking", text: "It is five." };
        yield {
          type: "done",
          stop: "end",
          usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 1, estimated: false, cost: 0 },
        };
      },
    };
    expect((await running(thinking, { output })).result).toMatchObject({
      outcome: "invalid_output",
      turns: 3,
      text: "",
    });
    expect((await running(thinking)).result).toMatchObject({ outcome: "invalid_output", turns: 1 });
    const empty = await running("- text: ''\n- calls: [{ name: finish, args: { n: 5 } }]", { output });
    expect(empty.result).toMatchObject({ outcome: "done", turns: 2 });
  });

  it("is max_turns when no turn is left to ask in", async () => {
    const { result } = await running("- text: five\n- text: five it is", { output, maxTurns: 1 });
    expect(result).toMatchObject({ outcome: "max_turns", text: "five it is" });
  });

  it.each([
    ["deep", `{"n": ${"[".repeat(70)}${"]".repeat(70)}}`],
    ["a number out of range", '{"n": 1e999}'],
    ["a number that is not kept exactly", '{"n": 9007199254740993}'],
    ["__proto__", '{"n": 5, "__proto__": {"x": 1}}'],
    ["constructor as an extra key", '{"n": 5, "constructor": 1}'],
    ["a hundred thousand brackets", "{".repeat(100_000)],
  ])("does not pass with hostile JSON: %s", async (_, text) => {
    const turn = `- text: ${JSON.stringify(text)}\n`;
    const { result } = await running(turn.repeat(3), { output });
    expect(result).toMatchObject({ outcome: "invalid_output" });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it("takes the last of two equal keys, as JSON does", async () => {
    expect((await running('- text: \'{"n": "x", "n": 5}\'', { output })).result.output).toEqual({ n: 5 });
  });
});

describe("a model that holds answers to a schema by itself", () => {
  it("is asked by schema when there are no tools", async () => {
    const { client, asked } = watched("- text: '{\"n\": 5}'", { jsonSchema: true });
    expect((await running(client, { output })).result).toMatchObject({ outcome: "done", output: { n: 5 } });
    expect(asked[0]).toMatchObject({ answerSchema: output, tools: [] });
  });

  it.each([
    ["an open object", { type: "object", required: ["n"], properties: { n: { type: "integer" } } }],
    ["an optional property", { ...output, properties: { n: { type: "integer" }, m: { type: "integer" } } }],
    ["a bound", { ...output, properties: { n: { type: "integer", minimum: 3 } } }],
    ["a reference inside", { ...output, properties: { n: { $ref: "#" } } }],
    ["an open object in a list", { ...output, properties: { n: { type: "array", items: { type: "object" } } } }],
  ])("is asked by finish for what some provider refuses as a schema: %s", async (_, schema) => {
    const { client, asked } = watched("- calls: [{ name: finish, args: { n: 5 } }]", { jsonSchema: true });
    await running(client, { output: schema });
    expect(asked[0]).not.toHaveProperty("answerSchema");
    expect(asked[0]?.tools).toMatchObject([{ name: "finish" }]);
  });

  it("is asked by finish when there are tools, or when it did not hold it", async () => {
    const beside = watched("- calls: [{ name: finish, args: { n: 5 } }]", { jsonSchema: true });
    await running(beside.client, { output, tools: [tool("Read")] });
    expect(beside.asked[0]).not.toHaveProperty("answerSchema");
    const { client, asked } = watched("- text: five\n- calls: [{ name: finish, args: { n: 5 } }]", {
      jsonSchema: true,
    });
    expect((await running(client, { output })).result.output).toEqual({ n: 5 });
    expect(asked[1]).toMatchObject({ tools: [{ name: "finish" }], toolChoice: "required" });
    expect(asked[1]).not.toHaveProperty("answerSchema");
  });
});

describe("the check of a step", () => {
  it("lets an agent be done when it passes", async () => {
    const check = checking(passed);
    const { result, events } = await running("- text: done", { check });
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    const types = events.map(({ type }) => type).filter((type) => type !== "message.delta");
    expect(types.slice(-3)).toEqual(["turn.finished", "check.started", "check.finished"]);
  });

  it("sends its output back into the same conversation when it fails", async () => {
    const ran = await running("- text: done\n- text: 'now: ${{ message }}'", { check: checking(failed, passed) });
    expect(ran.result).toMatchObject({ outcome: "done", turns: 2 });
    expect(ran.result.text).toContain("$ npm test\n1 test failed");
  });

  it("fails the agent after its extra tries", async () => {
    const check = checking(failed, failed, failed, failed);
    const { result } = await running("- text: a\n- text: b\n- text: c\n- text: d", { check });
    expect(result).toMatchObject({ outcome: "check", text: "c", turns: 3 });
    expect(result.reason).toBe("the check failed 3 times: [exited with 1]");
    expect(check.ran()).toBe(3);
  });

  it("takes an answer by finish back, and gives it all its repairs anew", async () => {
    const finish = (value: string): string => `- calls: [{ name: finish, args: { n: ${value} } }]\n`;
    const { result } = await running(
      finish("x") + finish("x") + finish("1") + finish("x") + finish("x") + finish("2"),
      {
        output,
        check: checking(failed, passed),
      },
    );
    expect(result).toMatchObject({ outcome: "done", output: { n: 2 }, turns: 6 });
  });

  it("that cannot be run fails the agent at once", async () => {
    const check = checking({ status: "broken", text: "bash was not found" });
    const { result } = await running("- text: a\n- text: b", { check });
    expect(result).toMatchObject({
      outcome: "check",
      reason: "the check could not be run: bash was not found",
      turns: 1,
    });
  });

  it("that fails in the last turn is max_turns", async () => {
    const { result } = await running("- text: a\n- text: b", { check: checking(failed, failed), maxTurns: 1 });
    expect(result).toMatchObject({ outcome: "max_turns", turns: 2 });
  });

  it("that is cancelled cancels the agent", async () => {
    const abort = new AbortController();
    const check: AgentCheck = {
      script: "x",
      max: 1,
      run: () => {
        abort.abort();
        return Promise.resolve(undefined);
      },
    };
    expect((await running("- text: a", { check, signal: abort.signal })).result.outcome).toBe("cancelled");
  });

  it("does not judge a refusal or an empty answer", async () => {
    const check = checking(passed);
    expect((await running("- { text: No., stop: refusal }", { check })).result.outcome).toBe("refused");
    expect((await running("- text: ''", { check })).result.outcome).toBe("invalid_output");
    expect(check.ran()).toBe(0);
  });

  it("reads the end of a command", () => {
    const outputs = { stdout: "out", stderr: "err", "exit-code": 3 };
    const error = { kind: "exit" as const, message: "exited with 3: err" };
    expect(checkFact({ outcome: "failure", error, outputs })).toEqual({
      status: "failed",
      text: "out\nerr\n[exited with 3]",
    });
    expect(checkFact({ outcome: "success", result: {}, outputs })).toEqual({ status: "passed", text: "out\nerr\n" });
    expect(checkFact({ outcome: "failure", error: { kind: "unavailable", message: "no bash" } })).toMatchObject({
      status: "broken",
    });
    expect(checkFact({ outcome: "cancelled" })).toBeUndefined();
  });
});

describe("an answer behind failing tools", () => {
  const failing = tool("Bash", {
    readOnly: false,
    run: ({ text }) => Promise.resolve(err(`failed ${typeof text === "string" ? text : ""}`)),
  });
  const call = (name: string, text: string): string => `- calls: [{ name: ${name}, args: { text: ${text} } }]\n`;
  const guards = guardsOf(false);

  it("is tool_error when the last three turns were nothing but failures", async () => {
    const turns = `${call("Bash", "a")}${call("Bash", "b")}${call("Bash", "c")}- text: All is well.`;
    const { result } = await running(turns, { tools: [failing], guards });
    expect(result).toMatchObject({ outcome: "tool_error", text: "All is well.", turns: 4 });
    expect(result.reason).toContain("`Bash`: failed c");
  });

  it("is an answer when the failure was one, or something worked since", async () => {
    const tools = [failing, tool("Read")];
    expect((await running(`${call("Bash", "a")}- text: It is broken.`, { tools, guards })).result.outcome).toBe("done");
    const mended = `${call("Bash", "a")}${call("Bash", "b")}${call("Bash", "c")}${call("Read", "d")}- text: It is broken.`;
    expect((await running(mended, { tools, guards })).result.outcome).toBe("done");
  });

  it("is not even waited for when arguments cannot be read three times in a row", async () => {
    const broken = "- calls: [{ name: Read, raw: '{\"text\": ' }]\n";
    const { result } = await running(`${broken.repeat(3)}- text: x`, { tools: [tool("Read")], guards });
    expect(result).toMatchObject({ outcome: "tool_error", turns: 3 });
    const mended = await running(`${broken.repeat(2)}${call("Read", "a")}${broken.repeat(2)}- text: x`, {
      tools: [tool("Read")],
      guards,
    });
    expect(mended.result.outcome).toBe("done");
  });
});

describe("what is said to an agent from outside", () => {
  it("enters at the border of a turn", async () => {
    const mail = new Mail();
    const read = {
      ...tool("Read"),
      run: () => (mail.put({ from: "b", text: "by the way" }), Promise.resolve(ok({ blocks: [] }))),
    };
    const ran = await running("- calls: [{ name: Read, args: { text: a } }]\n- text: 'heard: ${{ message }}'", {
      tools: [read],
      mail,
    });
    expect(ran.result.text).toBe("heard: by the way");
  });

  it("is waited for before the agent may end, and its answer of before does not count", async () => {
    const mail = new Mail();
    mail.expect("b");
    setTimeout(() => mail.put({ from: "b", text: "the report" }), 20);
    const ran = await running("- text: too early\n- text: 'after ${{ message }}'", { mail });
    expect(ran.result).toMatchObject({ outcome: "done", turns: 2, text: "after the report" });
  });
});
