import { describe, expect, it } from "vitest";
import { during, Place } from "./flow.ts";
import { Repository } from "./repository.ts";

const flow = `name: t
model: scripted/s.yaml
permissions: { "*": allow }
agents:
  one: { instructions: You are one., tools: [Bash] }
  two: { instructions: You are two., tools: [Bash] }
  kid: { instructions: You are kid. }
steps:
  a: { agent: { prompt: Lead., tools: [Bash], subagents: [kid], team: { members: [one, two], parallel: 2 } } }
outputs: { text: "\${{ steps.a.outputs.text }}" }
`;

const task = (subject: string, more = ""): string =>
  `{ name: TaskCreate, args: { subject: ${subject}, description: do it${more} } }`;

const lead = (...tasks: readonly string[]): string => `agents:
  a:
    - { calls: [{ name: TeamCreate, args: { name: t } }, ${tasks.join(", ")}] }
    - { text: waiting }
${'    - { text: "heard ${{ message }}" }\n'.repeat(8)}`;

const says = (to: string, text: string): string => `{ name: SendMessage, args: { to: ${to}, content: ${text} } }`;
const works = (delay: number, command = "echo hi"): string =>
  `    - { delay: ${delay}ms, calls: [{ name: Bash, args: { command: ${command} } }] }\n`;
const answers = '    - { text: "done ${{ message }}" }\n';

/** Who takes up what, what is read when, and what is counted first: all of it a matter of time. */
const scripts: Readonly<Record<string, string>> = {
  "whose tasks belong to whoever is free": `${lead(...["A", "B", "C", "D", "E"].map((it) => task(it)))}
  one:
${works(400)}${answers}${(works(20) + answers).repeat(4)}
  two:
${works(30)}${answers}${works(300)}${answers}${(works(20) + answers).repeat(3)}`,
  "whose members write to each other": `${lead(task("A"), task("B"), task("C", ', dependsOn: ["1"]'), task("D"))}
  one:
    - { delay: 130ms, calls: [${says("two", "one says hello")}] }
${works(300, "sleep 0.2")}
    - { delay: 50ms, calls: [${says("all", "one says bye")}] }
${answers}${(works(40) + answers).repeat(3)}
  two:
    - { delay: 100ms, calls: [${says("one", "two says hello")}] }
    - { delay: 20ms, calls: [${says("lead", "two tells")}] }
${works(250)}${answers}${(works(40) + answers).repeat(3)}`,
  "whose lead adds tasks and spawns a sub-agent while they work": `agents:
  a:
    - { calls: [{ name: TeamCreate, args: { name: t } }, ${task("A")}, ${task("B")}] }
    - { calls: [{ name: Bash, args: { command: sleep 0.2 } }, { name: Task, args: { description: d, prompt: p, subagent_type: kid } }] }
    - { delay: 300ms, calls: [${task("C")}, ${task("D", ", owner: one")}] }
    - { text: waiting }
${'    - { text: "heard ${{ message }}" }\n'.repeat(8)}
  kid: [{ text: kid is done }]
  one:
${works(600)}${answers}${(works(40) + answers).repeat(3)}
  two:
${works(20)}${answers}${(works(500) + answers).repeat(3)}`,
};

const replays = 4;

describe.concurrent("a replay of a team", () => {
  it.each(Object.keys(scripts))("%s gives the same, however often", (name) =>
    during(new Place({ "w.yaml": flow, "s.yaml": scripts[name] ?? "" }), (place) => sameEachTime(place)),
  );

  it("whose members have worktrees gives the same, however often", () =>
    during(
      new Repository({
        "w.yaml": flow.replace(
          "[one, two]",
          "[{ agent: one, isolation: worktree }, { agent: two, isolation: worktree }]",
        ),
        "s.yaml": scripts["whose tasks belong to whoever is free"] ?? "",
      }),
      (place) => sameEachTime(place),
    ));

  it.each([
    ["a member is told something else", "You are two.", "You are number two."],
    ["another member is", "You are one.", "You are number one."],
    ["a member has another tool", "You are one., tools: [Bash]", "You are one., tools: [Bash, LS]"],
    ["fewer work at once", "parallel: 2", "parallel: 1"],
    ["a member is missing", "[one, two]", "[two]"],
  ])("ends with what differs when %s", (_, before, after) =>
    during(
      new Place({ "w.yaml": flow, "s.yaml": scripts["whose members write to each other"] ?? "" }),
      async (place) => {
        await place.flow(["run", "w.yaml"]);
        place.write("w.yaml", flow.replace(before, after));
        const { code, stderr } = await place.flow(["run", "w.yaml", "--replay", "latest"]);
        expect([code, stderr]).toEqual([1, expect.stringContaining("has no answer for step `a")]);
      },
    ),
  );
});

async function sameEachTime(place: Place): Promise<void> {
  const first = await place.flow(["run", "w.yaml"]);
  expect(first.code, first.stderr).toBe(0);
  const [run = ""] = place.runs();
  for (let time = 0; time < replays; time++) {
    const again = await place.flow(["run", "w.yaml", "--replay", run]);
    expect([again.code, again.stdout], again.stderr).toEqual([0, first.stdout]);
  }
}
