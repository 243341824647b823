import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { readSkill } from "../../src/skills/read.ts";
import { findSkill } from "../../src/skills/find.ts";
import type { Skill } from "../../src/skills/skill.ts";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "flow.yaml":
      "name: taught\nmodel: scripted/r.yaml\npermissions: { Edit: allow, Bash: allow }\nsteps: { a: { agent: worker, prompt: go } }\n",
    "agents/worker.yaml": "name: worker\ninstructions: You work.\n",
  });
});
afterEach(() => place.remove());

function teach(root: string, name: string, more = "", body = `How to do ${name}.`): void {
  place.write(`${root}/${name}/SKILL.md`, `---\nname: ${name}\ndescription: Knows ${name}.\n${more}---\n\n${body}\n`);
}

function reply(...calls: readonly (readonly [tool: string, args: object])[]): void {
  const turns = calls.map(([name, args]) => `    - { calls: [{ name: ${name}, args: ${JSON.stringify(args)} }] }`);
  place.write("r.yaml", `agents:\n  worker:\n${[...turns, "    - { text: done }"].join("\n")}\n`);
}

function eventsOf<T extends LogLine["type"]>(type: T): Extract<LogLine, { type: T }>[] {
  return place.events().filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

function told(): string {
  return JSON.stringify(eventsOf("message")[0]?.message);
}

describe("a skill", () => {
  it.each([".agents/skills", ".claude/skills", ".opencode/skill", ".opencode/skills", "skills"])(
    "of %s is named up front and read on demand",
    async (root) => {
      teach(root, "tide-tables");
      reply(["Skill", { skill: "tide-tables" }]);
      expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
      expect(told()).toContain("- tide-tables: Knows tide-tables.");
      expect(told()).not.toContain("How to do");
      expect(eventsOf("tool.finished")[0]?.text).toContain(`Its files lie in ${root}/tide-tables/`);
      expect(eventsOf("tool.finished")[0]?.text).toContain("How to do tide-tables.");
    },
  );

  it("that an agent lists is there from the start, also one that no model may take by itself", async () => {
    teach(".claude/skills", "knots", "disable-model-invocation: true\n");
    place.write("agents/worker.yaml", "name: worker\ninstructions: You work.\nskills: [knots]\n");
    reply(["Skill", { skill: "knots" }]);
    await place.flow(["run", "flow.yaml"]);
    expect(told()).toContain("How to do knots.");
    expect(told()).not.toContain("- knots:");
  });

  it("may take rights away for the rest of the run and gives none", async () => {
    teach("skills", "reader", "allowed-tools: Read Bash(echo *) WebFetch\n");
    reply(
      ["Bash", { command: "date > before.txt" }],
      ["Skill", { skill: "reader" }],
      ["Bash", { command: "date" }],
      ["Bash", { command: "echo hello" }],
      ["WebFetch", { url: "https://example.org/" }],
    );
    await place.flow(["run", "flow.yaml"]);
    const verdicts = eventsOf("permission.judged").map(({ name, decision }) => `${name} ${decision}`);
    expect(verdicts).toEqual(["Bash allow", "Skill allow", "Bash deny", "Bash allow"]);
    expect(eventsOf("tool.finished").at(-1)?.text).toContain("no tool");
  });

  it("that is not there is told with its place before anything runs", async () => {
    teach("skills", "knots");
    place.write("agents/worker.yaml", "name: worker\ninstructions: You work.\nskills: [knits]\n");
    reply();
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      "agents/worker.yaml:3:10 error FLOW6021: there is no skill `knits`; did you mean `knots`?",
    );
  });

  it("that is malformed and listed is told at its own place", async () => {
    place.write("skills/knots/SKILL.md", "---\nname: Knots\n---\nTie.\n");
    place.write("agents/worker.yaml", "name: worker\ninstructions: You work.\nskills: [knots]\n");
    reply();
    const { code, stdout } = await place.flow(["validate", "flow.yaml"]);
    expect(code).toBe(2);
    expect(stdout).toContain("skills/knots/SKILL.md:2:7 error FLOW3001");
  });
});

describe("the name of a skill", () => {
  const shelf = ["data-cleaning", "data-plots", "sea-charts"].map((name): Skill => ({
    name,
    description: "",
    folder: "",
    body: "",
    hidden: false,
  }));
  it.each([
    ["sea-charts", "sea-charts"],
    ["plugin:sea-charts", "sea-charts"],
    ["sea", "sea-charts"],
    ["plots", "data-plots"],
    ["data", undefined],
    ["charts-sea", undefined],
    ["", undefined],
  ])("%s is found by its whole, its beginning or its end", (asked, name) => {
    const found = findSkill(asked, shelf);
    expect(found.ok ? found.value.name : undefined).toBe(name);
  });
});

