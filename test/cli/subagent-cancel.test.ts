import { afterEach, describe, expect, it } from "vitest";
import { run } from "../../src/flow.ts";
import type { LogLine } from "../../src/model/event.ts";
import { leftAfter, uniqueSleep, untilRunning } from "../process/leftovers.ts";
import { Place } from "./flow.ts";
import { answers, ends, of, replies, task } from "./lineage.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function placeWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place(files);
  places.push(place);
  return place;
}

const agents = `agents:
  middle: { instructions: M., subagents: [bottom, sleeper], limits: { parallel: 1 } }
  bottom: { instructions: B., tools: [LS] }
  sleeper: { instructions: S., tools: [Bash] }
  brief: { instructions: B., tools: [LS], limits: { duration: 300ms } }
`;

function lead(more: string, step = ""): string {
  return `model: scripted/replies.yaml
permissions: { "*": allow }
${agents}steps:
  a: { agent: { prompt: Lead., tools: [LS], subagents: [middle, bottom, sleeper, brief]${more} }${step} }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`;
}

const slow = "{ delay: 30s, text: late }";

describe("Ctrl-C with six sub-agents in three levels", () => {
  it("ends them all at once, children first, wherever they are", async () => {
    const sleep = uniqueSleep();
    const place = placeWith({
      "flow.yaml": lead(", limits: { depth: 2, parallel: 2 }"),
      "replies.yaml": replies({
        a: [
          `{ calls: [${[task("middle"), task("sleeper"), task("bottom"), task("bottom")].join(", ")}] }`,
          "{ text: ok }",
        ],
        middle: [`{ calls: [${task("bottom")}, ${task("sleeper")}] }`, "{ text: ok }"],
        bottom: [slow],
        sleeper: [`{ calls: [{ name: Bash, args: { command: sleep ${sleep} } }] }`, "{ text: ok }"],
      }),
    });
    const running = place.start(["run", "flow.yaml", "-v"]);
    await untilRunning(sleep, 1);
    await running.said("a>bottom@1.1.1 start");
    const start = performance.now();
    running.kill("SIGINT");
    const { code } = await running.ended;
    expect(code).toBe(130);
    expect(performance.now() - start).toBeLessThan(2000);
    expect(await leftAfter(sleep, 1000)).toBe(0);
    const events = place.events();
    const began = of(events, "agent.started").map(({ agent }) => agent);
    expect(began.sort()).toEqual(["a@1", "a@1.1", "a@1.1.1", "a@1.2"]);
    const ended = ends(events).map((end) => end.split(" "));
    expect(ended.map(([id = ""]) => id).toSorted((a, b) => a.localeCompare(b))).toEqual(began);
    expect(new Set(ended.map(([, , outcome]) => outcome))).toEqual(new Set(["cancelled"]));
    for (const [index, [id = ""]] of ended.entries())
      for (const [later = ""] of ended.slice(index + 1))
        expect(later.startsWith(`${id}.`), `${later} ended behind ${id}`).toBe(false);
  });
});

describe("a command that is deaf to SIGTERM", () => {
  it("is killed in the end, and its agent and those above have theirs in the log", async () => {
    const sleep = uniqueSleep();
    const deaf = `trap "" TERM; while :; do sleep ${sleep}; done`;
    const place = placeWith({
      "flow.yaml": lead(""),
      "replies.yaml": replies({
        a: [`{ calls: [${task("sleeper")}] }`, "{ text: ok }"],
        sleeper: [`{ calls: [{ name: Bash, args: { command: ${JSON.stringify(deaf)} } }] }`, "{ text: ok }"],
      }),
    });
    const running = place.start(["run", "flow.yaml"]);
    await untilRunning(sleep, 1);
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    expect(await leftAfter(sleep, 1000)).toBe(0);
    expect(ends(place.events())).toEqual(["a@1.1 sleeper cancelled", "a@1 a cancelled"]);
  });
});

describe("the time that is over", () => {
  it.each([
    ["of a child ends the child", ["", ""], { child: "budget", lead: "done", code: 0 }, task("brief")],
    [
      "of a parent ends what is below it",
      [", limits: { duration: 300ms }", ""],
      { child: "budget", lead: "budget", code: 4 },
      task("bottom"),
    ],
    ["of the step ends both", ["", ", timeout: 300ms"], { child: "timeout", lead: "timeout", code: 1 }, task("bottom")],
  ])("%s", async (_, [more = "", step = ""], expected, call) => {
    const place = placeWith({
      "flow.yaml": lead(more, step),
      "replies.yaml": replies({ a: [`{ calls: [${call}] }`, "{ text: ok }"], bottom: [slow], brief: [slow] }),
    });
    const { code } = await place.flow(["run", "flow.yaml"]);
    const [child, parent] = of(place.events(), "agent.finished").map(({ outcome }) => outcome);
    expect({ child, lead: parent, code }).toEqual(expected);
  });
});

