import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";
import { type ModelServer, startModelServer } from "./model-server.ts";

const fixtures = [
  { match: { toolCallId: "call_read" }, response: { content: "The version in it is one of ours." } },
  {
    match: { userMessage: "read the file" },
    response: {
      content: "I look.",
      toolCalls: [{ id: "call_read", name: "Read", arguments: { file_path: "data.txt" } }],
    },
  },
  {
    match: { userMessage: "be refused" },
    response: { error: { message: "Incorrect API key", type: "auth" }, status: 401 },
  },
  { match: { userMessage: "greet" }, response: { content: "Grüße aus dem Modell 🌍, in many pieces." } },
];

let server: ModelServer;
let place: Place;
beforeAll(async () => {
  server = await startModelServer(fixtures);
});
afterAll(() => server.close());
beforeEach(() => {
  place = new Place({ "data.txt": "flow 1.2.3\n" });
});
afterEach(() => place.remove());

function asking(prompt: string, model: string): string {
  return `
name: asking
model: ${model}
agents:
  reader: { instructions: You read., tools: [Read] }
steps:
  ask: { agent: reader, prompt: ${prompt} }
  look: { needs: [ask], run: env }
outputs:
  said: \${{ steps.ask.outputs.text }}
  environment: \${{ steps.look.outputs.stdout }}
`;
}

const own = (key = ""): string => `{ id: some-model, base-url: "${server.url}"${key === "" ? "" : `, key: ${key}`} }`;

describe("an agent with a model on a server of the user's own", () => {
  it("streams its text into the run's outputs, and the log has the pieces when they are asked for", async () => {
    place.write("asking.yaml", asking("greet me", own()));
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml", "--log-deltas"]);
    expect(stderr).toMatch(/ask +ok/);
    expect(stdout).toContain("said: Grüße aus dem Modell 🌍, in many pieces.\n");
    expect(code).toBe(0);
    const pieces = place
      .events()
      .flatMap((event) => (event.type === "message.delta" && event.delta.type === "text" ? [event.delta.text] : []));
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.join("")).toBe("Grüße aus dem Modell 🌍, in many pieces.");
  });

  it("calls a tool on a real file and answers with its result in hand", async () => {
    place.write("asking.yaml", asking("read the file", own()));
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml", "-v"]);
    expect(stderr).toContain('tool Read {"file_path":"data.txt"}');
    expect(stdout).toContain("said: The version in it is one of ours.\n");
    expect(code).toBe(0);
    const finished = place.events().find((event) => event.type === "tool.finished");
    expect(finished).toMatchObject({
      name: "Read",
      status: "completed",
      text: expect.stringContaining("flow 1.2.3") as string,
    });
    const last = (await server.requests()).at(-1)?.body;
    expect(JSON.stringify(last)).toContain("flow 1.2.3");
  });

  it("is never sent a key of another provider, and its steps see none", async () => {
    place.write("asking.yaml", asking("greet me", own()));
    const env = {
      OPENAI_API_KEY: "sk-canary-openai",
      ANTHROPIC_API_KEY: "sk-canary-anthropic",
      GITHUB_TOKEN: "ghp_canary",
    };
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml", "-vv"], { env });
    expect(code).toBe(0);
    expect(stdout).toContain("FLOW_STEP=look");
    expect(stdout + stderr + place.log()).not.toContain("canary");
    expect(JSON.stringify(await server.requests())).not.toContain("canary");
  });

  it("is sent the key that is named for it, which is nowhere else", async () => {
    place.write("asking.yaml", asking("greet me", own("MY_KEY")));
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml", "-vv"], {
      env: { MY_KEY: "sk-mine-canary" },
    });
    expect(code).toBe(0);
    expect(stdout + stderr + place.log()).not.toContain("sk-mine-canary");
    const { authorization } = (await server.requests()).at(-1)?.headers ?? {};
    // aimock hides what it was sent.
    expect(authorization).toBeDefined();
  });
});

