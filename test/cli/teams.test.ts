import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";

/** A team of `reader` and `second`, whose lead and members say what `script` has them say. */
function teamOf(
  script: string,
  {
    lead = "",
    more = "",
    files = {},
  }: { readonly lead?: string; readonly more?: string; readonly files?: Readonly<Record<string, string>> } = {},
): Place {
  return new Place({
    "w.yaml": `name: t
model: scripted/s.yaml
permissions: { Write: allow, Bash: allow }
agents:
  lead:
    instructions: lead
    prompt: go
    team: { members: [reader, { agent: reader, name: second }]${more} }
${lead}
  reader: { instructions: reads, tools: [Read, Write, Bash] }
steps:
  a: { agent: lead }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`,
    "s.yaml": `agents:\n${script}`,
    ...files,
  });
}

async function run(
  place: Place,
  ...flags: readonly string[]
): Promise<{
  readonly code: number | null;
  readonly text: string;
  readonly stderr: string;
  readonly log: readonly LogLine[];
}> {
  const { code, stdout, stderr } = await place.flow(["run", "w.yaml", "--json", ...flags]);
  const text =
    stdout.trim() === "" ? "" : String((JSON.parse(stdout) as { outputs?: { text?: string } }).outputs?.text ?? "");
  return { code, text, stderr, log: place.events() };
}

function ofType<T extends LogLine["type"]>(log: readonly LogLine[], type: T): readonly Extract<LogLine, { type: T }>[] {
  return log.filter((line): line is Extract<LogLine, { type: T }> => line.type === type);
}

function exists({ folder }: Place, path: string): boolean {
  return existsSync(join(folder, path));
}

const begin = `    - calls:
        - { name: TeamCreate, args: { name: crew } }`;
const add = (subject: string, more = ""): string =>
  `        - { name: TaskCreate, args: { subject: ${subject}, description: "do ${subject}"${more} } }`;

