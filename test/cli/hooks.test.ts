import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "flow.yaml":
      "name: hooked\nmodel: scripted/r.yaml\npermissions: { Edit: allow, Bash: allow }\nsteps: { a: { agent: worker, prompt: go } }\n",
    "agents/worker.yaml": "name: worker\ninstructions: You work.\ntools: [Bash, Read]\n",
    "r.yaml": replies("echo one > made.txt"),
  });
});
afterEach(() => place.remove());

function replies(command: string): string {
  const call = `- { calls: [{ name: Bash, args: { command: ${JSON.stringify(command)} } }] }`;
  return `agents:\n  worker:\n    ${call}\n    - { text: done }\n    - { text: done again }\n    - { text: done at last }\n`;
}

function configure(hooks: object, more = ""): void {
  place.write("flow.config.yaml", `${more}hooks: ${JSON.stringify(hooks)}\n`);
}

function command(text: string, more: object = {}): object {
  return { hooks: [{ type: "command", command: text, ...more }] };
}

function hooked(): string[] {
  return eventsOf("hook.finished").map(({ event, status }) => `${event} ${status}`);
}

function eventsOf<T extends LogLine["type"]>(type: T): Extract<LogLine, { type: T }>[] {
  return place.events().filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

function exists(path: string): boolean {
  try {
    place.read(path);
    return true;
  } catch {
    return false;
  }
}

describe("a hook before a tool call", () => {
  it("reads the call as JSON, and an exit code of 2 refuses it with what stands on stderr", async () => {
    configure({ PreToolUse: [{ matcher: "Bash", ...command("cat > seen.json; echo 'not today' >&2; exit 2") }] });
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, exists("made.txt")]).toEqual([0, false]);
    expect(JSON.parse(place.read("seen.json"))).toMatchObject({
      hook_event_name: "PreToolUse",
      tool_name: "Bash",
      tool_input: { command: "echo one > made.txt" },
      cwd: place.folder,
      session_id: "a@1",
      step: "a",
    });
    expect(eventsOf("tool.finished")[0]?.text).toContain("refused by a hook: not today");
    expect(eventsOf("tool.started")).toEqual([]);
    expect(stderr).toContain("hook PreToolUse blocked");
  });

  it.each([
    ["the time of its agent is over", "limits: { duration: 1s }", "flow.yaml", [4, 0]],
    ["the time of its step is over", "", "timed.yaml", [1, 0]],
  ])("that has not answered when %s has not said yes", async (_, more, file, ended) => {
    place.write("agents/worker.yaml", `name: worker\ninstructions: You work.\ntools: [Bash]\n${more}\n`);
    place.write("timed.yaml", place.read("flow.yaml").replace("prompt: go", "prompt: go, timeout: 1s"));
    configure({ PreToolUse: [command("sleep 20; exit 2")] });
    const { code } = await place.flow(["run", file]);
    expect([code, eventsOf("tool.started").length]).toEqual(ended);
    expect([hooked(), exists("made.txt")]).toEqual([["PreToolUse broken"], false]);
  });

  it("whose JSON is none has not said yes", async () => {
    configure({ PreToolUse: [command(`echo '{"decision":"block","reason":"he said "no""}'`)] });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect([hooked(), exists("made.txt")]).toEqual([["PreToolUse broken"], false]);
    expect(eventsOf("tool.finished")[0]?.text).toContain("what it printed is no JSON");
  });

  it("is not asked about tools that its matcher does not name", async () => {
    configure({ PreToolUse: [{ matcher: "Edit|Write", ...command("exit 2") }] });
    expect([(await place.flow(["run", "flow.yaml"])).code, exists("made.txt"), hooked()]).toEqual([0, true, []]);
  });

  it("may change the arguments, and the rules judge what it made of them", async () => {
    const output = {
      hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: { command: "echo two > other.txt" } },
    };
    configure({ PreToolUse: [command(`echo '${JSON.stringify(output)}'`)] });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect([exists("made.txt"), place.read("other.txt")]).toEqual([false, "two\n"]);
    expect(eventsOf("tool.started")[0]?.args).toEqual({ command: "echo two > other.txt" });
  });

  it("whose new arguments do not fit the tool stops the call", async () => {
    const output = { hookSpecificOutput: { updatedInput: { script: "x" } } };
    configure({ PreToolUse: [command(`echo '${JSON.stringify(output)}'`)] });
    await place.flow(["run", "flow.yaml"]);
    expect(eventsOf("tool.finished")[0]?.text).toContain("do not fit any more");
  });

  it.each([
    [
      "denies with JSON",
      { hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: "never" } },
      "refused by a hook: never",
    ],
    ["blocks with JSON", { decision: "block", reason: "no" }, "refused by a hook: no"],
    ["wants a person asked", { hookSpecificOutput: { permissionDecision: "ask" } }, "needs a person's approval"],
  ])("%s", async (_, output, text) => {
    configure({ PreToolUse: [command(`echo '${JSON.stringify(output)}'`)] });
    await place.flow(["run", "flow.yaml"]);
    expect([exists("made.txt"), eventsOf("tool.finished")[0]?.text]).toEqual([
      false,
      expect.stringContaining(text) as string,
    ]);
  });

  it.each([
    ["is not there", "./no-such-guard.sh", {}],
    ["takes too long", "sleep 20", { timeout: 0.3 }],
    ["is killed", "kill -9 $$", {}],
  ])("that %s stops the call, unless it opted out", async (_, text, more) => {
    configure({ PreToolUse: [command(text, more)] });
    await place.flow(["run", "flow.yaml"]);
    expect([exists("made.txt"), hooked()]).toEqual([false, ["PreToolUse broken"]]);
    configure({ PreToolUse: [command(text, { ...more, on_error: "allow" })] });
    await place.flow(["run", "flow.yaml"]);
    expect(exists("made.txt")).toBe(true);
  });

  it("that merely fails stops nothing and is told", async () => {
    configure({ PreToolUse: [command("exit 1")] });
    await place.flow(["run", "flow.yaml"]);
    expect([exists("made.txt"), hooked()]).toEqual([true, ["PreToolUse failed"]]);
  });

  it("may say yes where the rules ask, and never where they deny", async () => {
    const yes = JSON.stringify({ hookSpecificOutput: { permissionDecision: "allow" } });
    configure({ PreToolUse: [command(`echo '${yes}'`)] });
    place.write("flow.yaml", place.read("flow.yaml").replace("Bash: allow", "Bash: ask"));
    expect([(await place.flow(["run", "flow.yaml"])).code, exists("made.txt")]).toEqual([0, true]);
    place.write("flow.yaml", place.read("flow.yaml").replace("Bash: ask", "deny: [Bash(echo *)]"));
    place.write("r.yaml", replies("echo three > three.txt"));
    await place.flow(["run", "flow.yaml"]);
    expect(exists("three.txt")).toBe(false);
  });

  it("of an agent's own file says no and never yes", async () => {
    const yes = JSON.stringify({ hookSpecificOutput: { permissionDecision: "allow" } });
    const hooks = { PreToolUse: [command(`echo '${yes}'`)] };
    place.write("agents/worker.yaml", `${place.read("agents/worker.yaml")}hooks: ${JSON.stringify(hooks)}\n`);
    place.write("flow.yaml", place.read("flow.yaml").replace("Bash: allow", "Bash: ask"));
    expect([(await place.flow(["run", "flow.yaml"])).code, exists("made.txt")]).toEqual([6, false]);
  });

  it("gets no provider's key and no secret", async () => {
    configure({ PreToolUse: [command("env > env.txt")] });
    place.write("flow.yaml", `secrets: [TOKEN]\n${place.read("flow.yaml")}`);
    await place.flow(["run", "flow.yaml"], { env: { OPENAI_API_KEY: "sk-canary", TOKEN: "canary-token" } });
    expect(place.read("env.txt")).not.toMatch(/canary/);
    expect(place.read("env.txt")).toContain(`CLAUDE_PROJECT_DIR=${place.folder}`);
  });
});

