import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { resume } from "../../src/flow.ts";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";
import { ends, of, replies, task, turnsOf } from "./lineage.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

/** A lead with one child in the foreground, that has one of its own, and one in the background. */
const files = {
  "flow.yaml": `model: scripted/replies.yaml
agents:
  middle: { instructions: M., tools: [LS], subagents: [bottom] }
  bottom: { instructions: B., tools: [LS] }
  side: { instructions: S., tools: [LS] }
steps:
  a: { agent: { prompt: Lead., tools: [LS], subagents: [middle, side], limits: { depth: 2 } } }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`,
  "replies.yaml": replies({
    a: [
      `{ calls: [${task("side", { run_in_background: true, name: "bee", context: { summary: "so far" } })}, ${task("middle")}] }`,
      '{ text: "a: ${{ message }}" }',
      '{ text: "then: ${{ message }}" }',
    ],
    middle: [
      `{ calls: [{ name: LS, args: { path: . } }] }`,
      `{ calls: [${task("bottom")}] }`,
      '{ text: "m: ${{ message }}" }',
    ],
    bottom: ["{ calls: [{ name: LS, args: { path: . } }] }", "{ text: bottom is done }"],
    side: ["{ calls: [{ name: LS, args: { path: . } }] }", "{ delay: 80ms, text: side is done }"],
  }),
};

function placeWith(more: Readonly<Record<string, string>> = {}): Place {
  const place = new Place({ ...files, ...more });
  places.push(place);
  return place;
}

/** Replies that were paid for, by what was asked: for an agent and its turn. */
function asked(events: readonly LogLine[]): string[] {
  const names = new Map(of(events, "agent.started").map(({ agent, name }) => [agent, name]));
  return of(events, "message").flatMap(({ agent, usage, turn }) => (usage ? [`${names.get(agent)} ${turn}`] : []));
}

/** The same but for the lead: in which of its turns a report comes is a matter of time. */
function below(events: readonly LogLine[]): string[] {
  return asked(events).filter((it) => !it.startsWith("a "));
}

/** Reports that an agent has read, by whose they are. */
function reports(events: readonly LogLine[]): string[] {
  const names = new Map(of(events, "agent.started").map(({ agent, name }) => [agent, name]));
  return of(events, "message").flatMap(({ from = [] }) => from.map((id) => names.get(id) ?? id));
}