describe("a team", () => {
  it("works through its tasks by itself, in the order of what they depend on, and wakes its lead", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
${add("two")}
${add("three", ', dependsOn: ["1", "2"]')}
    - text: waiting
    - text: "heard: \${{ message }}"
  reader:
    - calls: [{ name: TaskUpdate, args: { taskId: "1", status: completed, report: "first" } }]
      when: contains(prompt, 'is 1:')
      delay: 100ms
    - calls: [{ name: TaskUpdate, args: { taskId: "2", status: completed, report: "other" } }]
      when: contains(prompt, 'is 2:')
      delay: 100ms
    - text: "built on \${{ prompt }}"
`);
    const { code, text, log } = await run(place);
    expect(code).toBe(0);
    expect(text).toContain("[Report of reader on task 1, one: completed]\nfirst");
    expect(text).toContain("[Report of reader on task 3, three: completed]\nbuilt on Your task is 3: three");
    expect(text).toContain("Task 1, one:\nfirst\n\nTask 2, two:\nother");
    const changes = ofType(log, "team.task.updated").map(({ task, change }) => `${task} ${change.status ?? ""}`);
    expect(changes.slice(0, 2)).toEqual(["1 in_progress", "2 in_progress"]);
    expect(changes.indexOf("3 in_progress")).toBeGreaterThan(
      Math.max(changes.indexOf("1 completed"), changes.indexOf("2 completed")),
    );
    expect(ofType(log, "team.woken")).toHaveLength(1);
    expect(ofType(log, "team.finished")).toMatchObject([{ end: "done" }]);
    const members = ofType(log, "agent.started").filter(({ spawned }) => spawned !== undefined);
    expect(members.map(({ spawned }) => spawned?.name)).toEqual(["reader", "second", "reader"]);
  });

  it("names what nobody can do, and ends there", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
${add("two", ', dependsOn: ["1"]')}
    - text: waiting
    - text: "now: \${{ message }}"
    - text: "end: \${{ message }}"
  reader:
    - calls: [{ name: TaskUpdate, args: { taskId: "1", status: failed, report: "no way" } }]
`);
    const { code, text, log } = await run(place);
    expect(code).toBe(0);
    expect(text).toContain(
      "The team has ended: nothing can go on: task 2 (two): it depends on task 1, which is failed",
    );
    expect(ofType(log, "team.finished")).toMatchObject([{ end: "deadlock" }]);
  });

  it("lets its lead try a failed task again", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
    - text: waiting
    - calls: [{ name: TaskUpdate, args: { taskId: "1", status: pending, description: "try again" } }]
    - text: waiting again
    - text: "end: \${{ message }}"
  reader:
    - calls: [{ name: TaskUpdate, args: { taskId: "1", status: failed, report: "no way" } }]
      when: contains(prompt, 'do one')
    - calls: [{ name: TaskUpdate, args: { taskId: "1", status: completed, report: "this time" } }]
`);
    expect((await run(place)).text).toContain("completed]\nthis time");
  });

  it("wakes its lead ten times and not more", async () => {
    const again = Array.from(
      { length: 12 },
      (_, index) => `    - calls:\n${add(`t${index}`)}\n    - text: waiting ${index}\n`,
    ).join("");
    const place = teamOf(`  lead:\n${begin}\n${again}    - text: "end"\n  reader:\n    - text: done\n`);
    const { code, log } = await run(place);
    expect(code).toBe(0);
    expect(ofType(log, "team.woken")).toHaveLength(10);
    expect(ofType(log, "team.finished")).toMatchObject([{ end: "wakes" }]);
  });

  it("refuses what makes no sense, in words a model can read", async () => {
    const calls: readonly [string, string][] = [
      ["{ name: TaskCreate, args: { subject: a, description: b } }", "There is no team. Call TeamCreate first."],
      [
        "{ name: TeamCreate, args: { name: crew } }",
        "The team is there. Members: reader (reader), second (reader); 2 work at the same time.",
      ],
      ["{ name: TeamCreate, args: { name: crew } }", "There is a team already, `crew`. TeamDelete ends it."],
      [
        '{ name: TaskCreate, args: { subject: a, description: b, dependsOn: ["9"] } }',
        "There is no task `9`. There is none yet.",
      ],
      [
        '{ name: TaskCreate, args: { subject: a, description: b, dependsOn: ["1"] } }',
        "Task 1 would come to depend on itself.",
      ],
      [
        "{ name: TaskCreate, args: { subject: a, description: b, owner: nobody } }",
        "There is no member `nobody`. There are: reader, second.",
      ],
      ["{ name: TaskGet, args: { taskId: '7' } }", "There is no task `7`."],
      ["{ name: TaskUpdate, args: { taskId: '7', status: pending } }", "There is no task `7`."],
      [
        "{ name: SendMessage, args: { to: nobody, content: hi } }",
        "There is no `nobody` to write to. There are: reader, second.",
      ],
      ["{ name: SendMessage, args: { to: reader, content: hi, kind: plan_response } }", "give `approve`"],
      [
        "{ name: Task, args: { description: d, prompt: p, subagent_type: reader, task_id: '3' } }",
        "There is no task `3`.",
      ],
    ];
    const place = teamOf(
      `  lead:\n    - calls:\n${calls.map(([call]) => `        - ${call}`).join("\n")}\n    - text: end\n  reader: [{ text: x }]\n`,
    );
    const { log } = await run(place);
    const results = ofType(log, "tool.finished").map(({ text }) => text);
    for (const [index, [, expected]] of calls.entries()) expect(results[index]).toContain(expected);
  });

  it("hands a task out by the lead's word, at once", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one", ", owner: second")}
    - text: waiting
    - calls:
        - { name: TaskCreate, args: { subject: two, description: "do two", dependsOn: [] } }
        - { name: TaskList, args: {} }
    - text: waiting
    - text: end
  reader:
    - text: done
`);
    const { log } = await run(place);
    const started = ofType(log, "agent.started").flatMap(({ spawned }) =>
      spawned ? [`${spawned.call} ${spawned.name ?? ""}`] : [],
    );
    expect(started).toEqual(["task:1 second", "task:2 reader"]);
  });

  it("assigns a task by the Task tool", async () => {
    const place = teamOf(`  lead:
    - calls:
        - { name: TeamCreate, args: { name: crew } }
        - { name: TaskCreate, args: { subject: one, description: first } }
        - { name: TaskCreate, args: { subject: two, description: second, dependsOn: ["1"] } }
        - { name: Task, args: { description: two, prompt: now, subagent_type: second, task_id: "2" } }
    - text: waiting
    - text: "end: \${{ message }}"
  reader: [{ text: done }]
`);
    const { log } = await run(place);
    expect(ofType(log, "tool.finished").at(3)?.text).toBe(
      "Task 2 cannot be taken up: it depends on task 1, which is in_progress.",
    );
  });

  it("passes messages on at the border of a turn, to one and to all", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
        - { name: SendMessage, args: { to: reader, content: "mind the gap" } }
        - { name: SendMessage, args: { to: all, content: "hello you" } }
    - text: waiting
    - text: "heard: \${{ message }}"
    - text: "heard: \${{ message }}"
  reader:
    - calls: [{ name: SendMessage, args: { to: lead, content: "got: \${{ message }}" } }]
      delay: 50ms
    - text: "seen: \${{ message }}"
`);
    const { log } = await run(place);
    const said = ofType(log, "team.message").map(({ message }) => `${message.from}>${message.to} ${message.kind}`);
    expect(said.slice(0, 2)).toEqual(["lead>reader message", "lead>all broadcast"]);
    const read = ofType(log, "message").filter(({ from }) => from?.includes("message:lead:1"));
    expect(read.map(({ agent }) => agent)).toEqual(["a@1.1"]);
    const woken = ofType(log, "agent.started").filter(({ spawned }) => spawned?.call.startsWith("talk:") === true);
    expect(woken.map(({ spawned }) => spawned?.name)).toEqual(["second"]);
  });

  it("lets its lead change nothing of a task that somebody works on", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
        - { name: TaskUpdate, args: { taskId: "1", subject: other } }
    - text: waiting
    - text: "end: \${{ message }}"
  reader:
    - { text: done, delay: 300ms }
`);
    const { log } = await run(place);
    const [told] = ofType(log, "tool.finished").filter(({ name }) => name === "TaskUpdate");
    expect([told?.status, told?.text]).toEqual(["error", expect.stringContaining("Task 1 is in_progress") as string]);
  });

  it("stops a member after its turn when it is asked to, and gives its task to another", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
        - { name: SendMessage, args: { to: reader, content: "stop please", kind: shutdown_request } }
    - { text: waiting, delay: 1500ms }
    - text: "end: \${{ message }}"
  reader:
    - calls: [{ name: TaskList, args: {} }]
      when: turn == 1
      delay: 150ms
    - text: "done by somebody"
`);
    const { log, text } = await run(place);
    expect(ofType(log, "team.member.removed").map(({ member }) => member)).toEqual(["reader"]);
    expect(text).toContain(
      "[reader has stopped; task 1, one, is open again]\n\n[Report of second on task 1, one: completed]",
    );
  });

  it("keeps a member from changing anything before its plan is approved", async () => {
    const place = teamOf(
      `  lead:
${begin}
${add("one", ", owner: writer")}
    - text: waiting
    - calls: [{ name: SendMessage, args: { to: writer, content: "good", kind: plan_response, approve: true } }]
    - text: waiting
    - text: "end: \${{ message }}"
  reader:
    - calls: [{ name: Write, args: { file_path: early.txt, content: x } }]
    - calls: [{ name: SendMessage, args: { to: lead, content: "I would write", kind: plan_request } }]
    - text: my plan is sent
    - calls: [{ name: Write, args: { file_path: late.txt, content: x } }]
    - calls: [{ name: TaskUpdate, args: { taskId: "1", status: completed, report: written } }]
`,
    );
    place.write(
      "w.yaml",
      place
        .read("w.yaml")
        .replace("members: [reader,", "members: [reader, { agent: reader, name: writer, plan: required },"),
    );
    const { code, log } = await run(place);
    expect(code).toBe(0);
    const writes = ofType(log, "tool.finished").filter(({ name }) => name === "Write");
    expect(writes.map(({ status }) => status)).toEqual(["error", "completed"]);
    expect(writes[0]?.text).toContain("plan: required");
    expect(exists(place, "early.txt")).toBe(false);
    expect(exists(place, "late.txt")).toBe(true);
  });

  it("keeps whom a member spawns from changing anything before its plan is approved, too", async () => {
    const place = teamOf(
      `  lead:
${begin}
${add("one")}
    - text: waiting
    - text: end
  reader:
    - calls: [{ name: Task, args: { description: write, prompt: write, subagent_type: general } }]
    - text: done
  general:
    - calls: [{ name: Write, args: { file_path: early.txt, content: x } }]
    - text: tried
`,
      { lead: "    limits: { depth: 2 }" },
    );
    const members = "members: [{ agent: reader, name: writer, plan: required }]";
    const written = place.read("w.yaml").replace(/members: \[.*\]/, members);
    place.write("w.yaml", written.replace("{ instructions: reads,", "{ instructions: reads, subagents: [general],"));
    const { log } = await run(place);
    const [write] = ofType(log, "tool.finished").filter(({ name }) => name === "Write");
    expect(write?.text).toContain("plan: required");
    expect(exists(place, "early.txt")).toBe(false);
  });

  it("keeps members to their terms", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one", ", owner: looker")}
${add("two", ", owner: docs")}
    - text: waiting
    - text: waiting
    - text: end
  reader:
    - calls:
        - { name: Write, args: { file_path: docs/a.txt, content: x } }
        - { name: Write, args: { file_path: b.txt, content: x } }
        - { name: Bash, args: { command: "echo hi > c.txt" } }
    - text: done
`);
    const members = "{ agent: reader, name: looker, mode: read }, { agent: reader, name: docs, paths: [docs] },";
    place.write("w.yaml", place.read("w.yaml").replace("members: [reader,", `members: [${members}`));
    const { log } = await run(place);
    const calls = (agent: string): readonly string[] =>
      ofType(log, "tool.finished").flatMap((line) => (line.agent === agent ? [`${line.name} ${line.status}`] : []));
    expect(calls("a@1.1").filter((text) => text.endsWith("completed"))).toEqual([]);
    expect(calls("a@1.2")).toContain("Write completed");
    expect([exists(place, "docs/a.txt"), exists(place, "b.txt"), exists(place, "c.txt")]).toEqual([true, false, false]);
  });

  it("ends when its lead does, and when it is deleted", async () => {
    const place = teamOf(`  lead:
${begin}
${add("one")}
    - calls: [{ name: TeamDelete, args: {} }]
    - text: end
  reader:
    - text: late
      delay: 20s
`);
    const started = Date.now();
    const { code, log } = await run(place);
    expect(code).toBe(0);
    expect(Date.now() - started).toBeLessThan(8_000);
    expect(ofType(log, "team.finished")).toMatchObject([{ end: "deleted" }]);
    expect(ofType(log, "agent.finished").map(({ agent, outcome }) => `${agent} ${outcome}`)).toEqual([
      "a@1.1 cancelled",
      "a@1 done",
    ]);
  });
});
