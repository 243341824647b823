import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { run } from "../../src/flow.ts";
import { ends, of, replies } from "./lineage.ts";
import { Place } from "./flow.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function placeWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place(files);
  places.push(place);
  return place;
}

/** Keys of the agents, beside their instructions and what the lead needs to lead. */
interface Crew {
  readonly lead?: string;
  readonly reader?: string;
  readonly team?: string;
  /** Keys of the workflow, and of the step. */
  readonly flow?: string;
  readonly step?: string;
}

function flow({
  lead = "",
  reader = ", tools: [Read, Write, Bash]",
  team = "",
  flow: more = "",
  step = "",
}: Crew): string {
  return `model: scripted/s.yaml
${more}
agents:
  lead: { instructions: You lead., prompt: Go., team: { members: [reader, { agent: reader, name: second }]${team} }${lead} }
  reader: { instructions: You read.${reader} }
steps:
  a: { agent: lead${step} }
outputs: { text: "\${{ default(steps.a.outputs.text, '') }}" }
`;
}

const create = "{ name: TeamCreate, args: { name: crew } }";
const add = (subject: string, more = ""): string =>
  `{ name: TaskCreate, args: { subject: ${subject}, description: "do ${subject}"${more} } }`;
const begin = (...tasks: readonly string[]): string =>
  `{ calls: [${[create, ...tasks.map((it) => add(it))].join(", ")}] }`;
const done = (task: string, report = "all is well"): string =>
  `{ calls: [{ name: TaskUpdate, args: { taskId: "${task}", status: completed, report: ${report} } }] }`;
const says = (text: string): string => `{ text: "${text}" }`;
const heard = says("heard: ${{ message }}");

function exists({ folder }: Place, path: string): boolean {
  return existsSync(join(folder, path));
}

/** `1 completed`: what became of the tasks, in the order it did. */
function changes(place: Place): string[] {
  return of(place.events(), "team.task.updated").map(({ task, change }) => `${task} ${change.status ?? "?"}`);
}

describe("a hook on `TaskCompleted`", () => {
  it("sends the member back with its reason as long as it says no", async () => {
    const place = placeWith({
      "flow.config.yaml": "hooks: { TaskCompleted: [{ hooks: [{ command: ./check.sh }] }] }\n",
      "check.sh": "cat >>told.txt; test -e ok.txt || { echo 'write ok.txt first' >&2; exit 2; }\n",
      "w.yaml": flow({ flow: "permissions: { Write: allow }" }),
      "s.yaml": replies({
        lead: [begin("one"), says("waiting"), heard],
        reader: [
          done("1"),
          "{ calls: [{ name: Write, args: { file_path: ok.txt, content: x } }] }",
          done("1", "now it is"),
        ],
      }),
    });
    await place.shell("chmod +x check.sh");
    const { code, stdout } = await place.flow(["run", "w.yaml"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("one: completed]\n  now it is") as string]);
    const said = of(place.events(), "tool.finished").filter(({ name }) => name === "TaskUpdate");
    expect(said.map(({ status, text }) => [status, text.includes("write ok.txt first")])).toEqual([
      ["error", true],
      ["completed", false],
    ]);
    expect(changes(place)).toEqual(["1 in_progress", "1 completed"]);
    const told = JSON.parse(place.read("told.txt").split("\n")[0] ?? "") as object;
    expect(told).toMatchObject({
      hook_event_name: "TaskCompleted",
      task_id: "1",
      task_subject: "one",
      task_description: "do one",
      teammate_name: "reader",
      team_name: "crew",
      session_id: "a@1.1",
    });
  });
});

describe("the limits of a lead", () => {
  it("pay for its members, and end the step with exit code 4", async () => {
    const usage = "usage: { input: 1000, output: 500 }";
    const place = placeWith({
      "w.yaml": flow({ lead: ", max-output: 500, limits: { tokens: 6000 }", reader: ", tools: [], max-output: 500" }),
      "s.yaml": replies({
        lead: [
          `{ calls: [${[create, add("one"), add("two"), add("three"), add("four")].join(", ")}], ${usage} }`,
          says("waiting"),
          heard,
          heard,
        ],
        reader: [`{ text: found, ${usage} }`],
      }),
    });
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect([code, stderr]).toEqual([4, expect.stringContaining("limits.tokens") as string]);
    const spent = of(place.events(), "budget.settled").reduce((sum, { tokens }) => sum + tokens, 0);
    expect(spent).toBeLessThanOrEqual(6000);
    expect(changes(place)).toContain("1 completed");
    expect(ends(place.events())).toContain("a@1 lead budget");
  });

  it("count the runs of members as `children`", async () => {
    const place = placeWith({
      "w.yaml": flow({ lead: ", subagents: [reader], limits: { children: 2 }" }),
      "s.yaml": replies({
        lead: [begin("one", "two", "three"), says("waiting"), heard, heard],
        reader: [says("found")],
      }),
    });
    const { code } = await place.flow(["run", "w.yaml"]);
    expect([code, changes(place).filter((it) => it.endsWith("completed")).length]).toEqual([0, 2]);
    expect(changes(place)).toContain("3 failed");
  });
});