describe("a model that is not there", () => {
  const threeWays = ["Three ways out:", "1. set ", "2. run without a model: `--script", "3. replay a run: `--replay"];

  it("for want of a key is exit 3 with three ways out, before anything runs", async () => {
    place.write("asking.yaml", asking("greet me", own("MY_KEY")));
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml"]);
    for (const text of ["the variable MY_KEY is not set", ...threeWays]) expect(stderr).toContain(text);
    expect([code, stdout, place.runs()]).toEqual([3, "", []]);
    place.write("openai.yaml", asking("greet me", "openai/gpt-4o-mini"));
    expect(await place.flow(["run", "openai.yaml"])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("OPENAI_API_KEY is not set") as string,
    });
    expect(place.runs()).toEqual([]);
  });

  it("is passed over where a list has another one, and the log says so", async () => {
    place.write("replies.yaml", "agents: { reader: [{ text: scripted }] }\n");
    place.write("asking.yaml", asking("greet me", "[openai/gpt-4o-mini, scripted/replies.yaml]"));
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("said: scripted\n")]);
    expect(stderr).toContain("openai/gpt-4o-mini failed: the model openai/gpt-4o-mini needs a key");
    expect(place.events().find(({ type }) => type === "model.fallback")).toMatchObject({
      from: "openai/gpt-4o-mini",
      model: "scripted/replies.yaml",
    });
    place.write("asking.yaml", asking("greet me", "[openai/gpt-4o-mini, anthropic/claude-sonnet-5]"));
    const none = await place.flow(["run", "asking.yaml"]);
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining("Three ways out:")]);
    expect(place.runs()).toHaveLength(1);
  });

  it("and is not named at all, too", async () => {
    place.write("asking.yaml", asking("greet me", "openai/x").replace("model: openai/x\n", ""));
    const { code, stderr } = await place.flow(["run", "asking.yaml"]);
    for (const text of ["no model is named", ...threeWays]) expect(stderr).toContain(text);
    expect(code).toBe(3);
    expect(place.runs()).toEqual([]);
  });

  it("as JSON says so on stdout", async () => {
    place.write("asking.yaml", asking("greet me", "openai/gpt-4o-mini"));
    const { code, stdout } = await place.flow(["run", "asking.yaml", "--json"]);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: "unavailable",
      exitCode: 3,
      message: expect.stringContaining("OPENAI_API_KEY") as string,
    });
  });

  it("because the key is refused is exit 3, said by the failed step", async () => {
    place.write("asking.yaml", asking("be refused", own("MY_KEY")));
    const { code, stderr } = await place.flow(["run", "asking.yaml"], { env: { MY_KEY: "sk-wrong-canary" } });
    expect(stderr).toContain("the key in MY_KEY was refused");
    expect(stderr).toContain("skipped: needs ask, which failed");
    expect(stderr).not.toContain("canary");
    expect(code).toBe(3);
  });

  it("because its server is down is exit 3, with the address", async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    place.write("asking.yaml", asking("greet me", `{ id: m, base-url: "http://127.0.0.1:${port}/v1" }`));
    const { code, stderr } = await place.flow(["run", "asking.yaml"]);
    expect(stderr).toContain(`the server at http://127.0.0.1:${port}/v1 cannot be reached (ECONNREFUSED)`);
    expect(code).toBe(3);
  });

  it("is replaced by --script, which needs no key", async () => {
    place.write("asking.yaml", asking("greet me", "openai/gpt-4o-mini"));
    place.write("replies.yaml", "agents: { reader: [{ text: scripted }] }\n");
    const { code, stdout } = await place.flow(["run", "asking.yaml", "--script", "replies.yaml"]);
    expect(stdout).toContain("said: scripted\n");
    expect(code).toBe(0);
    const absent = await place.flow(["run", "asking.yaml", "--script", "absent.yaml"]);
    expect(absent.stderr).toContain("the script `absent.yaml` cannot be read: there is no such file");
    expect(absent.code).toBe(2);
  });
});

describe("--dry-run", () => {
  it("calls nothing, writes nothing and needs no key", async () => {
    let calls = 0;
    const counting = createServer((_, response) => {
      calls++;
      response.end();
    });
    await new Promise<void>((resolve) => counting.listen(0, "127.0.0.1", resolve));
    const { port } = counting.address() as AddressInfo;
    place.write("asking.yaml", asking("greet me", `{ id: m, base-url: "http://127.0.0.1:${port}/v1", key: MY_KEY }`));
    const { code, stdout, stderr } = await place.flow(["run", "asking.yaml", "--dry-run"]);
    const json = await place.flow(["run", "asking.yaml", "--dry-run", "--json"]);
    counting.close();
    expect([code, stderr, calls]).toEqual([0, "", 0]);
    expect(stdout).toContain(`ask: agent reader, m at http://127.0.0.1:${port}/v1, tools Read`);
    expect(stdout).toContain("nothing was run");
    expect(JSON.parse(json.stdout)).toMatchObject({
      workflow: "asking.yaml",
      agents: [{ step: "ask", agent: "reader" }],
    });
    expect(() => place.read(".flow/.gitignore")).toThrow();
  });

  it("refuses what a run would refuse", async () => {
    place.write("asking.yaml", asking("greet me", own()));
    const { code, stderr } = await place.flow(["run", "asking.yaml", "--dry-run", "-i", "x=1"]);
    expect(stderr).toContain('there is no input "x"');
    expect(code).toBe(2);
  });
});
