import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";
import { of, replies, task } from "./lineage.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

const begin =
  "{ calls: [{ name: TeamCreate, args: { name: crew } }, { name: TaskCreate, args: { subject: one, description: d } }] }";

/** A lead with two members; `head` are keys of the workflow, `step` of its step. */
function placeWith(head: string, { step = "agent: lead", more = "" } = {}): Place {
  const place = new Place({
    "w.yaml": `model: scripted/s.yaml
${head}
agents:
  lead: { instructions: You lead., prompt: Go., team: { members: [reader, { agent: reader, name: second }] }${more} }
  asker: { instructions: You ask., prompt: Go., subagents: [lead] }
  reader: { instructions: You read., tools: [Read] }
steps:
  a: { ${step} }
`,
    "s.yaml": replies({
      asker: [`{ calls: [${task("lead")}] }`, "{ text: asked }"],
      lead: [begin, "{ text: waiting }", '{ text: "heard: ${{ message }}" }'],
      reader: ["{ text: read }"],
    }),
  });
  places.push(place);
  return place;
}

/** Names of the members of the team that began, and what the lead was offered beside files. */
async function teamOf(place: Place, env: { readonly [name: string]: string } = {}): Promise<readonly unknown[]> {
  const { code, stderr } = await place.flow(["run", "w.yaml"], { env });
  expect(code, stderr).toBe(0);
  const events = place.events();
  const lead = of(events, "agent.started").find(({ name }) => name === "lead");
  const offered = lead?.tools.filter((tool) => tool.startsWith("Team") || tool === "Task") ?? [];
  return [of(events, "team.member.added").map(({ member }) => member.name), offered];
}

const tools = ["Task", "TeamCreate", "TeamDelete", "TeamStatus"];

describe("rules for `Task` hold for the members of a team", () => {
  it.each([
    ["nothing", "", ["reader", "second"], tools],
    ["one by its name in the team", "permissions: { Task: { second: deny } }", ["reader"], tools],
    ["their agent", "permissions: { Task: { reader: deny } }", [], []],
    ["everybody, by a list", "permissions: { deny: [Task] }", [], []],
    ["everybody, by the group", "permissions: { spawn: deny }", [], []],
  ])("that deny %s", async (_, head, members, offered) => {
    expect(await teamOf(placeWith(head))).toEqual([members, offered]);
  });

  it("also in a managed file", async () => {
    const place = placeWith("");
    place.write("managed.yaml", 'permissions: { deny: ["Task(second)"] }\n');
    expect(await teamOf(place, { FLOW_MANAGED: join(place.folder, "managed.yaml") })).toEqual([["reader"], tools]);
  });
});

describe("a team takes a level of `limits.depth`", () => {
  it.each([
    ["a sub-agent below which there is none leads nobody", "agent: asker", []],
    ["a sub-agent below which there is one leads", "agent: asker, limits: { depth: 2 }", tools],
    ["a step that lets nobody work below its agent has no team", "agent: lead, limits: { depth: 0 }", []],
  ])("%s", async (_, step, offered) => {
    const place = placeWith("", { step });
    expect((await teamOf(place))[1]).toEqual(offered);
  });
});
