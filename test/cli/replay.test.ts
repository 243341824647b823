import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";

const workflow = `
name: asking
model: scripted/replies.yaml
inputs:
  topic: { type: string, default: bees }
secrets: [TOKEN]
agents:
  reader: { instructions: You read., tools: [Read] }
  writer: { instructions: You write. }
steps:
  look: { agent: reader, prompt: "Read about \${{ inputs.topic }}" }
  write:
    foreach: [one, two]
    agent: writer
    prompt: "Write \${{ item }} on \${{ steps.look.outputs.text }}"
outputs:
  texts: \${{ toJSON(steps.write.outputs) }}
`;

const replies = `
agents:
  reader:
    - calls: [{ name: Read, args: { file_path: notes.txt } }]
    - text: "It says \${{ results[0].text }}"
  writer:
    - { error: 529 }
    - text: "\${{ prompt }}!"
`;

let place: Place;
beforeEach(() => {
  place = new Place({ "flow.yaml": workflow, "replies.yaml": replies, "notes.txt": "the key is sk-secret-canary\n" });
});
afterEach(() => place.remove());

const env = { TOKEN: "sk-secret-canary" };

/** What a run said and did, without what is new in every run. */
function story(lines: readonly LogLine[]): unknown[] {
  return lines.flatMap((line): unknown[] => {
    if (line.type === "message") return [[line.step, line.turn, line.message, line.usage]];
    if (line.type === "turn.started") return [[line.step, line.turn, line.request]];
    if (line.type === "run.finished") return [[line.outcome, line.outputs, line.usage]];
    return [];
  });
}

/** Steps run at once; what one did is in order. */
function sorted(told: readonly unknown[]): string[] {
  return told.map((one) => JSON.stringify(one)).sort();
}

describe("--replay", () => {
  async function recorded(): Promise<{ readonly run: string; readonly story: string[]; readonly stdout: string }> {
    const { code, stdout } = await place.flow(["run", "flow.yaml"], { env });
    expect(code).toBe(0);
    const [run = ""] = place.runs();
    return { run, story: sorted(story(place.events())), stdout };
  }

  it("plays a whole run again without its script, also with another secret, and twice the same", async () => {
    const first = await recorded();
    expect(first.story.join()).not.toContain("canary");
    place.write("replies.yaml", "agents: { nobody: [{ text: x }] }\n");
    const again = await place.flow(["run", "flow.yaml", "--replay", first.run], { env });
    expect([again.code, again.stdout]).toEqual([0, first.stdout]);
    expect(again.stderr).not.toContain("again in");
    const { 1: second = "" } = place.runs();
    const lines = place.events();
    expect(lines[0]).toMatchObject({ type: "run.started", replay: `.flow/runs/${first.run}/log.jsonl` });
    expect(lines.find(({ type }) => type === "agent.started")).toMatchObject({ provider: "replay" });
    expect(sorted(story(lines))).toEqual(first.story);

    place.write("notes.txt", "the key is another-canary\n");
    const kept = place.read(`.flow/runs/${second}/log.jsonl`);
    place.write("tests/cassette.jsonl", kept);
    const other = await place.flow(["run", "flow.yaml", "--replay", "tests/cassette.jsonl"], {
      env: { TOKEN: "another-canary" },
    });
    expect([other.code, other.stdout]).toEqual([0, first.stdout]);
  });

  it("that misses says what differs and is exit 1", async () => {
    const { run } = await recorded();
    place.write("notes.txt", "the key is gone\n");
    const changed = await place.flow(["run", "flow.yaml", "--replay", run], { env });
    expect(changed.stderr).toContain(
      `${run} has no answer for step \`look\`, turn 2: message 4 (user) differs at character`,
    );
    expect(changed.stderr).toContain("the key is gone");
    expect(changed.stderr).toContain("the key is ***");
    expect(changed.code).toBe(1);
    place.write("notes.txt", "the key is sk-secret-canary\n");
    const topic = await place.flow(["run", "flow.yaml", "--replay", run, "-i", "topic=ants"], { env });
    expect(topic.stderr).toContain("message 2 (user) differs at character 18: ");
    place.write("flow.yaml", workflow.replace("tools: [Read]", "tools: [Read, Grep]"));
    expect((await place.flow(["run", "flow.yaml", "--replay", run], { env })).stderr).toContain(
      "its tools differ: +Grep",
    );
    place.write("flow.yaml", workflow.replace("look: {", "read: {").replace("steps.look", "steps.read"));
    expect((await place.flow(["run", "flow.yaml", "--replay", run], { env })).stderr).toMatch(
      // Items work side by side: either may have been first.
      /it has look, write\[(?:0\], write\[1|1\], write\[0)\]/,
    );
  });

  it.each(["tokens: 200000", "cost: 5"])("plays a run under `limits` of %s, and under other limits", async (limit) => {
    const script = `price: { input: 1, output: 2 }\n${replies}`;
    place.write("replies.yaml", script);
    place.write("flow.yaml", `${workflow}limits: { ${limit} }\n`);
    const first = await recorded();
    place.write("replies.yaml", "agents: {}\n");
    for (const text of [`${workflow}limits: { ${limit} }\n`, `${workflow}limits: { tokens: 100000 }\n`, workflow]) {
      place.write("flow.yaml", text);
      const { code, stdout } = await place.flow(["run", "flow.yaml", "--replay", first.run], { env });
      expect([code, stdout]).toEqual([0, first.stdout]);
    }
  });

  it("of nothing that is there is wrong usage", async () => {
    for (const [name, words] of [
      ["absent.jsonl", "there is no log absent.jsonl"],
      ["20990101", "no run"],
      ["notes.jsonl", "notes.jsonl"],
    ] as const) {
      place.write("notes.jsonl", "not a log\n");
      const { code, stderr } = await place.flow(["run", "flow.yaml", "--replay", name], { env });
      expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    }
    const both = await place.flow(["run", "flow.yaml", "--replay", "latest", "--script", "replies.yaml"], { env });
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("exclude each other")]);
  });

  it("plays a model that failed and the one that took its place", async () => {
    place.write("down.yaml", "agents: { writer: [{ error: unreachable }] }\n");
    place.write("up.yaml", "agents: { writer: [{ text: Here I am. }] }\n");
    place.write(
      "list.yaml",
      "name: list\nsteps:\n  a: { agent: { name: writer, prompt: hi }, model: [scripted/down.yaml, scripted/up.yaml] }\n",
    );
    const first = await place.flow(["run", "list.yaml"]);
    expect(first.code).toBe(0);
    expect(first.stderr).toContain("scripted/down.yaml failed, scripted/up.yaml is asked");
    place.write("up.yaml", "agents: { writer: [{ text: Not me. }] }\n");
    const again = await place.flow(["run", "list.yaml", "--replay", "latest", "--json"]);
    expect(JSON.parse(again.stdout)).toMatchObject({ outcome: "success" });
    const told = place
      .events()
      .flatMap((line) =>
        line.type === "model.fallback" ? [line.model] : line.type === "agent.finished" ? [line.text] : [],
      );
    expect(told).toEqual(["scripted/up.yaml", "Here I am."]);
  });
});