describe("one agent run is cancelled", () => {
  /** Runs the workflow and cancels the agent run when `at` has come. */
  async function cancelled(
    files: Readonly<Record<string, string>>,
    at: (event: LogLine) => boolean,
    cancel: { readonly agent: string; readonly children?: boolean },
  ): Promise<{ readonly events: LogLine[]; readonly hits: boolean[]; readonly exitCode: number }> {
    const place = placeWith(files);
    const hits: boolean[] = [];
    const going = run({
      file: "flow.yaml",
      cwd: place.folder,
      onEvent: (event) => {
        const { agent, ...how } = cancel;
        if (hits.length === 0 && at(event)) hits.push(going.cancelAgent(agent, how));
      },
    });
    expect(going.cancelAgent("a@1")).toBe(false);
    const result = await going;
    if (!result.started) throw new Error(JSON.stringify(result.refusal));
    expect(going.cancelAgent("a@1")).toBe(false);
    return { events: place.events(), hits, exitCode: result.end.exitCode };
  }

  const started = (agent: string) => (event: LogLine) => event.type === "turn.started" && event.agent === agent;
  const two = {
    "flow.yaml": lead(", limits: { depth: 2 }"),
    "replies.yaml": replies({
      a: [`{ calls: [${task("middle")}] }`, '{ text: "${{ message }}" }', '{ text: "then ${{ message }}" }'],
      middle: [`{ calls: [${task("bottom")}] }`, "{ text: ok }"],
      bottom: ["{ delay: 300ms, text: bottom is done }"],
    }),
  };

  it("with all below it: they end, and its parent reads it and goes on", async () => {
    const { events, hits, exitCode } = await cancelled(two, started("a@1.1.1"), { agent: "a@1.1" });
    expect([hits, exitCode]).toEqual([[true], 0]);
    expect(ends(events)).toEqual(["a@1.1.1 bottom cancelled", "a@1.1 middle cancelled", "a@1 a done"]);
    expect(answers(events)).toEqual([{ status: "error", text: "[a@1.1] was cancelled" }]);
  });

  it("alone: what it spawned goes on, and its report comes to the grandparent", async () => {
    const { events, hits, exitCode } = await cancelled(two, started("a@1.1.1"), { agent: "a@1.1", children: false });
    expect([hits, exitCode]).toEqual([[true], 0]);
    expect(ends(events)).toEqual(["a@1.1 middle cancelled", "a@1.1.1 bottom done", "a@1 a done"]);
    const read = of(events, "message").find(({ from }) => from?.includes("a@1.1.1"));
    expect([read?.agent, JSON.stringify(read?.message)]).toEqual(["a@1", expect.stringContaining("bottom is done")]);
  });

  it("while it waits for its place: it never begins", async () => {
    const files = {
      "flow.yaml": lead(", limits: { parallel: 1 }"),
      "replies.yaml": replies({
        a: [`{ calls: [${task("bottom")}, ${task("bottom")}, ${task("bottom")}] }`, "{ text: ok }"],
        bottom: ["{ delay: 100ms, text: done }"],
      }),
    };
    const { events, hits, exitCode } = await cancelled(files, started("a@1.1"), { agent: "a@1.2" });
    expect([hits, exitCode]).toEqual([[true], 0]);
    expect(ends(events)).toEqual(["a@1.1 bottom done", "a@1.3 bottom done", "a@1 a done"]);
    expect(answers(events).filter(({ status }) => status === "error")).toEqual([
      { status: "error", text: "not started: it was cancelled" },
    ]);
  });

  it("that leads the step: the step has failed, alone or not, and nothing is left below", async () => {
    for (const children of [true, false]) {
      const { events, exitCode } = await cancelled(two, started("a@1.1.1"), { agent: "a@1", children });
      expect(ends(events).at(-1)).toBe("a@1 a cancelled");
      expect(ends(events)).toHaveLength(3);
      expect(of(events, "step.finished").map(({ error }) => error?.kind)).toEqual(["signal"]);
      expect(exitCode).toBe(1);
    }
  });

  it("alone, and then the one below it, alone as well: the step waits for what is left of them", async () => {
    const place = placeWith(two);
    const going = run({
      file: "flow.yaml",
      cwd: place.folder,
      onEvent: (event) => {
        if (!started("a@1.1.1")(event)) return;
        going.cancelAgent("a@1", { children: false });
        setTimeout(() => going.cancelAgent("a@1.1", { children: false }), 50);
      },
    });
    const result = await going;
    expect(result.started && result.end.exitCode).toBe(1);
    expect(ends(place.events())).toEqual(["a@1.1 middle cancelled", "a@1.1.1 bottom done", "a@1 a cancelled"]);
    const types = place.events().map(({ type }) => type);
    expect(types.lastIndexOf("agent.finished")).toBeLessThan(types.indexOf("step.finished"));
  });
});