describe("a hook that answers for a person", () => {
  it.each([
    ["allow", 0, true],
    ["deny", 0, false],
  ])("%s", async (behavior, code, isMade) => {
    const output = { hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior } } };
    configure({ PermissionRequest: [command(`echo '${JSON.stringify(output)}'`)] });
    place.write("flow.yaml", place.read("flow.yaml").replace("Bash: allow", "Bash: ask"));
    expect([(await place.flow(["run", "flow.yaml"])).code, exists("made.txt")]).toEqual([code, isMade]);
  });
});

describe("hooks at the other moments", () => {
  it("see the session, the calls, the step and their ends in order", async () => {
    const log = (name: string): object[] => [command(`cat >/dev/null; echo ${name} >> moments.txt`)];
    const events = [
      "SessionStart",
      "SessionEnd",
      "PreToolUse",
      "PostToolUse",
      "PostToolUseFailure",
      "Stop",
      "StepStart",
      "StepEnd",
    ];
    configure(Object.fromEntries(events.map((event) => [event, log(event)])));
    await place.flow(["run", "flow.yaml"]);
    expect(place.read("moments.txt").trim().split("\n")).toEqual([
      "StepStart",
      "SessionStart",
      "PreToolUse",
      "PostToolUse",
      "Stop",
      "SessionEnd",
      "StepEnd",
    ]);
  });

  it("are told of a call that failed", async () => {
    place.write("r.yaml", replies("exit 3"));
    configure({
      PostToolUseFailure: [command('cat > failed.json; echo \'{"decision":"block","reason":"look again"}\'')],
    });
    await place.flow(["run", "flow.yaml"]);
    expect(JSON.parse(place.read("failed.json"))).toMatchObject({
      tool_name: "Bash",
      error: expect.stringContaining("3") as string,
    });
    expect(eventsOf("tool.finished")[0]?.text).toContain("[A hook says: look again]");
  });

  it("give the agent what they print when it starts", async () => {
    configure({ SessionStart: [command("echo 'the moon is full'")] });
    await place.flow(["run", "flow.yaml"]);
    const [system] = eventsOf("message");
    expect(JSON.stringify(system)).toContain("the moon is full");
  });

  it("may send it back when it wants to stop", async () => {
    configure({
      Stop: [command("grep -q '\"stop_hook_active\":true' || { echo 'write the tests first' >&2; exit 2; }")],
    });
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect(code).toBe(0);
    expect(eventsOf("agent.finished")[0]).toMatchObject({ outcome: "done", text: "done again", turns: 3 });
    expect(place.log()).toContain("write the tests first");
  });

  it("may end the agent", async () => {
    configure({ PostToolUse: [command(`echo '${JSON.stringify({ continue: false, stopReason: "enough" })}'`)] });
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect([code, eventsOf("agent.finished")[0]?.reason]).toEqual([6, "a hook ended it: enough"]);
  });

  it("keep a step from running", async () => {
    configure({ StepStart: [{ matcher: "deploy", ...command("echo 'frozen' >&2; exit 2") }] });
    place.write("flow.yaml", "name: x\nsteps: { build: { run: echo > built }, deploy: { run: echo > deployed } }\n");
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect([code, exists("built"), exists("deployed")]).toEqual([6, true, false]);
    expect(stderr).toContain("frozen");
  });

  it("are all there is to say against a malformed one: file, line and column", async () => {
    place.write("flow.config.yaml", "hooks:\n  PreToolUze: []\n  Stop:\n    - hooks: [{ type: command }]\n");
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(code).toBe(2);
    expect(stderr).toContain("flow.config.yaml:2:3");
    expect(stderr).toContain("did you mean `PreToolUse`?");
    expect(stderr).toContain("flow.config.yaml:4:15");
  });
});

