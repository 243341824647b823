import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { type JsonObject } from "../../src/model/json.ts";
import { of } from "./lineage.ts";
import { Place } from "./flow.ts";
import { type ModelServer, startModelServer } from "./model-server.ts";

const args = { description: "look", prompt: "please look", subagent_type: "looks" };
const fixtures = [
  { match: { toolCallId: "call_task" }, response: { content: "The child said what it saw." } },
  {
    match: { userMessage: "please lead" },
    response: { toolCalls: [{ id: "call_task", name: "Task", arguments: args }] },
  },
  { match: { toolCallId: "call_list" }, response: { content: "I saw it." } },
  {
    match: { userMessage: "please look" },
    response: { toolCalls: [{ id: "call_list", name: "LS", arguments: { path: "." } }] },
  },
];

let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer(fixtures);
});
afterAll(() => server.close());

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function place(limits = ""): Place {
  const made = new Place({
    "flow.yaml": `model: { id: small, base-url: "${server.url}", price: { input: 1, output: 1 } }
agents:
  looks: { instructions: Look., tools: [LS] }
steps:
  a: { agent: { prompt: please lead, tools: [], subagents: [looks], temperature: 0.7, options: { service_tier: flex }${limits} } }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`,
  });
  places.push(made);
  return made;
}

/** Requests since `from`, by what was asked. */
async function requests(from: number): Promise<{ readonly asked: string; readonly body: JsonObject }[]> {
  return (await server.requests()).slice(from).map(({ body }) => {
    const text = JSON.stringify(body);
    const who = text.includes("please lead") ? "lead" : "looks";
    return { asked: `${who} ${text.includes("call_") ? "second" : "first"}`, body: body as JsonObject };
  });
}

describe("sub-agents of a model behind a server", () => {
  it("are asked with their own settings, and never with their parent's", async () => {
    const from = (await server.requests()).length;
    const { code, stdout } = await place().flow(["run", "flow.yaml"]);
    expect([code, stdout]).toEqual([0, "text: The child said what it saw.\n"]);
    const made = await requests(from);
    expect(made.map(({ asked }) => asked)).toEqual(["lead first", "looks first", "looks second", "lead second"]);
    expect(made.map(({ body }) => [body["temperature"], body["service_tier"]])).toEqual([
      [0.7, "flex"],
      [undefined, undefined],
      [undefined, undefined],
      [0.7, "flex"],
    ]);
  });

  it("are not asked a second time by a resume, and what they cost counts", async () => {
    const run = place(", limits: { tokens: 100000 }");
    await run.flow(["run", "flow.yaml"]);
    const [id = ""] = run.runs();
    const whole = run.log().split("\n");
    const events = run.events();
    const cutBehind = async (last: (event: LogLine) => boolean): Promise<string[]> => {
      const at = events.findIndex(last);
      run.write(`.flow/runs/${id}/log.jsonl`, `${whole.slice(0, at + 1).join("\n")}\n`);
      const from = (await server.requests()).length;
      const { code, stdout } = await run.flow(["resume", id]);
      expect([code, stdout]).toEqual([0, "text: The child said what it saw.\n"]);
      return (await requests(from)).map(({ asked }) => asked);
    };
    expect(await cutBehind((event) => event.type === "agent.finished" && event.agent === "a@1.1")).toEqual([
      "lead second",
    ]);
    expect(await cutBehind((event) => event.type === "tool.finished" && event.name === "LS")).toEqual([
      "looks second",
      "lead second",
    ]);
    const spent = of(events, "budget.settled").reduce((sum, { tokens }) => sum + tokens, 0);
    run.write("flow.yaml", run.read("flow.yaml").replace("tokens: 100000", `tokens: ${spent - 1}`));
    const at = events.findIndex((event) => event.type === "agent.finished" && event.agent === "a@1.1");
    run.write(`.flow/runs/${id}/log.jsonl`, `${whole.slice(0, at + 1).join("\n")}\n`);
    const from = (await server.requests()).length;
    const { code } = await run.flow(["resume", id]);
    expect([code, await requests(from)]).toEqual([4, []]);
    expect(of(run.events(), "budget.exceeded")[0]).toMatchObject({ of: "agent `a`", limit: "tokens" });
  });
});