describe("a member", () => {
  it("that needs a permission nobody can give fails its task with the rule to add, and the lead is told", async () => {
    const place = placeWith({
      "w.yaml": flow({}),
      "s.yaml": replies({
        lead: [begin("one"), says("waiting"), heard],
        reader: ["{ calls: [{ name: Bash, args: { command: make world } }] }", says("never said")],
      }),
    });
    const started = Date.now();
    const { code, stderr, stdout } = await place.flow(["run", "w.yaml"]);
    expect(Date.now() - started).toBeLessThan(6000);
    expect(stderr).toContain("Bash(make world)");
    expect(changes(place)).toEqual(["1 in_progress", "1 failed"]);
    expect(ends(place.events())).toContain("a@1.1 reader denied");
    expect(code, stdout).toBe(6);
  });

  it("that asks a person is named as its team calls it, beside its agent", async () => {
    const make = "{ calls: [{ name: Bash, args: { command: 'echo made > made.txt' } }] }";
    const place = placeWith({
      "w.yaml": flow({}),
      "s.yaml": replies({
        lead: [`{ calls: [${create}, ${add("one", ", owner: second")}] }`, says("waiting"), heard],
        reader: [make, done("1")],
      }),
    });
    const questions: string[] = [];
    const asker = {
      ask: ({ question }: { readonly question: string }) => {
        questions.push(question);
        return Promise.resolve({ decision: "approved" as const });
      },
    };
    const result = await run({ file: "w.yaml", cwd: place.folder, asker, by: "me" });
    expect(result.started && result.end.exitCode).toBe(0);
    expect(questions).toEqual([expect.stringMatching(/^Sub-agent second \(reader\): allow Bash\(echo made/)]);
    expect(place.read("made.txt")).toBe("made\n");
  });

  it("may be an agent of another program", async () => {
    const place = placeWith({
      "w.yaml": flow({}).replace("members: [reader,", "members: [scout, reader,"),
      ".claude/agents/scout.md": "---\nname: scout\ndescription: Scouts.\ntools: Read, Grep\n---\nYou scout.\n",
      "s.yaml": replies({
        lead: [`{ calls: [${create}, ${add("one", ", owner: scout")}] }`, says("waiting"), heard],
        scout: [done("1", "nobody there")],
      }),
    });
    const { code, stdout } = await place.flow(["run", "w.yaml"]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining("[Report of scout on task 1, one: completed]\n  nobody there") as string,
    ]);
    const [member] = of(place.events(), "agent.started").filter(({ parent }) => parent !== null);
    expect(member?.tools).toEqual(["Grep", "Read", "SendMessage", "TaskGet", "TaskList", "TaskUpdate", "TeamStatus"]);
  });

  it("may lead a team of its own", async () => {
    const place = placeWith({
      "w.yaml": flow({ lead: ", limits: { depth: 2 }" })
        .replace("  reader:", "  chief: { instructions: You lead two., team: { members: [reader] } }\n  reader:")
        .replace("[reader,", "[chief,"),
      "s.yaml": replies({
        lead: [begin("all"), says("waiting"), heard],
        chief: [begin("half"), says("waiting for the half"), says("both: ${{ message }}")],
        reader: [says("half of it")],
      }),
    });
    const { code, stdout } = await place.flow(["run", "w.yaml"]);
    expect(code).toBe(0);
    expect(stdout).toContain("[Report of chief on task 1, all: completed]");
    expect(stdout).toContain("[Report of reader on task 1, half: completed]\n  half of it");
    expect(of(place.events(), "team.finished").map(({ agent, end }) => `${agent} ${end}`)).toEqual([
      "a@1.1 done",
      "a@1 done",
    ]);
    expect(ends(place.events())).toEqual(["a@1.1.1 reader done", "a@1.1 chief done", "a@1 lead done"]);
  });
});

