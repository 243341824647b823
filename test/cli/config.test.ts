import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { messageEnd, messageStart, sseEvents, textBlock } from "../providers/messages.ts";
import { choice, sse, sseHeaders, sseServer, type SseServer } from "../providers/sse-server.ts";
import { Place } from "./flow.ts";

let server: SseServer;
let seen: { url: string; headers: Record<string, unknown>; body: string }[] = [];
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());

let place: Place;
beforeEach(() => {
  seen = [];
  server.answer = ({ url = "", headers }, response, body) => {
    seen.push({ url, headers, body });
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 500_000 };
    const reply = url.endsWith("/messages")
      ? sseEvents(messageStart(), ...textBlock(0, "hello"), ...messageEnd("end_turn"))
      : sse(choice({ content: "hello" }, "stop"), { choices: [], usage });
    response.writeHead(200, sseHeaders).end(reply);
  };
  place = new Place();
});
afterEach(() => place.remove());

const asking = (model: string): string =>
  `name: asking\nsteps:\n  ask: { agent: { name: writer, prompt: hi, tools: [] }, model: ${model} }\n  look: { needs: [ask], run: env }\n`;

describe("flow.config.yaml", () => {
  it("names servers and prices, and their keys are no step's business", async () => {
    place.write(
      "flow.config.yaml",
      `providers:
  gateway: { base-url: "${server.url}", key: GATEWAY_KEY, quirks: { max-tokens: max_completion_tokens } }
models:
  gateway/small: { window: 2000000, price: { input: 0.5, output: 2 } }
`,
    );
    place.write("flow.yaml", asking("gateway/small").replace("tools: []", "tools: [], max-output: 77"));
    const { code, stderr, stdout } = await place.flow(["run", "flow.yaml", "-vv"], {
      env: { GATEWAY_KEY: "sk-canary" },
    });
    expect([code, stderr + stdout + place.log()]).toEqual([0, expect.not.stringContaining("canary") as string]);
    expect(seen[0]).toMatchObject({ url: "/v1/chat/completions", headers: { authorization: "Bearer sk-canary" } });
    expect(JSON.parse(seen[0]?.body ?? "")).toMatchObject({ model: "small", max_completion_tokens: 77 });
    const events = place.events();
    expect(events.find(({ type }) => type === "agent.started")).toMatchObject({ provider: "gateway" });
    expect(events.at(-1)).toMatchObject({ usage: { input: 1_000_000, output: 500_000, cost: 1.5 } });
  });

  it("may give a provider of Anthropic's protocol, and FLOW_CONFIG goes before the project's file", async () => {
    const address = server.url.replace("/v1", "");
    place.write("flow.config.yaml", 'providers: { claude: { base-url: "http://127.0.0.1:1" } }\n');
    place.write("mine.yaml", `providers: { claude: { base-url: "${address}", protocol: anthropic, key: MINE } }\n`);
    place.write("flow.yaml", asking("claude/any"));
    const { code } = await place.flow(["run", "flow.yaml"], { env: { FLOW_CONFIG: "mine.yaml", MINE: "sk-mine" } });
    expect([code, seen[0]?.url]).toEqual([0, "/v1/messages"]);
  });

  it("that puts another server in a provider's place does not send it the provider's key", async () => {
    place.write("flow.config.yaml", `providers: { openai: { base-url: "${server.url}" } }\n`);
    place.write("flow.yaml", asking("openai/any"));
    const { code } = await place.flow(["run", "flow.yaml"], { env: { OPENAI_API_KEY: "sk-ambient" } });
    expect([code, seen[0]?.headers]).toEqual([
      0,
      expect.not.objectContaining({ authorization: expect.anything() as string }),
    ]);
    expect(JSON.stringify(seen)).not.toContain("ambient");
  });

  it.each([
    ["providers: { a: { base-url: http://x, colour: red } }", "flow.config.yaml:1:39 error FLOW2002"],
    ["providers: { a: { base-url: ftp://x } }", "must be an address that starts with http"],
    ["providers: { a: { base-url: http://x, key: sk-1234-5678 } }", "never the key itself"],
    ["providers: { a: { local: true } }", "without a `base-url`"],
    ["models: { small: {} }", "flow.config.yaml:1:11 error FLOW3001: a model is named `provider/name`"],
    ["[]", "FLOW2005"],
    ["providers: [", "FLOW1006"],
  ])("with a mistake stops a run at its line: %s", async (text, words) => {
    place.write("flow.config.yaml", `${text}\n`);
    place.write("flow.yaml", asking("openai/gpt-4o-mini"));
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(place.runs()).toEqual([]);
  });

  it("makes its providers known to validate, and their names to suggestions", async () => {
    place.write("flow.config.yaml", 'providers: { gateway: { base-url: "http://127.0.0.1:1" } }\n');
    place.write("flow.yaml", asking("gateway/any"));
    expect((await place.flow(["validate", "flow.yaml"])).code).toBe(0);
    place.write("flow.yaml", asking("gatewy/any"));
    const { code, stdout, stderr } = await place.flow(["validate", "flow.yaml"]);
    expect([code, stdout + stderr]).toEqual([2, expect.stringContaining("did you mean `gateway`?")]);
  });
});

