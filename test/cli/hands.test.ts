import { utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.remove());

/** What the model says turn by turn: calls, or an error of its provider. */
type Turn = { readonly call: readonly [name: string, args: object] } | { readonly error: number };

function replies(turns: readonly Turn[]): void {
  const lines = turns.map((turn) =>
    "error" in turn
      ? `    - { error: ${turn.error} }`
      : `    - calls: [${JSON.stringify({ name: turn.call[0], args: turn.call[1] })}]`,
  );
  place.write("replies.yaml", `agents:\n  a:\n${[...lines, "    - { text: done }"].join("\n")}\n`);
}

const call = (name: string, args: object): Turn => ({ call: [name, args] });

function workflow(settings: string): void {
  place.write(
    "w.yaml",
    `model: scripted/replies.yaml\nsteps: { a: { agent: { name: a, prompt: hi${settings} } } }\noutputs: { said: "\${{ steps.a.outputs.text }}" }\n`,
  );
}

function eventsOf<T extends LogLine["type"]>(type: T): Extract<LogLine, { type: T }>[] {
  return place.events().flatMap((event) => (event.type === type ? [event as Extract<LogLine, { type: T }>] : []));
}
const results = (): string[] => eventsOf("tool.finished").map(({ status, text }) => `${status} ${text}`);

describe("an agent that is gone on with after a resume", () => {
  const read = call("Read", { path: "a.txt" });
  const write = call("Write", { file_path: "b.txt", content: "one\n" });
  const change = (file_path: string): Turn => call("Edit", { file_path, old_string: "one", new_string: "two" });

  beforeEach(() => {
    place.write("a.txt", "one\n");
    // As a file that was there long before.
    utimesSync(join(place.folder, "a.txt"), 1_600_000_000, 1_600_000_000);
    workflow(", permissions: { Write: allow, Edit: allow }");
  });

  it("has seen what it saw and wrote", async () => {
    replies([read, write, { error: 401 }]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await place.flow(["run", "w.yaml"])).code).toBe(3);
    replies([read, write, change("a.txt"), change("b.txt")]);
    expect(await place.flow(["resume", "latest"])).toMatchObject({ code: 0 });
    expect([place.read("a.txt"), place.read("b.txt")]).toEqual(["two\n", "two\n"]);
    expect(results().slice(2)).toEqual([
      expect.stringMatching(/^completed Changed "a.txt"/),
      expect.stringMatching(/^completed Changed "b.txt"/),
    ]);
  });

  it("has to look again at what has changed meanwhile, and at what it never saw", async () => {
    replies([read, write, { error: 401 }]);
    expect((await place.flow(["run", "w.yaml"])).code).toBe(3);
    for (const name of ["a.txt", "b.txt", "c.txt"]) place.write(name, "one!\n");
    // A time of before hides nothing.
    for (const name of ["a.txt", "b.txt"]) utimesSync(join(place.folder, name), 1_600_000_000, 1_600_000_000);
    replies([read, write, change("a.txt"), change("b.txt"), change("c.txt")]);
    await place.flow(["resume", "latest"]);
    expect(results().slice(2)).toEqual(
      ["a", "b", "c"].map((name) => `error "${name}.txt" was not read yet: Read it first`),
    );
  });

  it("still wants what it was refused for want of somebody to ask", async () => {
    const push = call("Bash", { command: "git push" });
    replies([push, { error: 401 }]);
    workflow(", tools: [Bash]");
    expect((await place.flow(["run", "w.yaml"])).code).toBe(3);
    replies([push]);
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect([code, stderr]).toEqual([6, expect.stringContaining("--allow 'Bash(git push)'")]);
  });
});

describe("what an agent reads", () => {
  it("may be the whole of a result that was cut, of its own run alone", async () => {
    place.write("long.txt", Array.from({ length: 3000 }, (_, at) => `line ${at + 1}`).join("\n"));
    const bash = call("Bash", { command: "cat long.txt" });
    const file = (): string => eventsOf("tool.finished")[0]?.file ?? "";
    workflow(", permissions: { Bash: allow }");
    replies([bash]);
    await place.flow(["run", "w.yaml"]);
    expect(file()).toMatch(/^files\/[0-9a-f]{16}\.txt$/);
    replies([bash, call("Read", { file_path: file(), offset: 2999 })]);
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({ code: 0 });
    expect(results()[1]).toBe("completed   2999\tline 2999\n  3000\tline 3000");
    const name = file();
    const [other = ""] = place.runs();
    replies([call("Read", { file_path: name }), call("Read", { file_path: `.flow/runs/${other}/${name}` })]);
    await place.flow(["run", "w.yaml"]);
    expect(results()).toEqual([expect.stringContaining("does not exist"), expect.stringContaining("flow's own state")]);
  });

  it("may be a picture, which the model is shown", async () => {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    place.write("w.yaml", "");
    workflow("");
    replies([call("Read", { file_path: "dot.png" })]);
    await place.shell(`echo ${png} | base64 -d > dot.png`);
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({ code: 0 });
    expect(results()).toEqual(["completed [image/png, 1 x 1 pixels, 70 bytes]"]);
    const shown = eventsOf("message").flatMap(({ message }) => message.blocks);
    const [image] = shown.flatMap((block) => (block.type === "result" ? block.blocks.slice(1) : []));
    expect(image).toEqual({ type: "image", mediaType: "image/png", data: png });
  });
});

describe("the log says what an agent's commands ran in", () => {
  it.each([
    ["off", ", sandbox: off", {}, "ran without a sandbox\n"],
    ["unavailable", "", { PATH: "/nowhere" }, "ran without a sandbox: this machine has none\n"],
  ])("%s", async (state, settings, env, shown) => {
    workflow(`${settings}, tools: [Bash]`);
    replies([]);
    const node = { PATH: process.env["PATH"] ?? "", ...env };
    expect(await place.flow(["run", "w.yaml"], { env: node })).toMatchObject({ code: 0 });
    expect(eventsOf("agent.started").map(({ sandbox }) => sandbox)).toEqual([state]);
    expect((await place.flow(["show", "latest"])).stdout).toContain(shown);
  });
});
