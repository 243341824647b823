import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { run } from "../../src/flow.ts";
import { answers, ends, of, replies, task } from "./lineage.ts";
import { Place } from "./flow.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function placeWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place(files);
  places.push(place);
  return place;
}

interface Levels {
  /** Keys of the agents of three levels, beside who they spawn. */
  readonly top?: string;
  readonly middle?: string;
  readonly bottom?: string;
  /** Keys of the workflow. */
  readonly flow?: string;
}

/** Three levels, of which each spawns the next; the last makes the calls. */
function levels(
  { top = "", middle = "", bottom = "", flow = "" }: Levels,
  calls: string,
  more: readonly string[] = [],
) {
  return {
    "flow.yaml": `model: scripted/replies.yaml
${flow}
agents:
  middle: { instructions: M., subagents: [bottom]${middle} }
  bottom: { instructions: B.${bottom} }
steps:
  a: { agent: { prompt: Lead., subagents: [middle], limits: { depth: 2 }${top} } }
`,
    "replies.yaml": replies({
      a: [...more, `{ calls: [${task("middle")}] }`, '{ text: "${{ message }}" }'],
      middle: [`{ calls: [${task("bottom")}] }`, '{ text: "${{ message }}" }'],
      bottom: [`{ calls: [${calls}] }`, '{ text: "${{ message }}" }'],
    }),
  };
}

const write = "{ name: Write, args: { file_path: made.txt, content: x } }";
const bash = "{ name: Bash, args: { command: touch made.txt } }";
const all = "{ '*': allow }";

describe("three levels down an agent may do", () => {
  const everywhere = { top: `, permissions: ${all}`, middle: `, permissions: ${all}`, bottom: `, permissions: ${all}` };
  it.each([
    ["what all above it may", { ...everywhere, flow: `permissions: ${all}` }, true],
    ["nothing that the workflow denies", { ...everywhere, flow: "permissions: { Write: deny, Bash: deny }" }, false],
    [
      "nothing that the top denies",
      { ...everywhere, top: ", permissions: { Write: deny, Bash: deny }", flow: `permissions: ${all}` },
      false,
    ],
    [
      "nothing that the middle denies",
      { ...everywhere, middle: ", permissions: { Write: deny, Bash: deny }", flow: `permissions: ${all}` },
      false,
    ],
    [
      "nothing that it denies itself",
      { ...everywhere, bottom: ", permissions: { Write: deny, Bash: deny }", flow: `permissions: ${all}` },
      false,
    ],
    ["nothing that only itself allows", { bottom: `, permissions: ${all}` }, false],
  ])("%s", async (_, keys, isAllowed) => {
    for (const call of [write, bash]) {
      const place = placeWith(levels({ ...keys, bottom: `${keys.bottom}, tools: [Write, Bash, Read]` }, call));
      await place.flow(["run", "flow.yaml"]);
      expect(existsSync(join(place.folder, "made.txt"))).toBe(isAllowed);
      expect(answers(place.events(), "a@1.1.1", call === write ? "Write" : "Bash").map(({ status }) => status)).toEqual(
        [isAllowed ? "completed" : "error"],
      );
    }
  });

  it("nothing that its grandparent's list of tools leaves out in its rules for spawning", async () => {
    const place = placeWith(levels({ top: ", permissions: { Task: { middle: deny } }" }, write));
    await place.flow(["run", "flow.yaml"]);
    expect(of(place.events(), "agent.started").map(({ tools }) => tools.includes("Task"))).toEqual([false]);
  });

  it("nothing that a skill has taken from an agent above it since", async () => {
    const place = placeWith({
      ...levels(
        {
          flow: `permissions: ${all}`,
          bottom: `, tools: [Write, Read], permissions: ${all}`,
          middle: `, permissions: ${all}`,
        },
        write,
        ["{ calls: [{ name: Skill, args: { skill: reading } }] }"],
      ),
      "skills/reading/SKILL.md": "---\nname: reading\ndescription: Reads.\nallowed-tools: Read, Task\n---\nRead.\n",
    });
    await place.flow(["run", "flow.yaml"]);
    expect(answers(place.events(), "a@1", "Skill").map(({ status }) => status)).toEqual(["completed"]);
    expect(existsSync(join(place.folder, "made.txt"))).toBe(false);
    expect(answers(place.events(), "a@1.1.1", "Write").map(({ status }) => status)).toEqual(["error"]);
  });

  it("nothing outside the sandbox that one above it is in", async () => {
    const outside = '{ name: Bash, args: { command: "touch /var/tmp/flow-outside-$PPID && echo out" } }';
    const keys = {
      flow: `permissions: ${all}`,
      middle: `, permissions: ${all}`,
      bottom: `, permissions: ${all}, sandbox: off`,
    };
    const place = placeWith(levels(keys, outside));
    await place.flow(["run", "flow.yaml"]);
    const boxes = of(place.events(), "agent.started").map(({ agent, sandbox }) => `${agent} ${sandbox}`);
    if (boxes[0] === "a@1 unavailable") return console.log("skipped: this machine has no sandbox");
    expect(boxes).toEqual(["a@1 on", "a@1.1 on", "a@1.1.1 on"]);
    expect(answers(place.events(), "a@1.1.1", "Bash")[0]?.text).toMatch(/Read-only file system/);
  });
});