describe("flow doctor", () => {
  it("says what is there and shows no key", async () => {
    place.write(
      "flow.config.yaml",
      `providers:\n  gateway: { base-url: "${server.url}", key: GATEWAY_KEY }\n  gone: { base-url: "http://127.0.0.1:1/v1" }\n`,
    );
    const env = { GATEWAY_KEY: "sk-canary" };
    const { code, stdout } = await place.flow(["doctor"], { env });
    expect(stdout).toContain("config       flow.config.yaml\n");
    expect(stdout).toMatch(/^sandbox +(?:works|none: no bubblewrap .+)\nsearch +works$/m);
    expect(stdout).toContain(`gateway      ${server.url}, GATEWAY_KEY is set, reachable\n`);
    expect(stdout).toMatch(/gone +http:\/\/127\.0\.0\.1:1\/v1, no key needed, not reachable: .+\n/);
    expect(stdout).toMatch(/not set up +openai \(OPENAI_API_KEY\), anthropic \(ANTHROPIC_API_KEY\)/);
    expect(stdout).toMatch(/node +\d+\.\d+\.\d+\n/);
    expect([code, JSON.stringify([stdout, seen])]).toEqual([3, expect.not.stringContaining("canary") as string]);
  });

  it("is content without any configuration, and as JSON", async () => {
    const { code, stdout } = await place.flow(["doctor", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      schemaVersion: 1,
      node: { ok: true },
      git: { commit: null },
      config: { files: [], problems: [] },
    });
    expect(stdout).not.toContain('"reachable": "no"');
  });

  it("shows what restricts runs here, and what is wrong with it", async () => {
    place.write("managed.yaml", "sandbox: on\n");
    const env = { FLOW_MANAGED: "managed.yaml" };
    expect((await place.flow(["doctor"], { env })).stdout).toContain("managed      managed.yaml\n");
    place.write("managed.yaml", "sandbocks: on\n");
    const { code, stderr } = await place.flow(["doctor"], { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining("managed.yaml:1:1 error FLOW2002") as string]);
  });

  it("shows what is wrong with the configuration", async () => {
    place.write("flow.config.yaml", "provider: {}\n");
    const { code, stderr } = await place.flow(["doctor"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("did you mean `providers`?")]);
  });
});

describe("what has no effect in flow.config.yaml", () => {
  const workflow = "steps: { a: { run: 'true' } }\n";

  it.each(["Bsh(rm *)", "Writ"])("is told of a rule for %s, which is nearly a tool", async (rule) => {
    place.write("flow.config.yaml", `permissions:\n  deny:\n    - ${JSON.stringify(rule)}\n    - deploy(x)\n`);
    place.write("flow.yaml", workflow);
    for (const words of [
      ["validate", "flow.yaml"],
      ["run", "flow.yaml"],
    ]) {
      const { code, stdout, stderr } = await place.flow(words);
      expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("FLOW6007") as string]);
      expect(stdout + stderr).toContain("flow.config.yaml:3:7");
      expect(stdout + stderr).not.toContain("rule `deploy");
    }
  });

  it.each(["depth", "children"])("is refused where it is `limits.%s`, which no run has", async (limit) => {
    place.write("flow.config.yaml", `limits: { cost: 5, ${limit}: 1 }\n`);
    place.write("flow.yaml", workflow);
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("flow.config.yaml:1:20 error FLOW2008") as string]);
  });
});
