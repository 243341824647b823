import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

const replies = `
agents:
  plain: [{ text: "got \${{ prompt }}" }]
  odd: [{ text: "a\\tb\\e[2J\\n" }]
  rev: [{ text: "read \${{ prompt }}" }]
  shaped: [{ text: '{ "n": 2 }' }]
  writer: [{ calls: [{ name: Write, args: { file_path: a.txt, content: x } }] }, { text: written }]
  fix-deep: [{ text: "deep" }]
  Claude: [{ text: "from claude" }]
`;
const agent = (front: string): string => `---\n${front}\n---\nYou answer.\n`;

let place: Place;
beforeAll(() => {
  place = new Place({
    "replies.yaml": replies,
    "none.yaml": "agents: { other: [{ text: hi }] }\n",
    "agents/plain.md": agent("description: Answers."),
    "agents/odd.md": agent("description: Odd."),
    "agents/rev.md": agent(
      'inputs: { diff: { type: string }, times: { type: integer, default: 1 } }\nprompt: "${{ inputs.diff }} ${{ inputs.times }}"',
    ),
    "agents/shaped.md": agent("output: { type: object, required: [n], properties: { n: { type: integer } } }"),
    "agents/writer.md": agent("tools: [Write]"),
    "agents/lower.md": agent("mode: subagent"),
    "agents/off.md": agent("disable: true"),
    "agents/broken.md": agent("toolz: [Write]"),
    "agents/served.md": agent('mcp: { files: { command: no-such-server, env: { TOKEN: "${{ secrets.TOKEN }}" } } }'),
    ".opencode/agent/fix/deep.md": agent("description: Deep."),
    ".claude/agents/c.md": agent("name: Claude\ndescription: Theirs."),
    "sub/here.txt": "",
    // A folder that is empty is no repository.
    ".git/HEAD": "ref: refs/heads/main\n",
  });
});
afterAll(() => place.remove());

const scripted = (...args: readonly string[]): readonly string[] => ["agent", ...args, "--script", "replies.yaml"];

describe("flow agent", () => {
  it("prints the answer on stdout and everything else on stderr", async () => {
    const { stdout, stderr, code } = await place.flow(scripted("plain", "say ${{ secrets.X }}"));
    expect([stdout, code]).toEqual(["got say ${{ secrets.X }}\n", 0]);
    expect(stderr).toMatch(/^00:00\.0 run +\d{8}-\d{6}-\w+ plain \(1 step\)\n/);
    expect(stderr).toMatch(/\nok plain \d{8}-/);
  });

  it.each([
    { what: "a prompt from standard input", args: ["plain", "-"], stdin: "piped\n", stdout: "got piped\n" },
    { what: "a file", args: ["./agents/plain.md", "x"], stdout: "got x\n" },
    { what: "an agent of OpenCode", args: ["fix/deep", "x"], stdout: "deep\n" },
    { what: "an agent of Claude Code", args: ["Claude", "x"], stdout: "from claude\n" },
    { what: "an agent's own prompt", args: ["rev", "-i", "diff=d", "-i", "times=3"], stdout: "read d 3\n" },
    { what: "an answer that is an object", args: ["shaped", "x"], stdout: '{\n  "n": 2\n}\n' },
    { what: "an answer as it is, for a program", args: ["odd", "x"], stdout: "a\tb\u001B[2J\n" },
  ])("takes $what", async ({ args, stdin, stdout }) => {
    const ended = await place.flow([...scripted(...args), "-q"], { stdin: stdin ?? "not asked for" });
    expect(ended).toMatchObject({ stdout, stderr: "", code: 0 });
  });

  it("gives the same document as a run with --json, and every event with --progress json", async () => {
    const { stdout, stderr } = await place.flow([...scripted("shaped", "x"), "--json", "--progress", "json"]);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: "success", outputs: { answer: { n: 2 } }, exitCode: 0 });
    expect(stderr).toBe(place.log());
    expect(place.events()[0]).toMatchObject({ type: "run.started", name: "shaped", inputs: { prompt: "x" } });
  });

  it("finds what a workflow in the working directory would", async () => {
    const there = await place.flow(["agent", "plain", "x", "--script", "../replies.yaml", "-q"], { cwd: "sub" });
    expect(there).toMatchObject({ stdout: "got x\n", code: 0 });
    const near = await place.flow(["agent", "./agents/plain.md", "x"], { cwd: "sub" });
    expect(near).toMatchObject({ stderr: "flow: there is no file ./agents/plain.md\n", code: 2 });
  });

  it("asks the model it is told to", async () => {
    await place.flow([...scripted("plain", "x"), "--model", "openai/gpt-5", "--model", "anthropic/claude-opus-4-8"]);
    const models = place.events().flatMap((line) => (line.type === "agent.started" ? [line.model] : []));
    expect(models).toEqual(["openai/gpt-5"]);
  });

  it("is denied what nobody allowed, and does what a flag allows", async () => {
    const denied = await place.flow(scripted("writer", "x"));
    expect([denied.code, denied.stdout]).toEqual([6, ""]);
    expect(denied.stderr).toContain("--allow 'Write(./a.txt)'");
    const allowed = await place.flow([...scripted("writer", "x"), "--allow", "Write(a.txt)", "-q"]);
    expect([allowed.code, allowed.stdout, place.read("a.txt")]).toEqual([0, "written\n", "x"]);
    expect(await place.flow([...scripted("writer", "x"), "--profile", "edit", "-q"])).toMatchObject({ code: 0 });
  });
});

