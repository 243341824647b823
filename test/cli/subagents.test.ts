import { afterEach, describe, expect, it } from "vitest";
import { answers, ends, of, replies, task, turnsOf } from "./lineage.ts";
import { join } from "node:path";
import { Place, project } from "./flow.ts";

const nasty = join(project, "test/mcp/nasty-server.mjs");
const packaged = (name: string): string =>
  join(project, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function placeWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place(files);
  places.push(place);
  return place;
}

/** A step `a` whose agent spawns; `agents` are further ones of the file. */
function lead(more: string, agents = ""): string {
  const others = agents === "" ? "" : `agents:\n${agents}`;
  return `model: scripted/replies.yaml\n${others}steps:\n  a: { agent: { prompt: Lead., ${more} } }\noutputs: { text: "\${{ steps.a.outputs.text }}" }\n`;
}

describe("a sub-agent", () => {
  it("gets its prompt and nothing of its parent's conversation, and gives its last words with figures", async () => {
    const place = placeWith({
      "flow.yaml": lead("instructions: You lead secretly., subagents: [explore]"),
      "replies.yaml": replies({
        a: [
          `{ text: thinking aloud, calls: [${task("explore", { prompt: "Find x." })}] }`,
          '{ text: "I read ${{ message }}" }',
        ],
        explore: ["{ calls: [{ name: LS, args: { path: . } }] }", "{ text: x is here }"],
      }),
    });
    const { code, stdout } = await place.flow(["run", "flow.yaml"]);
    expect([code, stdout.trimEnd()]).toEqual([
      0,
      expect.stringMatching(
        /I read x is here\n\n {2}\[agent_id: a@1\.1, agent: explore, outcome: done, turns: 2, tool calls: 1, tokens: \d+\]$/,
      ),
    ]);
    const given = of(place.events(), "message").filter(({ agent, turn }) => agent === "a@1.1" && turn === 0);
    expect(given.map(({ message }) => message.role)).toEqual(["system", "user"]);
    expect(JSON.stringify(given)).not.toMatch(/secretly|Lead\.|thinking aloud/);
    expect(given[1]?.message.blocks).toEqual([{ type: "text", text: "Find x." }]);
  });

  it("is given files, a summary, an output and constants when its parent hands them on", async () => {
    const context = { files: ["src/a.ts"], summary: "We began.", output: { n: 1 }, vars: ["limit"] };
    const place = placeWith({
      "flow.yaml": `vars: { limit: 7, other: hidden }\n${lead("subagents: [explore]")}`,
      "replies.yaml": replies({
        a: [`{ calls: [${task("explore", { context })}] }`, "{ text: ok }"],
        explore: ["{ text: done }"],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const given = of(place.events(), "message").find(
      ({ agent, message }) => agent === "a@1.1" && message.role === "user",
    );
    expect(given?.message.blocks).toEqual([
      {
        type: "text",
        text: 'Do it.\n\nFiles to look at:\n- src/a.ts\n\nWhat has happened so far:\nWe began.\n\nA result to work on:\n{"n":1}\n\nConstants of the workflow:\n{"limit":7}',
      },
    ]);
  });

  it("answers with data where it has an `output`, and its own limits and guards hold", async () => {
    const agents = `
  counts: { instructions: Count., tools: [], output: { type: object, required: [n], properties: { n: { type: integer } } } }
  stops: { instructions: Stop., tools: [LS], limits: { turns: 1 } }
  poor: { instructions: Spend., tools: [], limits: { tokens: 10 } }
`;
    const place = placeWith({
      "flow.yaml": lead("subagents: [counts, stops, poor]", agents),
      "replies.yaml": replies({
        a: [`{ calls: [${task("counts")}, ${task("stops")}, ${task("poor")}] }`, "{ text: ok }"],
        counts: ["{ calls: [{ name: finish, args: { n: wrong } }] }", "{ calls: [{ name: finish, args: { n: 3 } }] }"],
        stops: ["{ calls: [{ name: LS, args: { path: . } }] }", "{ text: so far so good }"],
        poor: ["{ text: rich }"],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const [counts, stops, poor] = ["a@1.1", "a@1.2", "a@1.3"].map((id) =>
      answers(place.events()).find(({ text }) => text.includes(`agent_id: ${id}`)),
    );
    expect(counts).toEqual({ status: "completed", text: expect.stringContaining('{"n":3}\n\n[agent_id: a@1.1') });
    expect(stops).toEqual({
      status: "error",
      text: expect.stringMatching(/^stops did not finish: .*`limits\.turns`.*\nIts last words: so far so good\n/),
    });
    expect(poor).toEqual({ status: "error", text: expect.stringMatching(/^poor did not finish: .*limits\.tokens/) });
    expect(ends(place.events())).toContain("a@1 a done");
  });

  it("spills an answer that is too long for the model into a file of the run", async () => {
    const place = placeWith({
      "flow.yaml": lead("subagents: [explore], tools: [Read]"),
      "replies.yaml": replies({
        a: [`{ calls: [${task("explore")}] }`, "{ text: ok }"],
        explore: [`{ text: "${"word ".repeat(20_000)}" }`],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const [end] = of(place.events(), "tool.finished").filter(({ name }) => name === "Task");
    expect(end?.text.length).toBeLessThan(60_000);
    const file = end?.file ?? "nowhere";
    expect(place.read(join(".flow/runs", place.runs()[0] ?? "", file))).toMatch(/^(word ){19000}/);
  });

  it("asks its own model or its parent's; a call may name another that the plan has, and no other", async () => {
    const agents =
      "  own: { instructions: Own., tools: [], model: scripted/own.yaml }\n  none: { instructions: None., tools: [] }\n";
    const place = placeWith({
      "flow.yaml": lead("subagents: [own, none], effort: high, temperature: 0.5", agents),
      "replies.yaml": replies({
        a: [
          `{ calls: [${task("own")}, ${task("none")}, ${task("none", { model: "scripted/own.yaml" })}, ${task("none", { model: "openai/gpt-9" })}] }`,
          "{ text: ok }",
        ],
        none: ["{ text: parent's }"],
      }),
      "own.yaml": replies({ own: ["{ text: own }"], none: ["{ text: chosen }"] }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const models = of(place.events(), "agent.started").map(({ agent, model }) => `${agent} ${model}`);
    expect(models.sort()).toEqual([
      "a@1 scripted/replies.yaml",
      "a@1.1 scripted/own.yaml",
      "a@1.2 scripted/replies.yaml",
      "a@1.3 scripted/own.yaml",
    ]);
    expect(answers(place.events()).find(({ status }) => status === "error")?.text).toBe(
      "There is no model `openai/gpt-9`. There are: scripted/replies.yaml, scripted/own.yaml.",
    );
    const all = await place.flow(["run", "flow.yaml", "--script", "own.yaml"]);
    expect(all.code).toBe(3);
  });

  it("whose file lies in `agents` takes the place of the one of that name that comes with flow", async () => {
    const place = placeWith({
      "agents/explore.md": "---\ntools: [Bash]\n---\nOurs.\n",
      "flow.yaml": lead("subagents: [explore]"),
      "replies.yaml": replies({ a: [`{ calls: [${task("explore")}] }`, "{ text: ok }"], explore: ["{ text: ours }"] }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const system = of(place.events(), "message").find(
      ({ agent, message }) => agent === "a@1.1" && message.role === "system",
    );
    expect(JSON.stringify(system?.message)).toContain("Ours.");
  });

  it("brings its own MCP servers, has its parent's too, and its own end with it", async () => {
    const server = (name: string): string => JSON.stringify({ command: process.execPath, args: [packaged(name)] });
    const secret = JSON.stringify({
      command: process.execPath,
      args: [nasty],
      env: { FROM_MCP: "${{ secrets.TOKEN }}" },
    });
    const agents = `  keeper: { instructions: Keep., mcp: { own: ${secret} } }\n`;
    const place = placeWith({
      "flow.yaml": `secrets: [TOKEN]\npermissions: { mcp__own: allow, mcp__all: allow }\nmcp: { all: ${server("everything")} }\n${lead("mcp: [all], subagents: [keeper]", agents)}`,
      "replies.yaml": replies({
        a: [`{ calls: [${task("keeper")}] }`, "{ text: ok }"],
        keeper: [
          "{ calls: [{ name: mcp__own__env, args: {} }, { name: mcp__all__echo, args: { message: hello } }] }",
          '{ text: "${{ message }}" }',
        ],
      }),
    });
    const { code, stderr } = await place.flow(["run", "flow.yaml"], { env: { TOKEN: "s3cret-value" } });
    expect([code, stderr]).toEqual([0, expect.stringContaining("mcp own started")]);
    expect(
      of(place.events(), "agent.started").map(
        ({ tools }) => tools.filter((tool) => tool.startsWith("mcp__own")).length > 0,
      ),
    ).toEqual([false, true]);
    expect(answers(place.events(), "a@1.1", "mcp__all__echo")[0]?.text).toContain("hello");
    expect(answers(place.events(), "a@1.1", "mcp__own__env")[0]?.text).toContain('"FROM_MCP":"***"');
    expect(place.log()).not.toContain("s3cret-value");
    expect(
      of(place.events(), "mcp.started")
        .map((event) => event.server)
        .sort(),
    ).toEqual(["all", "own"]);
  });
});

describe("several sub-agents", () => {
  const many = (count: number): string => Array.from({ length: count }, () => task("general")).join(", ");

  it.each([
    ["two at a time", "", 2],
    ["as many as `limits.parallel` says", ", limits: { parallel: 4 }", 4],
    ["one after the other with 1", ", limits: { parallel: 1 }", 1],
  ])("work %s, in the order of the calls", async (_, limits, most) => {
    const place = placeWith({
      "flow.yaml": lead(`subagents: [general]${limits}`),
      "replies.yaml": replies({
        a: [`{ calls: [${many(5)}] }`, "{ text: ok }"],
        general: ["{ delay: 60ms, text: done }"],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    let now = 0;
    let peak = 0;
    for (const event of place.events()) {
      if (event.type === "agent.started" && event.parent !== null) peak = Math.max(peak, ++now);
      if (event.type === "agent.finished" && event.parent !== null) now--;
    }
    expect(peak).toBe(most);
    const begun = of(place.events(), "agent.started").flatMap(({ agent, parent }) => (parent === null ? [] : [agent]));
    expect(begun).toEqual([1, 2, 3, 4, 5].map((n) => `a@1.${n}`));
  });

  it("may be no more than `limits.children`, of the step or else of the agent, and the model reads why", async () => {
    const place = placeWith({
      "flow.yaml": lead("subagents: [general], limits: { children: 2 }"),
      "replies.yaml": replies({ a: [`{ calls: [${many(3)}] }`, "{ text: ok }"], general: ["{ text: done }"] }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(answers(place.events()).filter(({ status }) => status === "error")).toEqual([
      {
        status: "error",
        text: "You have spawned 2 sub-agents, and may not spawn more (`limits.children`). Do the rest yourself.",
      },
    ]);
  });

  it("are at most 200 in a run, however deep", { timeout: 30_000 }, async () => {
    const place = placeWith({
      "flow.yaml": lead("subagents: [general], limits: { parallel: 50 }"),
      "replies.yaml": replies({ a: [`{ calls: [${many(203)}] }`, "{ text: ok }"], general: ["{ text: done }"] }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(of(place.events(), "agent.started")).toHaveLength(201);
    const refused = answers(place.events()).filter(({ status }) => status === "error");
    expect(refused).toHaveLength(3);
    expect(refused[0]?.text).toContain("This run has spawned 200 sub-agents");
  });

  it("cannot spend more than their parent has, together or one by one", async () => {
    const place = placeWith({
      "flow.yaml": lead("subagents: [general], limits: { cost: 0.1, parallel: 10 }"),
      "replies.yaml": replies(
        {
          a: [`{ calls: [${many(10)}] }`, "{ text: ok }"],
          general: ["{ delay: 20ms, text: dear, usage: { input: 1000, output: 2000 } }"],
        },
        "price: { input: 3, output: 15 }\n",
      ),
    });
    const { code } = await place.flow(["run", "flow.yaml"]);
    const spent = of(place.events(), "budget.settled").reduce((sum, { cost }) => sum + (cost ?? 0), 0);
    expect(spent).toBeGreaterThan(0.03);
    expect(spent).toBeLessThanOrEqual(0.1);
    expect(of(place.events(), "budget.exceeded")[0]?.of).toBe("agent `a`");
    expect(code).toBe(4);
  });

  it("go down as deep as `limits.depth`, one level without it, and none has the name of one above it", async () => {
    const agents = `
  one: { instructions: One., subagents: [two, explore] }
  two: { instructions: Two., subagents: [one, three] }
  three: { instructions: Three., subagents: [one] }
`;
    const script = replies({
      a: [`{ calls: [${task("one")}] }`, "{ text: ok }"],
      one: [`{ calls: [${task("two")}] }`, '{ text: "one: ${{ message }}" }'],
      two: [`{ calls: [${task("three")}, ${task("one")}] }`, '{ text: "two: ${{ message }}" }'],
      three: ["{ text: deep }"],
    });
    const place = placeWith({ "flow.yaml": lead("subagents: [one]", agents), "replies.yaml": script });
    await place.flow(["run", "flow.yaml"]);
    expect(Object.keys(turnsOf(place.events()))).toEqual(["a@1", "a@1.1"]);
    place.write("flow.yaml", lead("subagents: [one], limits: { depth: 3 }", agents));
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(ends(place.events())).toEqual(["a@1.1.1.1 three done", "a@1.1.1 two done", "a@1.1 one done", "a@1 a done"]);
    expect(answers(place.events(), "a@1.1.1").map(({ text }) => text)).toContainEqual(
      "There is no agent `one`. There are: three.",
    );
    const offered = of(place.events(), "agent.started").map(({ agent, tools }) => [agent, tools.includes("Task")]);
    expect(offered).toEqual([
      ["a@1", true],
      ["a@1.1", true],
      ["a@1.1.1", true],
      ["a@1.1.1.1", false],
    ]);
  });
});

describe("what a model gets wrong", () => {
  it.each([
    [
      "an unknown agent",
      { subagent_type: "generl" },
      "There is no agent `generl`. Did you mean `general`? There are: general.",
    ],
    ["an unknown id", { agent_id: "a@1.7" }, "There is no sub-agent `a@1.7`. There is none."],
    [
      "the background without a name",
      { run_in_background: true },
      "What runs in the background needs a `name`, so that its report can be told from others.",
    ],
    [
      "an unknown constant",
      { context: { vars: ["lmit"] } },
      "There is no constant `lmit`. Did you mean `limit`? There are: limit.",
    ],
    ["an unknown argument", { urgency: "high" }, expect.stringContaining("do not fit its parameters")],
  ])("is told to it: %s", async (_, wrong, text) => {
    const place = placeWith({
      "flow.yaml": `vars: { limit: 7 }\n${lead("subagents: [general]")}`,
      "replies.yaml": replies({
        a: [`{ calls: [${task("general", wrong)}] }`, "{ text: ok }"],
        general: ["{ text: done }"],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(answers(place.events())).toEqual([{ status: "error", text }]);
    expect(of(place.events(), "agent.started")).toHaveLength(1);
  });

  it("three times is counted, and said to it", async () => {
    const wrong = `{ calls: [${task("generl")}] }`;
    const place = placeWith({
      "flow.yaml": lead("subagents: [general]"),
      "replies.yaml": replies({ a: [wrong, wrong, wrong, wrong, wrong, "{ text: ok }"] }),
    });
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect(of(place.events(), "guard").length).toBeGreaterThan(0);
    expect(code).toBe(1);
  });
});