describe("a resume of agents in three levels", () => {
  it(
    "goes on from wherever the log ends: no reply is paid twice, no report is lost or read twice",
    { timeout: 120_000 },
    async () => {
      const whole = placeWith();
      expect((await whole.flow(["run", "flow.yaml"])).code).toBe(0);
      const log = whole.log();
      const lines = log.split("\n").slice(0, -1);
      const events = whole.events();
      const once = [...new Set(below(events))].sort();
      expect(reports(events)).toEqual(["side"]);
      const place = placeWith();
      expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
      const [run = ""] = place.runs();
      // A line that only says what the one before it means leaves the same state.
      const all = events.flatMap((event, index) => (/^(agent|message|tool)/.test(event.type) ? [index + 1] : []));
      const points = process.env["FLOW_TORTURE"] === undefined ? all.filter((_, index) => index % 4 === 1) : all;
      for (const cut of points) {
        place.write(
          `.flow/runs/${run}/log.jsonl`,
          `${lines
            .slice(0, cut)
            .join("\n")
            .replaceAll(whole.runs()[0] ?? "", run)
            .replaceAll(whole.folder, place.folder)}\n`,
        );
        const result = await resume({ run, cwd: place.folder });
        const about = `cut behind line ${cut}: ${lines[cut - 1]?.slice(0, 200)}`;
        const text = JSON.stringify(result.started ? result.end.outputs : result);
        expect([result.started && result.end.exitCode, text.includes("side is done")], about).toEqual([0, true]);
        const after = place.events();
        expect(below(after).sort(), about).toEqual(once);
        expect(reports(after), about).toEqual(["side"]);
      }
    },
  );

  it("runs no sub-agent again that had ended, also the second time", async () => {
    const place = placeWith();
    await place.flow(["run", "flow.yaml"]);
    const [run = ""] = place.runs();
    const cut = (last: (event: LogLine) => boolean): void => {
      const at = place.events().findIndex(last);
      place.write(
        `.flow/runs/${run}/log.jsonl`,
        `${place
          .log()
          .split("\n")
          .slice(0, at + 1)
          .join("\n")}\n`,
      );
    };
    cut((event) => event.type === "agent.finished" && event.parent?.includes(".") === true);
    expect((await place.flow(["resume", run])).code).toBe(0);
    expect(of(place.events(), "agent.started").filter(({ name }) => name === "bottom")).toHaveLength(1);
    const resumed = place.events().findIndex(({ type }) => type === "run.resumed");
    cut(
      (event) =>
        event.seq > resumed + 1 &&
        event.type === "agent.finished" &&
        event.parent !== null &&
        !event.agent.includes(".1."),
    );
    expect((await place.flow(["resume", run])).code).toBe(0);
    expect(of(place.events(), "agent.started").filter(({ name }) => name === "bottom")).toHaveLength(1);
    expect(reports(place.events())).toEqual(["side"]);
  });

  it.each(["text", "output"])("reads a report whose %s lies beside the log for its length", async (field) => {
    const long = `${"word ".repeat(20_000)}end`;
    const output = field === "output" ? ", output: { type: object, properties: { said: { type: string } } }" : "";
    const reply =
      field === "output" ? `{ calls: [{ name: finish, args: { said: "${long}" } }] }` : `{ text: "${long}" }`;
    const place = placeWith({
      "flow.yaml": `model: scripted/replies.yaml
agents: { side: { instructions: S., tools: [LS]${output} } }
steps: { a: { agent: { prompt: Lead., tools: [LS], subagents: [side] } } }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`,
      "replies.yaml": replies({
        a: [
          `{ calls: [${task("side", { run_in_background: true, name: "bee" })}] }`,
          '{ text: "${{ message }}" }',
          '{ text: "${{ message }}" }',
        ],
        side: [reply],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).stdout).toContain("word end");
    const [run = ""] = place.runs();
    const at = place.events().findIndex((event) => event.type === "agent.finished" && event.agent === "a@1.1");
    const lines = place.log().split("\n");
    expect(lines[at]).toContain('"blob"');
    place.write(`.flow/runs/${run}/log.jsonl`, `${lines.slice(0, at + 1).join("\n")}\n`);
    const { code, stdout } = await place.flow(["resume", run]);
    expect([code, stdout.includes("word end"), stdout.includes("blob")]).toEqual([0, true, false]);
  });

  it("runs the step again when an agent below its own was edited", async () => {
    const place = placeWith();
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect((await place.flow(["resume", "latest"])).stderr).toContain("already");
    place.write("flow.yaml", files["flow.yaml"].replace("instructions: B.", "instructions: Be better."));
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("its definition changed")]);
    expect(of(place.events(), "agent.started").filter(({ name }) => name === "bottom")).toHaveLength(2);
    const shown = (await place.flow(["show", "latest"])).stdout;
    expect(shown.match(/agent bottom +ok +earlier, /g)).toHaveLength(1);
    expect(shown.match(/agent bottom +ok +\d/g)).toHaveLength(1);
    const { steps, usage } = JSON.parse((await place.flow(["show", "latest", "--json"])).stdout);
    const names = (agents: readonly { readonly name: string }[]): string[] => agents.map(({ name }) => name).sort();
    expect(names(steps[0].earlierAgents)).toEqual(["a", "bottom", "middle", "side"]);
    expect(names(steps[0].agents)).toEqual(["a", "bottom", "middle", "side"]);
    expect(steps[0].usage).toEqual(usage);
  });

  it.each(["SIGKILL", "SIGINT"] as const)("after %s in the middle does all that was left", async (signal) => {
    const slow = files["replies.yaml"]
      .replaceAll("{ text:", "{ delay: 200ms, text:")
      .replaceAll("{ calls:", "{ delay: 100ms, calls:");
    const place = placeWith({ "replies.yaml": slow });
    const running = place.start(["run", "flow.yaml"]);
    await running.said("a>bottom@");
    await delay(120);
    running.kill(signal);
    expect((await running.ended).code).toBe(signal === "SIGINT" ? 130 : null);
    const before = asked(place.events());
    const { code, stdout } = await place.flow(["resume", "latest"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("text: ")]);
    const read = of(place.events(), "message")
      .filter(({ message }) => message.role === "user")
      .map(({ message }) => JSON.stringify(message));
    for (const done of ["bottom is done", "side is done"]) expect(read.some((text) => text.includes(done))).toBe(true);
    const after = below(place.events());
    expect(after.toSorted()).toEqual([...new Set(after)].sort());
    expect(asked(place.events()).slice(0, before.length)).toEqual(before);
    expect(reports(place.events())).toEqual(["side"]);
  });
});