describe("the end of an agent and of its step", () => {
  it.each([
    ["a timeout", ", timeout: 1s", 1, "failure"],
    ["nothing", "", 0, "success"],
  ])("is told to hooks also when it was brought about by %s", async (_, more, code, outcome) => {
    place.write("flow.yaml", place.read("flow.yaml").replace("prompt: go", `prompt: go${more}`));
    place.write("r.yaml", replies(more === "" ? "true" : "sleep 20"));
    const told = command("cat >> told.json; echo >> told.json");
    configure({ StepEnd: [told], SessionEnd: [told] });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(code);
    expect(hooked()).toEqual(["SessionEnd passed", "StepEnd passed"]);
    const [session, step] = place
      .read("told.json")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    expect(session).toMatchObject({ hook_event_name: "SessionEnd" });
    expect(step).toMatchObject({ hook_event_name: "StepEnd", outcome });
  });

  it("by a cancel does not let a step begin whose guard was not heard", async () => {
    configure({ StepStart: [command("touch asked; sleep 20")] });
    const running = place.start(["run", "flow.yaml"]);
    while (!exists("asked")) await new Promise((resolve) => setTimeout(resolve, 20));
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    expect(eventsOf("step.finished").map(({ outcome }) => outcome)).toEqual(["cancelled"]);
  });
});
