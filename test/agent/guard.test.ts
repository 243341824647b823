import { describe, expect, it } from "vitest";
import type { AgentEvent } from "../../src/model/agent-event.ts";
import { complexityOf, guardsOf } from "../../src/agent/guard.ts";
import { hints } from "../../src/agent/hints.ts";
import { type Ran, running, tool } from "./running.ts";

const read = tool("Read");
const write = tool("Write", { readOnly: false });
const bash = tool("Bash", { readOnly: false });
const todoWrite = tool("TodoWrite", { readOnly: false, parameters: { type: "object" } });

/** `Read a` or `Read a; Write b`: the calls of a turn. */
function turns(...list: readonly string[]): string {
  const one = (said: string): string => {
    const [name, text] = said.trim().split(" ");
    return `{ name: ${name}, args: { text: ${text} } }`;
  };
  return list
    .map((said) => (said.startsWith("- ") ? said : `- calls: [${said.split(";").map(one).join(", ")}]`))
    .join("\n");
}

type Guarded = Pick<Extract<AgentEvent, { type: "guard" }>, "turn" | "rule" | "action">;

function guarded({ events }: Ran): Guarded[] {
  return events.flatMap((event) =>
    event.type === "guard" ? [{ turn: event.turn, rule: event.rule, action: event.action }] : [],
  );
}

function only(rule: string): ReturnType<typeof guardsOf> {
  const all = ["repeats", "reads", "errors", "todos", "complexity", "findings"];
  return guardsOf(Object.fromEntries(all.map((each) => [each, each === rule])));
}

const tools = [read, write, bash];
const end = "- text: done";

describe("the same call with the same result", () => {
  const guards = only("repeats");

  it("is hinted at, then refused, then the end", async () => {
    const ran = await running(turns("Read a", "Read a", "Read a", "Read a", end), { tools, guards });
    expect(guarded(ran)).toEqual([
      { turn: 2, rule: "repeats", action: "hint" },
      { turn: 3, rule: "repeats", action: "refuse" },
      { turn: 4, rule: "repeats", action: "stop" },
    ]);
    expect(ran.result).toMatchObject({ outcome: "stuck", reason: hints.stuck("Read"), turns: 4 });
    expect(ran.events.filter(({ type }) => type === "tool.started")).toHaveLength(2);
    expect(ran.results.map(({ text, error }) => [text, error])).toEqual([
      ["a", false],
      ["a", false],
      [hints.refused("Read"), true],
    ]);
  });

  it("is found when calls alternate", async () => {
    const ran = await running(turns(...Array<string[]>(8).fill(["Read a", "Read b"]).flat(), end), { tools, guards });
    expect(ran.result).toMatchObject({ outcome: "stuck", turns: 7 });
  });

  it("is no repeat when the arguments or the results differ", async () => {
    let count = 0;
    const counting = tool("Count", {
      run: () => Promise.resolve({ ok: true, value: { blocks: [{ type: "text", text: `${count++}` }] } }),
    });
    const ran = await running(turns("Read a", "Read b", "Read c", "Count a", "Count a", "Count a", "Count a", end), {
      tools: [read, counting],
      guards,
    });
    expect([ran.result.outcome, guarded(ran)]).toEqual(["done", []]);
  });

  it("is no repeat when something new was done in between", async () => {
    const tests = ["Bash test", "Write a", "Bash test", "Write b", "Bash test", "Write c", "Bash test", end];
    const ran = await running(turns(...tests), { tools, guards });
    expect([ran.result.outcome, guarded(ran)]).toEqual(["done", []]);
  });

  it("is a repeat when what was done in between was the same each time", async () => {
    const tests = Array<string[]>(8).fill(["Bash test", "Write a"]).flat();
    const ran = await running(turns(...tests, end), { tools, guards });
    expect(ran.result.outcome).toBe("stuck");
  });

  it("is forgotten after eight turns", async () => {
    const others = ["b", "c", "d", "e", "f", "g", "h"].map((name) => `Read ${name}`);
    const ran = await running(turns("Read a", ...others, "Read a", ...others, "Read a", end), { tools, guards });
    expect(guarded(ran)).toEqual([]);
  });

  it("counts once when it is made several times in one turn", async () => {
    const ran = await running(turns("Read a; Read a; Read a", end), { tools, guards });
    expect(guarded(ran)).toEqual([]);
  });

  it("counts for calls that were refused or failed too", async () => {
    const ran = await running(turns("Nothing a", "Nothing a", "Nothing a", "Nothing a", "Nothing a", end), {
      tools,
      guards,
    });
    expect(guarded(ran).map(({ action }) => action)).toEqual(["hint", "refuse", "stop"]);
    expect(ran.result).toMatchObject({ outcome: "stuck", turns: 4 });
  });

  it("counts by whatever name it is called", async () => {
    const named = tool("Read", { aliases: { names: ["read_file"], parameters: {} } });
    const ran = await running(turns(...Array<string>(4).fill("read_file a"), end), { tools: [named], guards });
    expect(ran.result).toMatchObject({ outcome: "stuck", turns: 4 });
  });

  it("is allowed when the guard is off", async () => {
    const ran = await running(turns(...Array<string>(12).fill("Read a"), end), { tools, guards: guardsOf(false) });
    expect([ran.result.outcome, guarded(ran)]).toEqual(["done", []]);
  });
});

