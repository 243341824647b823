import { describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";

const files = {
  "w.yaml": `name: t
model: scripted/s.yaml
agents:
  lead:
    instructions: lead
    prompt: go
    team: { members: [reader, { agent: reader, name: second }] }
  reader: { instructions: reads, tools: [Read] }
steps:
  a: { agent: lead }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`,
  "s.yaml": `agents:
  lead:
    - calls:
        - { name: TeamCreate, args: { name: crew } }
        - { name: TaskCreate, args: { subject: one, description: "do one" } }
        - { name: TaskCreate, args: { subject: two, description: "do two" } }
        - { name: TaskCreate, args: { subject: three, description: "do three", dependsOn: ["1"] } }
        - { name: TaskCreate, args: { subject: four, description: "do four", dependsOn: ["2", "3"] } }
    - text: waiting
    - text: "end: \${{ message }}"
    - text: "end: \${{ message }}"
    - text: "end: \${{ message }}"
    - text: "end: \${{ message }}"
    - text: "end: \${{ message }}"
  reader:
    - calls: [{ name: TaskList, args: {} }]
      delay: 120ms
    - text: "did \${{ prompt }}"
      delay: 120ms
`,
};

/** Replies of models, by the task they were for. */
function replies(log: readonly LogLine[]): ReadonlyMap<string, number> {
  const tasks = new Map(
    log.flatMap((line) => (line.type === "agent.started" ? [[line.agent, line.spawned?.call ?? "lead"] as const] : [])),
  );
  const counts = new Map<string, number>();
  for (const line of log) {
    if (line.type !== "message" || line.usage === undefined) continue;
    const task = tasks.get(line.agent) ?? "";
    counts.set(task, (counts.get(task) ?? 0) + 1);
  }
  return counts;
}

/** Tasks, each as often as it was completed. */
function completed(log: readonly LogLine[]): string[] {
  return log.flatMap((line) =>
    line.type === "team.task.updated" && line.change.status === "completed" ? [line.task] : [],
  );
}

describe("a team that is killed", () => {
  it.each([150, 260, 330, 420, 520, 640])("goes on where it was when flow died after %i ms", async (ms) => {
    const place = new Place(files);
    const running = place.start(["run", "w.yaml"]);
    await running.said("task 1 in_progress");
    await new Promise((resolve) => setTimeout(resolve, ms));
    running.kill("SIGKILL");
    await running.ended;
    const { code, stdout, stderr } = await place.flow(["resume", "latest", "--json"]);
    expect(stderr + stdout).not.toContain("internal");
    expect(code).toBe(0);
    const log = place.events();
    expect(completed(log).toSorted()).toEqual(["1", "2", "3", "4"]);
    const told = JSON.stringify(
      log.filter((line) => line.type === "message" && line.from !== undefined && line.parent === null),
    );
    for (const task of ["one", "two", "three", "four"])
      expect(told.split(`on task`).filter((it) => it.includes(`, ${task}: completed`))).toHaveLength(1);
    // A turn that was cut off may be asked for a second time, and nothing else.
    for (const [task, count] of replies(log)) if (task !== "lead") expect([task, count]).toEqual([task, 2]);
    place.remove();
  });
});

describe("a team whose log ends between two lines that belong together", () => {
  it.each([
    ["a task is taken up, and its member not yet at work", "in_progress"],
    ["a task is completed, and its member not yet free", "completed"],
  ])("goes on: %s", async (_, status) => {
    const place = new Place(files);
    expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
    const [run = ""] = place.runs();
    const whole = place.log();
    const events = place.events();
    for (const [at, event] of events.entries()) {
      if (event.type !== "team.task.updated" || event.change.status !== status) continue;
      place.endLog(at + 1, whole);
      expect([event.task, (await place.flow(["resume", run])).code]).toEqual([event.task, 0]);
      expect([event.task, completed(place.events()).toSorted()]).toEqual([event.task, ["1", "2", "3", "4"]]);
      const told = place.events().filter((line) => line.type === "message" && line.parent === null && line.from);
      for (const subject of ["one", "two", "three", "four"])
        expect(JSON.stringify(told).split(`, ${subject}: completed`)).toHaveLength(2);
    }
    place.remove();
  });
});

describe("a call of the lead that was cut off", () => {
  it.each(["tool.started", "team.started", "team.member.added", "team.task.added"])(
    "before or behind %s is made once",
    async (type) => {
      const place = new Place(files);
      expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
      const [run = ""] = place.runs();
      const whole = place.log();
      for (const [at, event] of place.events().entries()) {
        if (event.type !== type || !("agent" in event) || event.agent !== "a@1") continue;
        place.endLog(at + 1, whole);
        expect([at, (await place.flow(["resume", run])).code]).toEqual([at, 0]);
        const added = place.events().flatMap((line) => (line.type === "team.task.added" ? [line.task.subject] : []));
        expect([at, added]).toEqual([at, ["one", "two", "three", "four"]]);
        expect([at, completed(place.events()).length]).toEqual([at, 4]);
      }
      place.remove();
    },
  );
});

describe("a member that was only written to", () => {
  const team = (ben: string): Readonly<Record<string, string>> => ({
    "w.yaml": `model: scripted/s.yaml
permissions: { Bash: allow, Write: allow }
agents:
  chief: { instructions: L., team: { members: [{ agent: w, name: ann }, { agent: w, name: ben }] } }
  w: { instructions: W., tools: [Bash] }
steps: { go: { agent: chief, prompt: Go. } }
`,
    "s.yaml": `agents:
  chief:
    - calls:
        - { name: TeamCreate, args: { name: crew } }
        - { name: TaskCreate, args: { subject: slow, description: be slow, owner: ann } }
        - { name: SendMessage, args: { to: ben, content: "please deploy" } }
    - { text: waiting }
    - { text: "end: \${{ message }}" }
    - { text: "end: \${{ message }}" }
  w:
    - { when: "contains(prompt, 'slow')", calls: [{ name: Bash, args: { command: test -e go || sleep 30 } }] }
    - { when: "contains(prompt, 'slow')", text: slow is done }
    - { when: "contains(prompt, 'deploy')", calls: [{ name: Bash, args: { command: "echo deployed >> deployed.txt" } }] }
    - { when: "contains(prompt, 'deploy')", calls: [{ name: Bash, args: { command: "${ben}" } }] }
    - { when: "contains(prompt, 'deploy')", text: it is deployed }
    - { calls: [{ name: Bash, args: { command: "echo again >> deployed.txt" } }] }
    - { text: it is deployed again }
`,
  });

  it.each([
    ["and has done it", "true", /go>ben@\S+ ok/],
    ["and is at it", "test -e go || sleep 30", /deployed\.txt/],
  ])("%s does it once, however often the run is resumed", async (_, command, reached) => {
    const place = new Place(team(command));
    const running = place.start(["run", "w.yaml", "-v"]);
    let said = "";
    while (!reached.test(said) || !said.includes("test -e go")) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      said = (await place.flow(["logs", "latest", "-v"])).stdout;
    }
    running.kill("SIGINT");
    await running.ended;
    place.write("go", "");
    expect((await place.flow(["resume", "latest"])).code).toBe(0);
    expect(place.read("deployed.txt")).toBe("deployed\n");
    place.remove();
  });
});

describe("`limits.children` of a lead", () => {
  it("counts one that was cut off and goes on as one", async () => {
    const place = new Place({
      ...files,
      "w.yaml": files["w.yaml"].replace("{ agent: lead }", "{ agent: lead, limits: { children: 4 } }"),
    });
    const running = place.start(["run", "w.yaml"]);
    await running.said("task 1 in_progress");
    await new Promise((resolve) => setTimeout(resolve, 200));
    running.kill("SIGKILL");
    await running.ended;
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect([code, stderr.match(/task \d completed/g)?.length]).toEqual([0, 4]);
    place.remove();
  });
});
