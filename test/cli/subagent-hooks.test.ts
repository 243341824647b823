import { afterEach, describe, expect, it } from "vitest";
import { answers, ends, of, replies, task } from "./lineage.ts";
import { Place } from "./flow.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function hook(event: string, command: string, matcher = ""): string {
  return `${event}: [{ ${matcher === "" ? "" : `matcher: "${matcher}", `}hooks: [{ command: '${command}' }] }]`;
}

function placeWith(hooks: { readonly common?: string; readonly lead?: string; readonly child?: string }): Place {
  const own = (list: string | undefined): string => (list === undefined ? "" : `, hooks: { ${list} }`);
  const place = new Place({
    "flow.config.yaml": hooks.common === undefined ? "{}\n" : `hooks: { ${hooks.common} }\n`,
    "flow.yaml": `model: scripted/replies.yaml
agents:
  child: { instructions: C., tools: []${own(hooks.child)} }
  other: { instructions: O., tools: [] }
steps:
  a: { agent: { prompt: Lead., tools: [], subagents: [child, other]${own(hooks.lead)} } }
`,
    "replies.yaml": replies({
      a: [`{ calls: [${task("child")}, ${task("other")}] }`, "{ text: ok }"],
      child: ["{ text: first }", "{ text: second }"],
      other: ["{ text: other }"],
    }),
  });
  places.push(place);
  return place;
}

describe("SubagentStart", () => {
  it("is told of a sub-agent by its name, and what it says stands behind the sub-agent's instructions", async () => {
    const say = 'cat >> told.txt; echo "{\\"hookSpecificOutput\\":{\\"additionalContext\\":\\"Mind the gap.\\"}}"';
    const place = placeWith({ common: hook("SubagentStart", say.replaceAll("\\\\", "\\"), "child") });
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    const told = JSON.parse(place.read("told.txt")) as object;
    expect(told).toMatchObject({
      hook_event_name: "SubagentStart",
      agent_id: "a@1.1",
      agent_type: "child",
      session_id: "a@1.1",
    });
    const minding = of(place.events(), "message").filter(({ message }) =>
      JSON.stringify(message).includes("Mind the gap."),
    );
    expect(minding.map(({ agent, message }) => `${agent} ${message.role}`)).toEqual(["a@1.1 system"]);
  });

  it("with `continue: false` ends it before it begins, and its parent reads why", async () => {
    const place = placeWith({
      lead: hook("SubagentStart", 'echo "{\\"continue\\":false,\\"stopReason\\":\\"not today\\"}"', "child"),
    });
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect(code).toBe(0);
    expect(answers(place.events()).find(({ status }) => status === "error")).toEqual({
      status: "error",
      text: "a hook ended it: not today",
    });
    expect(ends(place.events())).toEqual(["a@1.2 other done", "a@1 a done"]);
  });
});

describe("SubagentStop", () => {
  const once = 'cat >> told.txt; test -e been || { touch been; echo "once more" >&2; exit 2; }';

  it.each([
    ["of the configuration", { common: hook("SubagentStop", once, "child") }],
    ["of whoever spawned it", { lead: hook("SubagentStop", once, "child") }],
    ["that its own file has as `Stop`", { child: hook("Stop", once) }],
  ])("%s sends it back, once", async (_, hooks) => {
    const place = placeWith(hooks);
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const [first, second] = place
      .read("told.txt")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(first).toMatchObject({
      hook_event_name: "SubagentStop",
      stop_hook_active: false,
      agent_id: "a@1.1",
      agent_type: "child",
    });
    expect(second).toMatchObject({ stop_hook_active: true });
    const heads = answers(place.events()).map(({ text }) => text.slice(0, text.indexOf("\n")));
    expect(heads.sort()).toEqual(["other", "second"]);
  });

  it("is no end of a session: a `Stop` hook of the configuration hears of the step's agent alone", async () => {
    const place = placeWith({ common: hook("Stop", "cat >> told.txt") });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(place.read("told.txt").trim().split("\n")).toHaveLength(1);
    expect(JSON.parse(place.read("told.txt"))).toMatchObject({ hook_event_name: "Stop", session_id: "a@1" });
  });
});