describe("reading without acting", () => {
  const guards = only("reads");
  const reads = (count: number, from = 0): string[] => Array.from({ length: count }, (_, at) => `Read r${from + at}`);

  it("is hinted at after five reads, and after ten once something was written", async () => {
    const ran = await running(turns(...reads(7), "Write a", ...reads(12, 20), end), { tools, guards });
    expect(guarded(ran)).toEqual([
      { turn: 5, rule: "reads", action: "hint" },
      { turn: 18, rule: "reads", action: "hint" },
    ]);
    expect(JSON.stringify(ran.events)).toContain(JSON.stringify(hints.reads(5)).slice(1, -1));
  });

  it("counts the reads of one turn each", async () => {
    const ran = await running(turns("Read a; Read b; Read c", "Read d; Read e; Read f", end), { tools, guards });
    expect(guarded(ran)).toEqual([{ turn: 2, rule: "reads", action: "hint" }]);
  });

  it("is all that an agent can do who has nothing else", async () => {
    const ran = await running(turns(...reads(12), end), { tools: [read], guards });
    expect(guarded(ran)).toEqual([]);
  });
});

describe("the same error", () => {
  it("is answered with its history at the third time, and at the sixth", async () => {
    const failing = tool("Bash", {
      readOnly: false,
      run: ({ text }) => Promise.resolve({ ok: false, error: `no such file\n${JSON.stringify(text)}` }),
    });
    const ran = await running(turns(...["a", "b", "c", "d", "e", "f"].map((name) => `Bash ${name}`), "Write x", end), {
      tools: [failing, write],
      guards: only("errors"),
    });
    expect(guarded(ran).map(({ turn }) => turn)).toEqual([3, 6]);
    const hint = ran.events.find((event) => event.type === "guard");
    expect(hint).toMatchObject({ text: expect.stringContaining("- turn 1: no such file\n- turn 2:") as string });
  });
});

describe("open items of the agent's own list", () => {
  const list = (status: string): string =>
    `- calls: [{ name: TodoWrite, args: { text: ok, todos: [{ content: Test it, status: ${status} }, { content: Look, status: completed }] } }]`;
  const more = { tools: [todoWrite], guards: only("todos") };

  it("refuse the end twice, and not a third time", async () => {
    const ran = await running(turns(list("pending"), "- text: a", "- text: b", "- text: c", "- text: d"), more);
    expect(guarded(ran).map(({ action }) => action)).toEqual(["refuse", "refuse"]);
    expect(ran.result).toMatchObject({ outcome: "done", text: "c", turns: 4 });
    const said = ran.events.find((event) => event.type === "guard");
    expect(said).toMatchObject({ text: expect.stringContaining("- [pending] Test it") as string });
  });

  it("do not refuse it once they are done", async () => {
    const ran = await running(turns(list("in_progress"), "- text: a", list("completed"), "- text: b"), more);
    expect(guarded(ran)).toHaveLength(1);
    expect(ran.result).toMatchObject({ outcome: "done", text: "b" });
  });

  it("take an answer by finish back as well", async () => {
    const finish = "- calls: [{ name: finish, args: { text: NAME } }]";
    const ran = await running(
      turns(list("pending"), finish.replace("NAME", "early"), list("completed"), finish.replace("NAME", "late")),
      { ...more, output: { type: "object", properties: { text: {} } } },
    );
    expect(ran.result).toMatchObject({ outcome: "done", output: { text: "late" } });
  });
});

describe("hints that are off unless asked for", () => {
  it("tell how complex the prompt looks, beside it", async () => {
    const messages = [{ role: "user" as const, blocks: [{ type: "text" as const, text: "Refactor the parser." }] }];
    const ran = await running(end, { messages, guards: guardsOf({ complexity: true }) });
    expect(guarded(ran)).toEqual([{ turn: 0, rule: "complexity", action: "hint" }]);
    const first = ran.events.find((event) => event.type === "message");
    expect(first).toMatchObject({
      message: { blocks: [{ text: "Refactor the parser." }, { text: hints.complexity.complex }] },
    });
    expect(guarded(await running(end, { messages }))).toEqual([]);
  });

  it.each([
    ["Create a file", "simple"],
    ["Please add feature flags", "moderate"],
    ["fix bug 12", "moderate"],
    ["Migrate to ESM", "complex"],
    ["Do this:\n1. a\n2. b\n3. c", "complex"],
    ["Say hello", undefined],
  ])("reads %j as %s", (prompt, complexity) => {
    expect(complexityOf(prompt)).toBe(complexity);
  });

  it("remind of findings at every second read", async () => {
    const guards = only("findings");
    const ran = await running(turns("Read a", "Read b", "Read c; Read d; Read e", "Write f", end), { tools, guards });
    expect(guarded(ran).map(({ turn }) => turn)).toEqual([2, 3]);
  });
});

describe("`guards` of an agent", () => {
  it("switch all or each", () => {
    const on = { repeats: true, reads: true, errors: true, todos: true, complexity: false, findings: false };
    expect(guardsOf(undefined)).toEqual(on);
    expect(guardsOf({ reads: false, findings: true })).toEqual({ ...on, reads: false, findings: true });
    expect(Object.values(guardsOf(false)).some(Boolean)).toBe(false);
    expect(Object.values(guardsOf(true)).every(Boolean)).toBe(true);
  });
});
