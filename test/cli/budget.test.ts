import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

/** US dollars for a million tokens. */
const price = { input: 1, output: 10 };

interface Meter {
  readonly url: string;
  /** US dollars of everything that was asked for, also where nobody waited for the reply. */
  readonly spent: () => number;
  readonly calls: () => number;
  close(): void;
}

/** A server that bills: three bytes a token for what it reads, and as many tokens as it may write. It never says that it is done. */
async function meter({ usage = true, delay = 10 } = {}): Promise<Meter> {
  let spent = 0;
  let calls = 0;
  const server: Server = createServer((request, response) => {
    void bodyOf(request).then(async ({ messages, tools, max_tokens: most = 8192 }) => {
      calls += 1;
      const input = Math.ceil(JSON.stringify([messages, tools]).length / 3);
      spent += (input * price.input + most * price.output) / 1e6;
      await new Promise((resolve) => setTimeout(resolve, delay));
      const args = JSON.stringify({ pattern: `*.${calls}` });
      const call = { index: 0, id: `c${calls}`, type: "function", function: { name: "Glob", arguments: args } };
      const chunks = [
        {
          choices: [
            { index: 0, delta: { role: "assistant", content: "y".repeat(usage ? 9 : most * 4), tool_calls: [call] } },
          ],
        },
        { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
        ...(usage
          ? [{ choices: [], usage: { prompt_tokens: input, completion_tokens: most, total_tokens: input + most } }]
          : []),
      ];
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const chunk of chunks)
        response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", ...chunk })}\n\n`);
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, spent: () => spent, calls: () => calls, close };
}

interface Body {
  readonly messages: unknown;
  readonly tools: unknown;
  readonly max_tokens?: number;
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as Body;
}

const opened: { close(): void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

/** A place with `flow.yaml`: `agents` agents at once that would go on for ever. */
async function endless(
  server: Meter,
  {
    agents = 1,
    limits = "",
    step = "",
    model = "",
  }: { agents?: number; limits?: string; step?: string; model?: string },
): Promise<Place> {
  const items = Array.from({ length: agents }, (_, index) => index);
  const place = new Place({
    "flow.yaml": `model: { id: m, base-url: "${server.url}", price: { input: ${price.input}, output: ${price.output} }${model} }
limits: { parallel: 20${limits} }
steps:
  look:
    foreach: [${items.join(", ")}]
    fail-fast: false
    agent: { prompt: Find it., tools: [Glob], max-output: 300, limits: { turns: 0 } }
    ${step}
`,
  });
  opened.push(server, { close: () => place.remove() });
  return place;
}

describe("a limit on cost stops spending", () => {
  it("of twenty agents at once that would never end, together at the limit", { timeout: 60_000 }, async () => {
    const server = await meter();
    const place = await endless(server, { agents: 20, limits: ", cost: 0.10" });
    const { code, stderr } = await place.flow(["run", "flow.yaml"], { patience: 50_000 });
    expect(stderr).toContain("`limits.cost` of the run: $0.10");
    expect(code).toBe(4);
    expect(server.spent()).toBeLessThanOrEqual(0.1);
    // And it is not stopped much before.
    expect(server.spent()).toBeGreaterThan(0.085);
  });

  it("of a step and of each agent run inside of a looser one of the run", async () => {
    const server = await meter();
    const place = await endless(server, { agents: 4, limits: ", cost: 5", step: "limits: { cost: 0.02 }" });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(4);
    expect(server.spent()).toBeLessThanOrEqual(0.02);
    place.write(
      "flow.yaml",
      place.read("flow.yaml").replace("turns: 0", "turns: 0, cost: 0.004").replace("cost: 0.02", "cost: 4"),
    );
    const before = server.spent();
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(4);
    expect(server.spent() - before).toBeLessThanOrEqual(4 * 0.004);
    expect(
      place.events().filter((event) => event.type === "agent.finished" && event.outcome === "budget"),
    ).toHaveLength(4);
  });

  it("within one call of it, of a server that never says what it counted", async () => {
    const server = await meter({ usage: false });
    const place = await endless(server, { limits: ", cost: 0.03" });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(4);
    const settled = place.events().flatMap((event) => (event.type === "budget.settled" ? [event] : []));
    expect(settled.every(({ estimated }) => estimated)).toBe(true);
    expect(server.spent()).toBeLessThanOrEqual(0.03 + 0.005);
  });

  it("after `kill -9` and a resume with the same account", { timeout: 60_000 }, async () => {
    const server = await meter({ delay: 60 });
    const place = await endless(server, { agents: 3, limits: ", cost: 0.06" });
    for (const share of [0.02, 0.035]) {
      const running = place.start([...(server.calls() === 0 ? ["run", "flow.yaml"] : ["resume", "latest"]), "--quiet"]);
      while (server.spent() < share) await new Promise((resolve) => setTimeout(resolve, 5));
      running.kill("SIGKILL");
      expect((await running.ended).code).toBeNull();
    }
    expect((await place.flow(["resume", "latest", "--quiet"])).code).toBe(4);
    expect(server.spent()).toBeLessThanOrEqual(0.06);
    expect(server.spent()).toBeGreaterThan(0.035);
  });
});

describe("a raised limit", () => {
  it("lets a resume go on in the conversation that was stopped, and asks nothing again", async () => {
    const server = await meter();
    for (const of of ["step", "agent"]) {
      const place = await endless(server, of === "step" ? { step: "limits: { tokens: 4000 }" } : {});
      if (of === "agent")
        place.write("flow.yaml", place.read("flow.yaml").replace("turns: 0", "turns: 0, tokens: 4000"));
      expect((await place.flow(["run", "flow.yaml"])).code).toBe(4);
      const replies = place.events().filter((event) => event.type === "message" && event.usage !== undefined).length;
      place.write("flow.yaml", place.read("flow.yaml").replace("tokens: 4000", "tokens: 9000"));
      expect((await place.flow(["resume", "latest"])).code).toBe(4);
      const events = place.events();
      expect(events.find((event) => event.type === "turn.started" && event.agent === "look[0]@2")).toMatchObject({
        turn: replies + 1,
      });
      const taken = events.flatMap((event) => (event.type === "budget.settled" ? [event.tokens] : []));
      expect(taken.reduce((sum, tokens) => sum + tokens, 0)).toBeLessThanOrEqual(9000);
    }
  });
});

describe("--dry-run", () => {
  const flow = (model: string, limits = ""): string => `model: ${model}
${limits}
steps:
  one: { agent: { prompt: hi, tools: [], limits: { turns: 4 } } }
  all: { foreach: [1, 2, 3], agent: { prompt: hi, max-output: 1000, limits: { turns: 0 } }, limits: { cost: 0.5 } }
`;
  const dry = async (text: string): Promise<{ code: number | null; stdout: string; stderr: string }> => {
    const place = new Place({ "flow.yaml": text });
    opened.push({ close: () => place.remove() });
    return place.flow(["run", "flow.yaml", "--dry-run"]);
  };

  it("tells the worst case of each agent step and of the run, and where there is none", async () => {
    const { code, stdout } = await dry(flow("openai/gpt-4o-mini"));
    expect(stdout).toMatch(/at most 5 calls: 640\.0k tokens, \$0\.\d+/);
    expect(stdout).toContain(
      "at most any number of calls (`limits.turns` is 0) × 3 agent runs: $0.500; tokens are unbounded",
    );
    expect(stdout).toMatch(/at most\n {2}\$0\.\d+; tokens are unbounded: `limits.turns` is 0/);
    expect(code).toBe(0);
  });

  it("counts the limits of the run", async () => {
    const { stdout } = await dry(flow("openai/gpt-4o-mini", "limits: { cost: 0.01, tokens: 5000 }"));
    expect(stdout).toContain("at most\n  5.0k tokens, $0.010\n");
  });

  it("refuses a limit on cost over a model without a price, as the run would", async () => {
    const { code, stderr } = await dry(flow('{ id: x, base-url: "http://127.0.0.1:1/v1" }'));
    expect(stderr).toContain("FLOW6006");
    expect(code).toBe(2);
  });
});

describe("a limit on tokens", () => {
  it("holds without any price", async () => {
    const server = await meter();
    const place = await endless(server, { agents: 3, limits: ", tokens: 4000" });
    place.write("flow.yaml", place.read("flow.yaml").replace(/, price: \{[^}]*\}/, ""));
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(stderr).toContain("`limits.tokens` of the run: 4,000 tokens");
    expect(code).toBe(4);
    const settled = place.events().flatMap((event) => (event.type === "budget.settled" ? [event.tokens] : []));
    const sum = settled.reduce((all, tokens) => all + tokens, 0);
    expect(sum).toBeLessThanOrEqual(4000);
    expect(sum).toBeGreaterThan(2500);
  });
});

describe("a limit on cost over a model without a price", () => {
  it("is refused before anything runs, with what to write", async () => {
    const server = await meter();
    const place = await endless(server, { limits: ", cost: 1" });
    place.write("flow.yaml", place.read("flow.yaml").replace(/, price: \{[^}]*\}/, ""));
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(stderr).toContain("FLOW6006");
    expect(stderr).toContain("the price of the model `m` is unknown");
    expect(stderr).toContain("price: { input: 1.25, output: 10 }");
    expect(code).toBe(2);
    expect(place.runs()).toEqual([]);
    expect(server.calls()).toBe(0);
  });
});

describe("limits.duration of an agent", () => {
  it("ends each run of it with `budget`, and so the step", async () => {
    const server = await meter({ delay: 50 });
    const place = await endless(server, {});
    place.write("flow.yaml", place.read("flow.yaml").replace("turns: 0", "turns: 0, duration: 400ms"));
    const { code } = await place.flow(["run", "flow.yaml"]);
    const end = place.events().find((event) => event.type === "agent.finished");
    expect(end).toMatchObject({ outcome: "budget", reason: expect.stringContaining("limits.duration") });
    expect(code).toBe(4);
  });
});

describe("limits.turns of a workflow", () => {
  it("lowers those of every agent run inside", async () => {
    const server = await meter();
    const place = await endless(server, { limits: ", turns: 2" });
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect(place.events().find((event) => event.type === "agent.finished")).toMatchObject({
      outcome: "max_turns",
      turns: 3,
    });
    expect(code).toBe(4);
  });
});