describe("what asks", () => {
  it("three levels down ends a run without a terminal at once, with exit 6 and the rule to add", async () => {
    const place = placeWith(levels({ bottom: ", tools: [Write]" }, write));
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, stderr]).toEqual([6, expect.stringContaining("--allow 'Write(./made.txt)'")]);
    const [judged, denied] = [of(place.events(), "permission.judged"), of(place.events(), "agent.finished")];
    expect(judged.find(({ agent }) => agent === "a@1.1.1")).toMatchObject({
      decision: "ask",
      toAllow: ["Write(./made.txt)"],
    });
    const took = Date.parse(denied.at(-1)?.time ?? "") - Date.parse(judged.at(-1)?.time ?? "");
    expect(took).toBeLessThan(1000);
    expect(ends(place.events())).toEqual(["a@1.1.1 bottom denied", "a@1.1 middle denied", "a@1 a denied"]);
    const again = await place.flow(["run", "flow.yaml", "--allow", "Write(made.txt)"]);
    expect([again.code, place.read("made.txt")]).toEqual([0, "x"]);
    const why = await place.flow(["why", "latest", "a"]);
    expect(why.code).toBe(0);
  });

  it("asks a person once for the whole run, and says which sub-agent it is", async () => {
    const two = `${write}, { name: Write, args: { file_path: made.txt, content: xx } }`;
    const files = levels({ bottom: ", tools: [Write]" }, two);
    const place = placeWith({
      ...files,
      // One after the other: what one has written the other has not seen, and may not write over.
      "flow.yaml": files["flow.yaml"].replace("limits: { depth: 2 }", "limits: { depth: 2, parallel: 1 }"),
      "replies.yaml": files["replies.yaml"].replace(task("middle"), `${task("middle")}, ${task("middle")}`),
    });
    const questions: string[] = [];
    const asker = {
      ask: ({ question }: { readonly question: string }) => {
        questions.push(question);
        return Promise.resolve({ decision: "approved" as const });
      },
    };
    const result = await run({ file: "flow.yaml", cwd: place.folder, asker, by: "me" });
    expect(result.started && result.end.exitCode).toBe(0);
    expect(questions).toEqual(["Sub-agent bottom: allow Write(./made.txt)? (asked because of `*`)"]);
    expect(answers(place.events(), "a@1.1.1", "Write").map(({ status }) => status)).toEqual(["completed", "completed"]);
  });

  it("is asked about in a sub-agent of one that wants every call approved", async () => {
    const keys = {
      flow: `permissions: ${all}`,
      top: ", approval: always",
      middle: `, permissions: ${all}`,
      bottom: `, permissions: ${all}`,
    };
    const place = placeWith(levels(keys, write));
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect([code, existsSync(join(place.folder, "made.txt"))]).toEqual([6, false]);
  });
});

describe("a denial that somebody wrote", () => {
  it("is a result, and whoever reads it may still succeed; `flow why` and `flow show` name it", async () => {
    const place = placeWith(levels({ flow: "permissions: { Write: deny }", bottom: ", tools: [Write, Read]" }, write));
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect([code, ends(place.events())]).toEqual([0, ["a@1.1.1 bottom done", "a@1.1 middle done", "a@1 a done"]]);
    expect(answers(place.events(), "a@1.1.1", "Write")[0]?.text).toContain("Write");
  });
});