describe("a team", () => {
  it("of a step replaces that of its agent, and may have the same agent as a member", async () => {
    const place = placeWith({
      "w.yaml": flow({
        lead: ", description: Leads.",
        step: ", team: { members: [{ agent: reader, name: other }, { agent: plain, name: twin }], parallel: 1 }",
      })
        .replace("  reader:", "  plain: { instructions: You are plain., prompt: Go. }\n  reader:")
        .replace("outputs:", "  b: { needs: a, agent: plain, team: { members: [plain] } }\noutputs:"),
      "s.yaml": replies({
        lead: [`{ calls: [${create}, ${add("one", ", owner: other")}] }`, says("waiting"), heard],
        reader: [says("read")],
        plain: [`{ calls: [${create}, ${add("two")}], when: "contains(prompt, 'Go.')" }`, says("plainly"), heard],
      }),
    });
    const { code } = await place.flow(["run", "w.yaml"]);
    expect(code).toBe(0);
    const members = of(place.events(), "team.member.added").map(
      ({ step, member }) => `${step} ${member.name} ${member.agent}`,
    );
    expect(members).toEqual(["a other reader", "a twin plain", "b plain plain"]);
    const runs = of(place.events(), "agent.started").flatMap(({ agent, spawned }) =>
      spawned ? [`${agent} ${spawned.name ?? ""}`] : [],
    );
    expect(runs).toEqual(["a@1.1 other", "b@1.1 plain"]);
  });

  it("waits for its reports before its lead answers with data", async () => {
    const output = "output: { type: object, required: [count], properties: { count: { type: integer } } }";
    const place = placeWith({
      "w.yaml": flow({ lead: `, ${output}` }).replace("steps.a.outputs.text", "steps.a.outputs.count"),
      "s.yaml": replies({
        lead: [
          begin("one", "two"),
          says("waiting"),
          "{ calls: [{ name: finish, args: { count: \"${{ length(split(message, 'completed]')) }}\" } }] }",
        ],
        reader: ["{ text: found, delay: 150ms }"],
      }),
    });
    const { code, stdout, stderr } = await place.flow(["run", "w.yaml"]);
    expect([code, stdout], stderr).toEqual([0, "text: 3\n"]);
  });

  it("works beside the team of another step", async () => {
    const place = placeWith({
      "w.yaml": flow({}).replace("outputs:", "  b: { agent: lead }\noutputs:"),
      "s.yaml": replies({
        lead: [begin("one", "two"), says("waiting"), heard],
        reader: ["{ text: found, delay: 150ms }"],
      }),
    });
    expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
    const events = place.events();
    for (const step of ["a", "b"]) {
      const own = of(events, "team.task.updated").filter((event) => event.step === step);
      expect(
        own
          .filter(({ change }) => change.status === "completed")
          .map(({ task }) => task)
          .sort(),
      ).toEqual(["1", "2"]);
    }
    const order = events.flatMap(({ type }) => (type === "team.started" || type === "team.finished" ? [type] : []));
    expect(order).toEqual(["team.started", "team.started", "team.finished", "team.finished"]);
  });

  it("is cancelled whole by Ctrl-C in less than two seconds, and goes on after it", async () => {
    const place = placeWith({
      "w.yaml": flow({ flow: "permissions: { Bash: allow, Write: allow }" }),
      "s.yaml": replies({
        lead: [begin("one", "two", "three"), says("waiting"), heard, heard],
        reader: [
          "{ calls: [{ name: Bash, args: { command: 'echo x >>log.txt; sleep ${{ turn == 1 && 1 || 0 }}' } }] }",
          says("found"),
        ],
      }),
    });
    const running = place.start(["run", "w.yaml"]);
    await running.said("task 2 in_progress");
    await expect.poll(() => exists(place, "log.txt"), { timeout: 5000 }).toBe(true);
    const started = Date.now();
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    expect(Date.now() - started).toBeLessThan(2000);
    const events = place.events();
    expect(of(events, "team.finished")).toMatchObject([{ end: "cancelled" }]);
    expect(ends(events).toSorted()).toEqual(["a@1 lead cancelled", "a@1.1 reader cancelled", "a@1.2 reader cancelled"]);
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect(code, stderr).toBe(0);
    const completed = changes(place).filter((it) => it.endsWith("completed"));
    expect(completed.toSorted()).toEqual(["1 completed", "2 completed", "3 completed"]);
  });

  it("is replayed with the same answers, where reports come in one at a time", async () => {
    const place = placeWith({
      "w.yaml": flow({ team: ", parallel: 1" }),
      "s.yaml": replies({
        lead: [begin("one", "two"), says("waiting"), heard, heard],
        reader: [says("found ${{ prompt }}")],
      }),
    });
    const first = await place.flow(["run", "w.yaml"]);
    expect(first.code).toBe(0);
    const again = await place.flow(["run", "w.yaml", "--replay", "latest"]);
    expect([again.code, again.stdout], again.stderr).toEqual([0, first.stdout]);
  });

  it("is replayed with reports in the turns that read them", async () => {
    const place = placeWith({
      "w.yaml": flow({ reader: ", tools: [Read]" }),
      "s.yaml": replies({
        lead: [begin("one", "two", "three"), says("waiting"), heard, heard, heard],
        reader: [
          "{ calls: [{ name: Read, args: { file_path: w.yaml } }], delay: 60ms }",
          "{ calls: [{ name: Read, args: { file_path: s.yaml } }], when: \"contains(prompt, 'do two')\", delay: 1000ms }",
          says("found"),
        ],
      }),
    });
    const first = await place.flow(["run", "w.yaml"]);
    expect([first.code, of(place.events(), "team.woken").length]).toEqual([0, 2]);
    const again = await place.flow(["run", "w.yaml", "--replay", "latest"]);
    expect([again.code, again.stdout], again.stderr).toEqual([0, first.stdout]);
  });

  it("is replayed with reports in the order they came in, whoever is faster now", async () => {
    const place = placeWith({
      "w.yaml": flow({ reader: ", tools: []" }),
      "s.yaml": replies({
        lead: [
          `{ calls: [${create}, ${add("one", ", owner: reader")}, ${add("two", ", owner: second")}, ${add("three", ", owner: second")}] }`,
          says("waiting"),
          heard,
          heard,
          heard,
        ],
        reader: [
          "{ text: one is found, when: \"contains(prompt, 'do one')\", delay: 2500ms }",
          "{ text: three is found, when: \"contains(prompt, 'do three')\", delay: 1200ms }",
          says("two is found"),
        ],
      }),
    });
    const first = await place.flow(["run", "w.yaml"]);
    const woken = of(place.events(), "team.woken").length;
    expect([first.code, woken > 1]).toEqual([0, true]);
    const again = await place.flow(["run", "w.yaml", "--replay", "latest"]);
    expect([again.code, again.stdout], again.stderr).toEqual([0, first.stdout]);
  });

  it("goes on after a failure of its lead's model", async () => {
    const place = placeWith({
      "w.yaml": flow({ reader: ", tools: []" }),
      "s.yaml": replies({
        lead: [begin("one", "two"), says("waiting"), "{ error: 401 }", heard, heard],
        reader: [
          "{ text: one is found, when: \"contains(prompt, 'do one')\", delay: 50ms }",
          "{ text: two is found, delay: 1500ms }",
        ],
      }),
    });
    const first = await place.flow(["run", "w.yaml"]);
    expect(first.code, first.stderr).toBe(3);
    expect(changes(place)).toEqual(["1 in_progress", "2 in_progress", "1 completed"]);
    place.write("s.yaml", place.read("s.yaml").replace("{ error: 401 }", heard));
    const { code, stdout, stderr } = await place.flow(["resume", "latest"]);
    expect([code, stdout], stderr).toEqual([
      0,
      expect.stringContaining("on task 2, two: completed]\n  two is found") as string,
    ]);
    expect(changes(place).filter((it) => it.startsWith("1"))).toEqual(["1 in_progress", "1 completed"]);
  });

  it("keeps messages that are too long for a line of the log", async () => {
    const place = placeWith({
      "w.yaml": flow({}),
      "s.yaml": replies({
        lead: [begin("one"), says("waiting"), heard, heard],
        reader: [
          `{ calls: [{ name: SendMessage, args: { to: lead, content: "${"word ".repeat(20_000)}end" } }] }`,
          says("said it"),
        ],
      }),
    });
    const { code, stdout } = await place.flow(["run", "w.yaml"]);
    expect([code, stdout.includes("word word end")]).toEqual([0, true]);
    const [message] = of(place.events(), "team.message");
    expect(message?.message).toEqual({
      blob: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      size: expect.any(Number) as number,
    });
    expect((await place.flow(["show", "latest"])).stdout).toContain("team crew: 1 of 1 task completed");
  });
});