describe("a sub-agent that has ended", () => {
  const again = replies({
    a: [
      `{ calls: [${task("side", { name: "bee", prompt: "First." })}] }`,
      `{ calls: [${task("side", { agent_id: "bee", name: "dee", prompt: "Second." })}] }`,
      `{ calls: [${task("side", { agent_id: "dee", prompt: "Third.", run_in_background: true, name: "cee" })}] }`,
      '{ text: "${{ message }}" }',
      '{ text: "${{ message }}" }',
    ],
    side: ["{ text: one }", "{ text: two }", "{ text: three }"],
  });

  it("is asked again with its whole conversation, by its name or its id, and counts its turns anew", async () => {
    const place = placeWith({ "replies.yaml": again });
    const { code, stdout } = await place.flow(["run", "flow.yaml"]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/cee[^]*three[^]*turns: 1/)]);
    const started = of(place.events(), "agent.started").map(({ agent, continues }) => `${agent} ${continues}`);
    expect(started).toEqual(["a@1 undefined", "a@1.1 undefined", "a@1.2 a@1.1", "a@1.3 a@1.2"]);
    expect(turnsOf(place.events())).toMatchObject({ "a@1.1": 1, "a@1.2": 1, "a@1.3": 1 });
    expect(ends(place.events()).slice(0, 3)).toEqual(["a@1.1 side done", "a@1.2 side done", "a@1.3 side done"]);
  });

  it("can be asked again after a resume", async () => {
    const place = placeWith({ "replies.yaml": again });
    await place.flow(["run", "flow.yaml"]);
    const [run = ""] = place.runs();
    const at = place.events().findIndex((event) => event.type === "agent.finished" && event.agent === "a@1.1");
    place.write(
      `.flow/runs/${run}/log.jsonl`,
      `${place
        .log()
        .split("\n")
        .slice(0, at + 1)
        .join("\n")}\n`,
    );
    const { code, stdout } = await place.flow(["resume", run]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/cee[^]*three[^]*turns: 1/)]);
    expect(of(place.events(), "agent.started").map(({ continues }) => continues ?? "-")).toEqual(
      expect.arrayContaining(["a@1", "a@1.1", "a@2.2"]),
    );
  });

  it("is not taken for another one, nor its name taken twice", async () => {
    const wrong = [task("middle", { agent_id: "bee" }), task("side", { name: "bee" })].map(
      (call) => `{ calls: [${call}] }`,
    );
    const place = placeWith({
      "replies.yaml": replies({
        a: [`{ calls: [${task("side", { name: "bee" })}] }`, ...wrong, "{ text: ok }"],
        side: ["{ text: one }"],
      }),
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const errors = of(place.events(), "tool.finished").flatMap(({ status, text }) =>
      status === "error" ? [text] : [],
    );
    expect(errors).toEqual([
      "`bee` is a `side`, not a `middle`.",
      "You have called another sub-agent `bee`. Take another name; to ask that one again, give its name as `agent_id`.",
    ]);
  });
});

describe("a replay of a run that was resumed while a sub-agent worked", () => {
  it("says that ids differ, where a request differs by them", async () => {
    const place = placeWith({
      "replies.yaml": replies({
        a: [`{ calls: [${task("side")}] }`, '{ text: "a: ${{ message }}" }'],
        side: ["{ calls: [{ name: LS, args: { path: . } }] }", "{ text: side is done }"],
      }),
    });
    await place.flow(["run", "flow.yaml"]);
    const [run = ""] = place.runs();
    const at = place.events().findIndex((event) => event.type === "turn.started" && event.agent === "a@1.1");
    const lines = place.log().split("\n");
    place.write(`.flow/runs/${run}/log.jsonl`, `${lines.slice(0, at + 1).join("\n")}\n`);
    expect((await place.flow(["resume", run])).code).toBe(0);
    const { code, stderr } = await place.flow(["run", "flow.yaml", "--replay", run]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("that run was resumed while sub-agents worked") as string,
    ]);
  });
});
