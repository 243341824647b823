import { afterEach, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { of, replies, task } from "./lineage.ts";
import { Place } from "./flow.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

const workflow = `model: scripted/replies.yaml
agents:
  middle: { instructions: M., tools: [], subagents: [bottom] }
  bottom: { instructions: B., tools: [LS], limits: { turns: 1 } }
  helper: { instructions: H., tools: [] }
steps:
  a: { agent: { prompt: Lead., tools: [], subagents: [middle, helper], limits: { depth: 2 } } }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`;
const script = replies(
  {
    a: [
      `{ calls: [${task("middle", { description: "the middle part" })}, ${task("helper", { description: "on the side", run_in_background: true, name: "bee" })}], usage: { input: 100, output: 10 } }`,
      "{ text: one, usage: { input: 200, output: 20 } }",
      "{ text: two, usage: { input: 200, output: 20 } }",
    ],
    middle: [
      `{ calls: [${task("bottom", { prompt: "Look down." })}], usage: { input: 1000, output: 0 } }`,
      "{ text: m, usage: { input: 1000, output: 0 } }",
    ],
    bottom: [
      "{ calls: [{ name: LS, args: { path: . } }], usage: { input: 5000, output: 0 } }",
      "{ text: b, usage: { input: 5000, output: 0 } }",
    ],
    helper: ["{ delay: 50ms, text: helped, usage: { input: 30, output: 3 } }"],
  },
  "price: { input: 1, output: 10 }\n",
);

async function ran(): Promise<{ readonly place: Place; readonly stderr: string }> {
  const place = new Place({ "flow.yaml": workflow, "replies.yaml": script });
  places.push(place);
  const { code, stderr } = await place.flow(["run", "flow.yaml"]);
  expect(code).toBe(0);
  return { place, stderr };
}

describe("the tree of agent runs", () => {
  it("stands below the step in `flow show`, with what each was for, its outcome, its own and all tokens", async () => {
    const { place } = await ran();
    const { stdout } = await place.flow(["show", "latest"]);
    const tree = stdout
      .slice(stdout.indexOf("\n\n") + 2)
      .replaceAll(/ +[\d.]+s/g, "")
      .replaceAll(/ {2,}/g, "  ");
    expect(tree).toMatch(/agent a .*ok {2}[23] turns/);
    expect(tree).toMatch(/with its sub-agents 12\.\dk tok, \$0\.01/);
    expect(tree).toMatch(
      /agent middle .*ok {2}2 turns.* 2\.0k tok {2}\$0\.002\n.*a@1\.1 the middle part\n.*with its sub-agents 12\.0k tok/,
    );
    expect(tree).toMatch(/✗ agent bottom .*max_turns {1,2}\d turns?/);
    expect(tree).toMatch(/agent helper bee .*\n.*a@1\.2 on the side \(in the background\)/);
  });

  it("is data in `flow show --json`: who, from whom, what for, how it ended, what it took", async () => {
    const { place } = await ran();
    const { stdout } = await place.flow(["show", "latest", "--json"]);
    const { steps } = JSON.parse(stdout) as { steps: { agents: JsonObject[]; usage: JsonObject }[] };
    const agents = Object.fromEntries(
      (steps[0]?.agents ?? []).map((agent) => [JSON.stringify(agent["agent"]).slice(1, -1), agent]),
    );
    expect(Object.keys(agents).sort()).toEqual(["a@1", "a@1.1", "a@1.1.1", "a@1.2"]);
    expect(agents["a@1.1.1"]).toMatchObject({
      name: "bottom",
      parent: "a@1.1",
      root: "a@1",
      depth: 2,
      status: "failed",
      outcome: "max_turns",
      error: expect.stringContaining("limits.turns"),
      input: "Look down.",
      output: "b",
      spawned: { title: "some work", background: false },
      started: expect.stringMatching(/^\d{4}-/),
      ended: expect.stringMatching(/^\d{4}-/),
    });
    expect(agents["a@1.2"]).toMatchObject({
      name: "helper",
      status: "completed",
      output: "helped",
      spawned: { name: "bee", background: true },
    });
    const input = (id: string, key: "usage" | "total"): unknown => {
      const usage = agents[id]?.[key];
      return isJsonObject(usage) ? usage["input"] : undefined;
    };
    expect([input("a@1.1", "usage"), input("a@1.1", "total")]).toEqual([2000, 12_000]);
    expect(input("a@1", "total")).toBe(steps[0]?.usage["input"]);
  });

  it("is told while it grows: a line for each beginning and each end, with whose it is", async () => {
    const { stderr } = await ran();
    const lines = stderr.split("\n").map((line) => line.slice(8).replaceAll(/ [\d.]+s/g, ""));
    expect(lines).toContain('a>middle@1.1 start "the middle part" agent=middle model=scripted/replies.yaml');
    expect(lines).toContain('a>bee@1.2  start "on the side" agent=helper model=scripted/replies.yaml');
    expect(lines).toContain("a>bee@1.2  ok 1 turn 33 tok <$0.001");
    expect(lines.find((line) => line.startsWith("a>bottom@1.1.1 max_turns"))).toContain("limits.turns");
  });

  it("has a transcript for each in `flow logs --agent`, with --tree of all below it", async () => {
    const { place } = await ran();
    const own = await place.flow(["logs", "latest", "--agent", "a@1.1"]);
    expect(own.stdout).toContain("user: Do it.");
    expect(own.stdout).not.toContain("Look down.\n");
    const tree = await place.flow(["logs", "latest", "--agent", "a@1.1", "--tree"]);
    expect(tree.stdout).toContain("a>bottom@1.1.1 user: Look down.");
    expect(tree.stdout).not.toContain("bee");
    const json = await place.flow(["logs", "latest", "--agent", "a@1.2", "--json"]);
    const ids = json.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { agent: string }).agent);
    expect(new Set(ids)).toEqual(new Set(["a@1.2"]));
    expect(await place.flow(["logs", "latest", "--agent", "a@1.3"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no agent run "a@1.3"; did you mean a@1.1?'),
    });
    expect(await place.flow(["logs", "latest", "--tree"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--tree goes with --agent"),
    });
  });

  it("comes out the same from its own log: `--replay` asks no model, and misses nothing", async () => {
    const { place } = await ran();
    const [first] = place.runs();
    const { code } = await place.flow(["run", "flow.yaml", "--replay", first ?? ""]);
    const names = of(place.events(), "agent.started").map(({ agent, name }) => `${agent} ${name}`);
    expect([code, names.sort()]).toEqual([0, ["a@1 a", "a@1.1 middle", "a@1.1.1 bottom", "a@1.2 helper"]]);
  });
});

describe("before anything runs", () => {
  it("`--dry-run` says whom an agent may spawn, and counts them in the worst case", async () => {
    const place = new Place({ "flow.yaml": workflow, "replies.yaml": `window: 1000\n${script}` });
    places.push(place);
    place.write(
      "flow.yaml",
      workflow
        .replace("limits: { depth: 2 } }", "limits: { depth: 2, children: 3, turns: 9 } }")
        .replace(
          "middle: { instructions: M., tools: []",
          "middle: { instructions: M., tools: [], limits: { children: 2, turns: 2 }",
        ),
    );
    const { stdout } = await place.flow(["run", "flow.yaml", "--dry-run"]);
    expect(stdout).toContain("tools none, may spawn middle helper");
    // 3 in the middle with 2 below each are 9; the dearest has 51 calls: the helper without a limit of its own.
    expect(stdout).toContain("at most 10 calls, each with up to 9 sub-agents: 469.0k tokens, $4.690");
    const json = JSON.parse((await place.flow(["run", "flow.yaml", "--dry-run", "--json"])).stdout) as {
      agents: JsonObject[];
    };
    expect(json.agents[0]).toMatchObject({ subagents: ["middle", "helper"], worst: { children: { most: 9 } } });
  });

  it("needs the key of a sub-agent's model, and the price where a limit holds", async () => {
    const place = new Place({
      "flow.yaml": workflow.replace(
        "helper: { instructions: H.",
        "helper: { model: openai/gpt-4o-mini, instructions: H.",
      ),
      "replies.yaml": script,
    });
    places.push(place);
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, stderr]).toEqual([3, expect.stringContaining("the model openai/gpt-4o-mini needs a key")]);
    expect(place.runs()).toEqual([]);
    place.write(
      "flow.yaml",
      workflow
        .replace(
          "helper: { instructions: H.",
          "helper: { model: { id: mine, base-url: http://127.0.0.1:9/v1 }, instructions: H.",
        )
        .replace("steps:", "limits: { cost: 1 }\nsteps:"),
    );
    const unpriced = await place.flow(["run", "flow.yaml"]);
    expect(unpriced.code).toBe(2);
    expect(unpriced.stderr).toContain(
      "FLOW6006: agent `helper` below step `a`: `limits.cost` of the run cannot be kept",
    );
  });
});