describe("a lead of two teams, one after the other", () => {
  it("is shown with both, and their runs with what they were for", async () => {
    const place = placeWith({
      "w.yaml": flow({}),
      "s.yaml": replies({
        lead: [
          begin("one"),
          says("waiting"),
          `{ calls: [{ name: TeamDelete, args: {} }, { name: TeamCreate, args: { name: others } }, ${add("two", ", owner: second")}] }`,
          says("waiting"),
          heard,
        ],
        reader: [says("found it")],
      }),
    });
    expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
    const shown = (await place.flow(["show", "latest"])).stdout;
    for (const text of ["team crew: 1 of 1 task completed", "team others: 1 of 1 task completed"])
      expect(shown).toContain(text);
    expect(shown.match(/task 1 of the team: (one|two)/g)).toHaveLength(2);
    const { steps } = JSON.parse((await place.flow(["show", "latest", "--json"])).stdout);
    const [lead] = steps[0].agents;
    expect([lead.team.name, lead.earlierTeams.map(({ name }: { name: string }) => name)]).toEqual(["others", ["crew"]]);
  });
});

describe("a team is seen", () => {
  const place = new Place({
    "w.yaml": flow({}),
    "s.yaml": replies({
      lead: [
        `{ calls: [${create}, ${add("one")}, ${add("two", ', dependsOn: ["1"]')}] }`,
        says("waiting"),
        heard,
        heard,
      ],
      reader: [
        '{ calls: [{ name: TaskUpdate, args: { taskId: "1", status: failed, report: "no way\\u001b[31m through" } }] }',
      ],
    }),
  });
  afterAll(() => place.remove());

  it("while it works, a line for each thing that happens to a task", async () => {
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect(code, stderr).toBe(0);
    const lines = stderr.split("\n").map((line) => line.slice(8));
    for (const line of [
      "a          team crew: 2 at a time",
      "a          task 1 added: one",
      "a          task 1 in_progress reader",
    ])
      expect(lines).toContain(line);
    expect(stderr).toContain("task 1 failed: no way");
    expect(stderr).toContain(
      "team ended (deadlock): nothing can go on: task 2 (two): it depends on task 1, which is failed",
    );
  });

  it.each([["show"], ["why"]])("by flow %s: its members, its tasks and why it ended", async (command) => {
    const { stdout } = await place.flow(command === "why" ? ["why", "latest", "a"] : ["show", "latest"]);
    const text = stdout.replaceAll(/\s+/g, " ");
    expect(text).toContain("team crew: 0 of 2 tasks completed");
    expect(text).toContain("ended (deadlock): nothing can go on: task 2 (two): it depends on task 1, which is failed");
    expect(text).toContain("members: reader idle, second (reader) idle");
    expect(text).toContain("task 1 one: failed, reader: no way");
    expect(text).toContain("task 2 two: pending, after 1: it depends on task 1, which is failed");
    expect(stdout).not.toContain("\u001b");
  });

  it("by flow show --json, with everything there is of it", async () => {
    const { stdout } = await place.flow(["show", "latest", "--json"]);
    const { steps } = JSON.parse(stdout) as { steps: { agents: { agent: string; team?: object }[] }[] };
    const [lead, member] = steps[0]?.agents ?? [];
    expect(lead?.team).toMatchObject({
      name: "crew",
      parallel: 2,
      members: [{ name: "reader", agent: "reader", state: "idle", agentRun: "a@1.1" }, { name: "second" }],
      tasks: [
        { id: "1", status: "failed", owner: "reader" },
        { id: "2", status: "pending", dependsOn: ["1"] },
      ],
      end: { end: "deadlock" },
    });
    expect([member?.agent, member?.team]).toEqual(["a@1.1", undefined]);
  });

  it("by flow why --json, as data", async () => {
    const { stdout } = await place.flow(["why", "latest", "a", "--json"]);
    const { agents } = JSON.parse(stdout) as { agents: object[] };
    expect(agents[0]).toMatchObject({
      name: "lead",
      team: { tasks: [{ id: "1" }, { id: "2" }], end: { end: "deadlock" } },
    });
  });

  it("before it runs, in the graph and by --dry-run", async () => {
    expect((await place.flow(["graph", "w.yaml"])).stdout).toContain("lead (leads reader, second)");
    expect((await place.flow(["run", "w.yaml", "--dry-run"])).stdout).toContain("leads reader second");
  });
});