describe("a memory", () => {
  const remembering = "name: worker\ninstructions: You work.\nmemory: project\n";

  it("stays from run to run, in the project or with the user", async () => {
    place.write("agents/worker.yaml", remembering);
    reply(["Memory", { command: "write", path: "MEMORY.md", content: "The bridge opens at noon." }]);
    const first = await place.flow(["run", "flow.yaml"]);
    expect([first.code, place.read(".agents/memory/worker/MEMORY.md")]).toEqual([0, "The bridge opens at noon."]);
    reply();
    await place.flow(["run", "flow.yaml"]);
    expect(told()).toContain("The bridge opens at noon.");
    place.write("agents/worker.yaml", remembering.replace("project", "user"));
    reply(
      ["Memory", { command: "write", path: "notes/a.md", content: "a" }],
      ["Memory", { command: "list", path: "notes" }],
    );
    await place.flow(["run", "flow.yaml"], { env: { XDG_CONFIG_HOME: join(place.folder, "home") } });
    expect(place.read("home/flow/memory/worker/notes/a.md")).toBe("a");
    expect(eventsOf("tool.finished").at(-1)?.text).toContain("a.md");
  });

  it("reaches nothing outside its folder", async () => {
    place.write("agents/worker.yaml", remembering);
    reply(
      ["Memory", { command: "read", path: "../../../flow.yaml" }],
      ["Memory", { command: "write", path: "../x", content: "x" }],
    );
    await place.flow(["run", "flow.yaml"]);
    for (const { text } of eventsOf("tool.finished")) expect(text).toContain("outside");
    expect(existsSync(join(place.folder, ".agents/memory/x"))).toBe(false);
  });

  it("is subject to rules: a managed one can forbid it, and who only reads writes nothing there", async () => {
    place.write("agents/worker.yaml", remembering);
    place.write("managed.yaml", "permissions: { deny: [Memory(write)] }\n");
    const calls = ["read", "write"].map((command): [string, object] => [
      "Memory",
      { command, path: "MEMORY.md", content: "x" },
    ]);
    reply(...calls);
    await place.flow(["run", "flow.yaml"], { env: { FLOW_MANAGED: join(place.folder, "managed.yaml") } });
    const judged = (): string[] => eventsOf("permission.judged").map(({ decision, rule }) => `${decision} ${rule}`);
    expect(judged()).toEqual(["allow Memory", "deny Memory(write)"]);
    reply(...calls);
    await place.flow(["run", "flow.yaml", "--profile", "read"]);
    expect(judged()).toEqual(["allow Memory", "deny Memory(write)"]);
    expect(existsSync(join(place.folder, ".agents/memory/worker/MEMORY.md"))).toBe(false);
  });

  it("is off in CI, unless somebody wants it", async () => {
    place.write("agents/worker.yaml", remembering);
    reply();
    await place.flow(["run", "flow.yaml"], { env: { CI: "true" } });
    expect(told()).not.toContain("memory");
    await place.flow(["run", "flow.yaml"], { env: { CI: "true", FLOW_MEMORY: "on" } });
    expect(told()).toContain("You have a memory");
  });
});

const samples = fileURLToPath(new URL("../../../shared/samples/skills/", import.meta.url));
if (!existsSync(samples)) console.log(`skipped: the skills of other projects are not at ${samples}`);

describe.skipIf(!existsSync(samples))("skills somebody else wrote", () => {
  const files = existsSync(samples) ? readdirSync(samples).filter((name) => name.endsWith(".SKILL.md")) : [];
  it.each(files)("%s can be used", (file) => {
    const stem = file.replace(".SKILL.md", "");
    const read = readSkill(readFileSync(samples + file), { file, stem, folder: stem });
    expect(read.ok && [read.value.skill.name, read.value.skill.body.length > 200]).toEqual([stem, true]);
  });
});

describe("a run that goes on", () => {
  it("does not get back what a skill took away", async () => {
    teach("skills", "reader", "allowed-tools: Read\n");
    const skill = "{ calls: [{ name: Skill, args: { skill: reader } }] }";
    const bash = "{ calls: [{ name: Bash, args: { command: date } }] }";
    place.write(
      "r.yaml",
      `agents:\n  worker:\n    - ${skill}\n    - { error: 401 }\n    - ${bash}\n    - { text: done }\n`,
    );
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(3);
    place.write("r.yaml", `agents:\n  worker:\n    - ${skill}\n    - ${bash}\n    - { text: done }\n`);
    expect((await place.flow(["resume", "latest"])).code).toBe(0);
    const judged = eventsOf("permission.judged").map(({ name, decision }) => `${name} ${decision}`);
    expect(judged).toEqual(["Skill allow", "Bash deny"]);
  });
});
