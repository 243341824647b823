import { describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Repository, untouched } from "./repository.ts";

const workflow = (members: string, more = ""): string => `name: t
model: scripted/s.yaml
permissions: { Write: allow, Edit: allow, Bash: allow }
agents:
  lead:
    instructions: lead
    prompt: go
    team: { members: [${members}], isolation: worktree }
  writer: { instructions: writes, tools: [Read, Write, Edit, Bash] }
steps:
  a: { agent: lead }
${more}outputs: { text: "\${{ steps.a.outputs.text }}" }
`;
const two = "writer, { agent: writer, name: second }";
const lead = (tasks: string): string => `agents:
  lead:
    - calls:
        - { name: TeamCreate, args: { name: crew } }
${tasks}
    - text: waiting
    - text: "end: \${{ message }}"
    - text: "end: \${{ message }}"
    - text: "end: \${{ message }}"
  writer:
`;
const add = (subject: string, more = ""): string =>
  `        - { name: TaskCreate, args: { subject: ${subject}, description: "do ${subject}"${more} } }`;

function ofType<T extends LogLine["type"]>(log: readonly LogLine[], type: T): readonly Extract<LogLine, { type: T }>[] {
  return log.filter((line): line is Extract<LogLine, { type: T }> => line.type === type);
}

describe("members in worktrees of their own", () => {
  it("bring their changes in, in the order of their tasks, before others build on them", async () => {
    const place = new Repository({
      "w.yaml": workflow(two),
      "s.yaml": `${lead([add("one"), add("two"), add("three", ', dependsOn: ["1", "2"]')].join("\n"))}    - calls: [{ name: Write, args: { file_path: one.txt, content: "1" } }]
      when: contains(prompt, 'is 1:')
      delay: 300ms
    - calls: [{ name: Write, args: { file_path: two.txt, content: "2" } }]
      when: contains(prompt, 'is 2:')
    - calls: [{ name: Bash, args: { command: "cat one.txt two.txt > three.txt" } }]
      when: contains(prompt, 'is 3:')
    - text: done
`,
    });
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect(stderr).toContain("task 3 completed");
    expect(code).toBe(0);
    expect(place.read("three.txt")).toBe("12");
    const log = place.events();
    const closed = ofType(log, "worktree.closed").map(({ status, files }) => `${status} ${files.join()}`);
    expect(closed).toEqual(["applied one.txt", "applied two.txt", "applied three.txt"]);
    expect(place.traces).toEqual(untouched);
  });

  it("fail their task when what they changed does not fit, and lose nothing", async () => {
    const place = new Repository({
      "w.yaml": workflow(two),
      "shared.txt": "as it was\n",
      "s.yaml": `${lead([add("one"), add("two")].join("\n"))}    - calls:
        - { name: Read, args: { file_path: shared.txt } }
        - { name: Write, args: { file_path: shared.txt, content: "\${{ slice(prompt, 0, 15) }}\\n" } }
    - text: done
      delay: 100ms
`,
    });
    const { code, stdout } = await place.flow(["run", "w.yaml", "--json"]);
    expect(code).toBe(0);
    expect(place.read("shared.txt")).toBe("Your task is 1:\n");
    const log = place.events();
    const ends = ofType(log, "team.task.updated").flatMap(({ task, change }) =>
      change.report === undefined ? [] : [`${task} ${change.status ?? ""}`],
    );
    expect(ends.toSorted()).toEqual(["1 completed", "2 failed"]);
    expect(stdout).toContain("shared.txt");
    expect(stdout).toContain(".patch");
  });

  it("are refused in a tree with changes, before anything is asked", async () => {
    const place = new Repository({
      "w.yaml": workflow(two),
      "s.yaml": `${lead(add("one"))}    - text: done\n`,
      "a.txt": "a\n",
    });
    place.write("a.txt", "changed\n");
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      "the team of agent `lead` has members with `isolation: worktree`, and one file is changed and not committed: a.txt",
    );
    expect(place.runs()).toEqual([]);
  });

  it("go on where they were after flow was killed", async () => {
    const place = new Repository({
      "w.yaml": workflow(two),
      "s.yaml": `${lead([add("one"), add("two", ', dependsOn: ["1"]')].join("\n"))}    - calls: [{ name: Bash, args: { command: "echo \${{ turn }} >> log.txt" } }]
      delay: 150ms
    - calls: [{ name: Bash, args: { command: "echo again >> log.txt" } }]
      delay: 150ms
    - text: done
      delay: 150ms
`,
    });
    for (const ms of [200, 350, 500]) {
      const running = place.start(place.runs().length === 0 ? ["run", "w.yaml"] : ["resume", "latest"]);
      await running.said("agent=writer");
      await new Promise((resolve) => setTimeout(resolve, ms));
      running.kill("SIGKILL");
      await running.ended;
    }
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect(stderr).not.toMatch(/task \d failed/);
    expect(code).toBe(0);
    // A command that was cut off is not repeated: it may have happened.
    expect(place.read("log.txt")).toMatch(/^(?:1\n)?(?:again\n)?(?:1\n)?(?:again\n)?$/);
    const unknown = ofType(place.events(), "message").filter(({ message }) =>
      JSON.stringify(message).includes("unknown: the run was interrupted"),
    );
    const lines = place.read("log.txt").split("\n").length - 1;
    expect(lines).toBeGreaterThanOrEqual(4 - new Set(unknown.map((line) => JSON.stringify(line.message))).size);
    expect(place.traces).toEqual(untouched);
  });
});
