import { appendFileSync, chmodSync, cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decisions } from "../engine/resuming.ts";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.remove());

const broken = `
name: broken
inputs: { who: { type: string, default: world } }
steps:
  first: { run: 'echo first >> count; echo "hello $WHO"', env: { WHO: "\${{ inputs.who }}" } }
  gate: { needs: [first], run: 'echo gate >> count; test -e open' }
  last: { needs: [gate], run: 'echo last >> count; echo "$TEXT!"', env: { TEXT: "\${{ steps.first.outputs.stdout }}" } }
outputs: { text: "\${{ steps.last.outputs.stdout }}" }
`;

const count = (): string[] => (existsSync(join(place.folder, "count")) ? place.read("count").trim().split("\n") : []);
const logPath = (): string => join(place.folder, ".flow/runs", place.runs().at(-1) ?? "", "log.jsonl");

async function failedRun(): Promise<void> {
  place.write("broken.yaml", broken);
  expect((await place.flow(["run", "broken.yaml"])).code).toBe(1);
}

/** Refused: the reason, exit 2, and not a byte of the log is another. */
async function refused(...args: string[]): Promise<string> {
  const before = readFileSync(logPath());
  const { code, stdout, stderr } = await place.flow(["resume", ...args]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(readFileSync(logPath()).equals(before)).toBe(true);
  return stderr;
}

describe("flow resume", () => {
  it("reuses what ended, runs the rest, says which and why, and goes on in the same log", async () => {
    place.write("broken.yaml", broken);
    const failed = await place.flow(["run", "broken.yaml"]);
    const next = /node (\S+ resume \S+)\n/.exec(failed.stderr)?.[1] ?? "";
    place.write("open", "");
    const { code, stdout, stderr } = await place.shell(`"$NODE" ${next}`);
    expect([code, stdout]).toEqual([0, "text: hello world!\n"]);
    expect(stderr).toMatch(/first +reused: its end is line \d+ of the log/);
    expect(stderr).toMatch(/gate +runs again: it failed/);
    expect(stderr).toMatch(/^ok broken \S+ /m);
    expect(count()).toEqual(["first", "gate", "gate", "last"]);
    expect(decisions(place.events())).toEqual(["first reused", "gate again failed", "last began"]);
    expect(place.runs()).toHaveLength(1);
  });

  it("has nothing to do for a run that succeeded, and prints its outputs again", async () => {
    await failedRun();
    place.write("open", "");
    await place.flow(["resume", "latest"]);
    const before = place.log();
    const { code, stdout, stderr } = await place.flow(["resume", place.runs()[0]?.slice(0, 17) ?? ""]);
    expect([code, stdout]).toEqual([0, "text: hello world!\n"]);
    expect(stderr).toMatch(/has succeeded already: there is nothing to do\n$/);
    expect(place.log()).toBe(before);
    const { stdout: json } = await place.flow(["resume", "latest", "--json"]);
    expect(JSON.parse(json)).toMatchObject({ schemaVersion: 1, outcome: "success", outputs: { text: "hello world!" } });
  });

  it("works twice in a row, and from another folder of the workspace", async () => {
    await failedRun();
    place.write("below/x", "");
    expect((await place.flow(["resume", "latest"], { cwd: "below" })).code).toBe(1);
    place.write("open", "");
    expect((await place.flow(["resume", "latest"], { cwd: "below" })).stdout).toBe("text: hello world!\n");
    expect(count()).toEqual(["first", "gate", "gate", "gate", "last"]);
  });

  it("--from runs that step and everything after it again", async () => {
    await failedRun();
    place.write("open", "");
    const { code } = await place.flow(["resume", "latest", "--from", "first"]);
    expect([code, count()]).toEqual([0, ["first", "gate", "first", "gate", "last"]]);
    await place.flow(["resume", "latest", "--from", "gate"]);
    expect(decisions(place.events())).toEqual(["first reused", "gate again from", "last again from"]);
  });

  it("--set replaces an output for everything after it, also when the run is resumed once more", async () => {
    await failedRun();
    place.write("open", "");
    const { stdout } = await place.flow(["resume", "latest", "--set", "first.stdout=good day"]);
    expect(stdout).toBe("text: good day!\n");
    const again = await place.flow(["resume", "latest", "--from", "last"]);
    expect(again.stdout).toBe("text: good day!\n");
    expect(decisions(place.events())).toEqual(["first reused", "gate reused", "last again from"]);
  });

  it("sees that the file was edited, and runs again only what the edit changes", async () => {
    await failedRun();
    place.write("open", "");
    place.write("broken.yaml", broken.replace('"$TEXT!"', '"$TEXT?"').replace("echo first >>", "echo other >>"));
    const { stdout, stderr } = await place.flow(["resume", "latest"]);
    expect(stdout).toBe("text: hello world?\n");
    expect(stderr).toMatch(/run +changed: step first: body\n.*run +changed: step last: body/);
    expect(decisions(place.events())).toEqual(["first again definition", "gate again failed", "last began"]);
  });

  it("uses the plan in the log when the file is gone, and another file where one is named", async () => {
    await failedRun();
    cpSync(join(place.folder, "broken.yaml"), join(place.folder, "moved.yaml"));
    await place.shell("rm broken.yaml; touch open");
    const { code, stderr } = await place.flow(["resume", "latest", "--from", "last"]);
    expect(stderr).toContain("the file broken.yaml is gone: the plan in the log is used");
    expect(code).toBe(0);
    const other = await place.flow(["resume", "latest", "--workflow", "moved.yaml"]);
    expect([other.code, other.stdout]).toEqual([0, "text: hello world!\n"]);
    expect(decisions(place.events())).toEqual(["first reused", "gate reused", "last reused"]);
  });

  it("drops a torn last line, says so, and goes on from the line before", async () => {
    await failedRun();
    appendFileSync(logPath(), '{"seq":99,"time":"2026-');
    place.write("open", "");
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect(code).toBe(0);
    expect(stderr).toContain("the log ended in a part of a line (23 bytes), which was dropped");
    expect(place.events().at(-1)?.type).toBe("run.finished");
  });

  it("runs again what needs a step that ran again, also where no value goes from one to the other", async () => {
    place.write(
      "cleanup.yaml",
      `
steps:
  up: { run: "echo up >> count; test -e open" }
  beside: { run: echo beside >> count }
  mark: { needs: up, if: always(), set: { at: now } }
  down: { needs: mark, if: always(), steps: { each: { foreach: [1, 2], run: echo down >> count } } }
`,
    );
    expect((await place.flow(["run", "cleanup.yaml"])).code).toBe(1);
    place.write("open", "");
    expect((await place.flow(["resume", "latest"])).code).toBe(0);
    expect(count().toSorted()).toEqual(["beside", "down", "down", "down", "down", "up", "up"]);
    expect(decisions(place.events()).toSorted()).toEqual([
      "beside reused",
      "down/each[0] again needs",
      "down/each[1] again needs",
      "up again failed",
    ]);
  });

  it("runs what was undone again", async () => {
    place.write(
      "saga.yaml",
      `
steps:
  make: { run: echo make >> count, undo: { run: echo unmake >> count } }
  fail: { needs: [make], run: test -e open }
`,
    );
    expect((await place.flow(["run", "saga.yaml"])).code).toBe(1);
    place.write("open", "");
    expect((await place.flow(["resume", "latest"])).code).toBe(0);
    expect(count()).toEqual(["make", "unmake", "make"]);
    expect(decisions(place.events())).toEqual(["make again undone", "fail again failed"]);
  });
});

describe("flow resume refuses, with the reason and the log untouched,", () => {
  beforeEach(failedRun);

  it("a run that is not there, and a beginning of several", async () => {
    expect(await refused("2099")).toMatch(/^flow: no run in .* begins with "2099"; the newest are /);
    await place.flow(["run", "broken.yaml"]);
    expect(await refused("20")).toMatch(/^flow: "20" is the beginning of 2 runs: /);
    expect(await refused("./nowhere")).toContain("is not a run");
  });

  it("a path that does not exist", async () => {
    expect(await refused("latest", "--from", "frist")).toContain(
      "--from: the workflow has no step `frist`; did you mean `first`?",
    );
    expect(await refused("latest", "--from", "first[0]")).toContain("--from: `first` has no items: it is no `foreach`");
    expect(await refused("latest", "--from", "first/x")).toContain("--from: `first` has no steps inside");
    expect(await refused("latest", "--from", "a b")).toContain("`a b` in `a b` is not a step");
  });

  it("a --set that does not fit", async () => {
    expect(await refused("latest", "--set", "first")).toContain("is not of the form PATH.output=value");
    expect(await refused("latest", "--set", "nope.x=1")).toContain("nothing called `nope` has run");
    expect(await refused("latest", "--set", "gate.stdout=1")).toContain("`gate` has not succeeded");
    expect(await refused("latest", "--set", "first.stdot=1")).toContain("no output `stdot`; did you mean `stdout`?");
  });

  it("a --set that breaks the declared schema", async () => {
    place.write(
      "typed.yaml",
      `
steps:
  a: { run: "echo '{\\"n\\": 1}'", output: { type: object, required: [n], properties: { n: { type: integer } } } }
  b: { run: exit 1, needs: [a] }
`,
    );
    await place.flow(["run", "typed.yaml"]);
    expect(await refused("latest", "--set", "a.n=many")).toMatch(
      /--set: the value for `a\.n` does not fit what the step declares: `n` must be a whole number/,
    );
  });

  it("a log that is damaged in the middle, of a newer version, or none at all", async () => {
    const log = place.log();
    const file = logPath();
    const lines = log.split("\n");
    writeFileSync(file, log.replace(lines[4] ?? "", "{oops"));
    expect(await refused("latest")).toMatch(/log\.jsonl:5: the line is damaged/);
    writeFileSync(file, log.replace(`${lines[4]}\n`, ""));
    expect(await refused("latest")).toMatch(/log\.jsonl:5: expected seq 5, found 6/);
    writeFileSync(file, log.replace('"log":1', '"log":2'));
    expect(await refused("latest")).toContain("its format has version 2, and this flow knows version 1");
    writeFileSync(file, lines.slice(1).join("\n"));
    expect(await refused("latest")).toMatch(/log\.jsonl:1: /);
    writeFileSync(file, log.slice(0, 50));
    expect(await refused("latest")).toContain("nothing of the run is recorded, start it anew");
    writeFileSync(file, log.replace('"type":"step.finished","step":"first"', '"type":"step.finished","step":7'));
    expect(await refused("latest")).toContain("the line is damaged");
  });

  it("the log of another workflow, and a file with errors", async () => {
    place.write("other.yaml", "steps:\n  elsewhere: { run: 'true' }\n");
    expect(await refused("latest", "--workflow", "other.yaml")).toContain("this is the log of another workflow");
    place.write("broken.yaml", "steps:\n  first: { runn: x }\n");
    expect(await refused("latest")).toContain("FLOW");
    expect(await refused("latest", "--workflow", "gone.yaml")).toContain("gone.yaml");
  });

  it("a run that somebody else is writing", async () => {
    place.write("slow.yaml", "steps:\n  a: { run: sleep 20 }\n");
    const running = place.start(["run", "slow.yaml"]);
    await running.said("start run");
    expect((await place.flow(["resume", "latest"])).stderr).toMatch(
      /^flow: the run is being written by process \d+ on /,
    );
    running.kill("SIGTERM");
    expect((await running.ended).code).toBe(143);
  });
});

describe("a resume that cannot write", () => {
  it("ends with a reason, not with a step", async ({ skip }) => {
    if (process.getuid?.() === 0) skip("root may write everywhere");
    await failedRun();
    chmodSync(join(logPath(), ".."), 0o500);
    const { code, stderr } = await place.flow(["resume", "latest"]);
    chmodSync(join(logPath(), ".."), 0o700);
    expect([code, stderr]).toEqual([3, expect.stringContaining("EACCES")]);
  });

  it("to a disk that is full ends behind the last whole line, and the next one goes on", async () => {
    await failedRun();
    place.write("open", "");
    const size = readFileSync(logPath()).length;
    const line = `ulimit -f ${Math.ceil(size / 1024) + 1}; flow resume latest`;
    place.write("broken.yaml", broken.replace("echo last >> count;", `echo last >> count; printf %3000s x;`));
    const { code, stderr } = await place.shell(line);
    expect([code, stderr]).toEqual([3, expect.stringContaining("EFBIG")]);
    expect(place.log().endsWith("}\n")).toBe(true);
    expect((await place.flow(["resume", "latest"])).code).toBe(0);
    place.events();
  });
});