describe("the run of one agent", () => {
  it("is a run like any other: it is shown, explained, resumed and replayed", async () => {
    const failed = await place.flow(["agent", "plain", "again", "--script", "none.yaml"]);
    expect([failed.code, failed.stdout]).toEqual([3, ""]);
    expect((await place.flow(["show", "latest"])).stdout).toMatch(/^✗ failed plain .*\n {2}started/);
    expect((await place.flow(["why", "latest", "agent"])).stdout).toMatch(
      /^It failed: provider_error: none\.yaml: .*\n.*\n$/m,
    );
    const resumed = await place.flow(["resume", "latest", "--script", "replies.yaml"]);
    expect([resumed.code, resumed.stdout]).toEqual([0, "answer: got again\n"]);
    expect(resumed.stderr).toContain("the workflow is in no file: the plan in the log is used");
    await place.flow(scripted("plain", "once more"));
    const replayed = await place.flow(["agent", "plain", "once more", "--replay", "latest", "-q"]);
    expect(replayed).toMatchObject({ stdout: "got once more\n", stderr: "", code: 0 });
    expect((await place.flow(["runs"])).stdout).toMatch(/^\S+ +plain +ok/m);
  });

  it("that is ended by a signal is cancelled, and can be gone on with", async () => {
    place.write("slow.yaml", "agents: { plain: [{ text: late, delay: 20s }] }\n");
    const running = place.start(["agent", "plain", "x", "--script", "slow.yaml"]);
    await running.said("start agent=plain");
    running.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: 130, stdout: "" });
    expect(await place.flow(["resume", "latest", "--script", "replies.yaml", "-q"])).toMatchObject({ code: 0 });
  });
});

describe("flow agent says what is wrong", () => {
  it.each([
    { args: ["plian", "x"], code: 2, says: "there is no agent `plian`; did you mean `plain`? (`flow agents` lists" },
    { args: ["zzzzzz", "x"], code: 2, says: "there is no agent `zzzzzz`; known here: " },
    { args: ["plain"], code: 2, says: "agent `plain` has no prompt of its own: say what it is to do" },
    { args: ["plain", "-"], code: 2, says: "the prompt is empty" },
    { args: ["plain", "two", "words"], code: 2, says: "too many arguments" },
    { args: [], code: 2, says: "missing required argument 'name'" },
    { args: ["plain", "x", "-i", "a=1"], code: 2, says: "agent `plain` takes no inputs, and `a` was given" },
    { args: ["rev"], code: 2, says: "agents/rev.md:2:11 error FLOW7001: input `diff` is required" },
    { args: ["rev", "-i", "dif=1"], code: 2, says: "did you mean `diff`?" },
    { args: ["rev", "-i", "diff=d", "-i", "times=x"], code: 2, says: "FLOW7003" },
    { args: ["rev", "x"], code: 2, says: "give `--input diff=…` without a prompt" },
    { args: ["rev", "x", "-i", "times=2"], code: 2, says: "give `--input times=…` without a prompt" },
    { args: ["lower", "x"], code: 2, says: "agent `lower` is only for other agents (`mode: subagent`)" },
    { args: ["off", "x"], code: 2, says: "agent `off` is disabled in its file" },
    { args: ["broken", "x"], code: 2, says: "agents/broken.md:2:1 error FLOW2002: " },
    { args: ["served", "x"], code: 2, says: "agents/served.md:2:" },
    { args: ["served", "x", "--secret", "TOKEN"], code: 3, says: "the secret TOKEN" },
    { args: ["plain", "x"], code: 3, says: "no model is named. Three ways out:" },
    { args: ["plain", "x", "--model", "openai/gpt-5"], code: 3, says: "needs a key, and the variable OPENAI_API_KEY" },
    { args: ["plain", "x", "--model", "gpt"], code: 2, says: "gpt" },
    { args: ["plain", "x", "--script", "nowhere.yaml"], code: 2, says: "nowhere.yaml" },
  ])("$args", async ({ args, code, says }) => {
    const before = place.runs().length;
    const ended = await place.flow(["agent", ...args]);
    expect(ended.stderr).toContain(says);
    expect([ended.code, ended.stdout, place.runs().length]).toEqual([code, "", before]);
    expect(ended.stderr).not.toContain("-:1");
  });

  it("as JSON where that is asked for", async () => {
    const { stdout, stderr } = await place.flow(["agent", "plian", "x", "--json"]);
    expect([JSON.parse(stdout), stderr]).toEqual([
      { schemaVersion: 1, outcome: "usage", exitCode: 2, message: expect.stringContaining("did you mean `plain`?") },
      "",
    ]);
  });
});

it("gives an agent that comes with flow no more than any other, where nobody spawned it", async () => {
  const place = new Place({
    "s.yaml": `agents:
  general: [{ calls: [{ name: Write, args: { file_path: x.txt, content: x } }] }, { text: wrote }]
  verify: [{ calls: [{ name: Bash, args: { command: touch y.txt } }] }, { text: PASS }]
`,
  });
  for (const name of ["general", "verify"]) {
    const { code, stderr } = await place.flow(["agent", name, "do it", "--script", "s.yaml"]);
    expect([name, code]).toEqual([name, 6]);
    expect(stderr).toMatch(/ resume .* --allow /);
  }
  expect((await place.flow(["agent", "general", "do it", "--script", "s.yaml", "--allow", "Write"])).code).toBe(0);
  place.remove();
});
