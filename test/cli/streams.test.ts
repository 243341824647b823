import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkedEvents, Place } from "./flow.ts";

const escape = "\u001B";

let place: Place;
beforeAll(() => {
  place = new Place({
    "two.yaml": `
name: two
steps:
  first: { run: "echo loud >&2; echo one" }
  second: { run: 'printf "a\\n\\nb\\n"', needs: [first] }
outputs:
  first: \${{ steps.first.outputs.stdout }}
  second: \${{ steps.second.outputs.stdout }}
  list: \${{ lines(steps.second.outputs.stdout) }}
`,
    "fails.yaml": `
name: fails
steps:
  fine: { run: echo fine }
  build:
    needs: [fine]
    run: |
      echo on stdout
      printf '\\033[31mred\\033[0m\\n%s\\n' 'last words' >&2
      exit 7
  after: { run: echo never, needs: [build] }
`,
    "big.yaml": `
name: big
steps: { big: { run: "seq 1 60000" } }
outputs: { big: "\${{ steps.big.outputs.stdout }}" }
`,
    "bad.yaml": "name: bad\nsteps:\n  a:\n    run: echo\n    neds: [b]\n",
    "it's a flow.yaml": "name: x\nsteps: { a: { run: [echo, hi] } }\n",
  });
});
afterAll(() => place.remove());

describe("what flow run prints", () => {
  it("is the outputs on stdout and the rest on stderr", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "two.yaml"]);
    expect(stdout).toBe('first: one\nsecond: |\n  a\n\n  b\nlist: ["a","","b"]\n');
    expect(stderr).toMatch(/first +start run/);
    expect(stderr).not.toContain("loud");
    expect(code).toBe(0);
  });

  it("is one JSON document with --json, that a program can read from the pipe", async () => {
    const script =
      'const end = JSON.parse(require("fs").readFileSync(0)); console.log(end.outputs.first, end.exitCode);';
    const { stdout } = await place.shell(`flow run two.yaml --json 2>/dev/null | "$NODE" -e '${script}'`);
    expect(stdout).toBe("one 0\n");
  });

  it("ends with what happened, what it cost, where the log is and what to type next", async () => {
    const { stderr } = await place.flow(["run", "two.yaml"]);
    const block = stderr.slice(stderr.indexOf("\n\n") + 2).split("\n");
    expect(block[0]).toMatch(/^ok two \d{8}-\d{6}-\w{5} \d+\.\ds$/);
    expect(block[1]).toBe("  steps   2 ok, 0 failed, 0 skipped");
    expect(block[2]).toBe("  tokens  0 in, 0 out, $0");
    expect(block[3]).toMatch(/^ {2}log {5}\.flow\/runs\/[\w-]+\/log\.jsonl$/);
    expect(block[4]).toMatch(/^ {2}next {4}node \S+ graph two\.yaml$/);
    expect(block[5]).toMatch(/^ {10}node \S+ show [\w-]+$/);
  });

  it("names commands that work when they are pasted, from a folder below and with blanks in a name too", async () => {
    place.write("deep/er/x.txt", "");
    const { stderr } = await place.flow(["run", "../../it's a flow.yaml"], { cwd: "deep/er" });
    const next = stderr
      .slice(stderr.indexOf("  next    ") + 10)
      .trim()
      .split(/\n +/);
    expect(next).toHaveLength(2);
    for (const line of next) {
      const {
        code,
        stdout,
        stderr: complaint,
      } = await place.shell(line.replace(/^node /, '"$NODE" '), { cwd: "deep/er" });
      expect({ line, code, complaint }).toEqual({ line, code: 0, complaint: "" });
      expect(stdout).not.toBe("");
    }
  });

  it("calls itself as npx calls it", async () => {
    const { stderr } = await place.flow(["run", "two.yaml"], { env: { npm_command: "exec" } });
    expect(stderr).toContain("next    npx flow graph two.yaml\n");
  });

  it("shows of a failed step its message, its place, its last words and how to see more", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "fails.yaml"]);
    expect(stdout).toBe("");
    expect(code).toBe(1);
    expect(stderr).toContain(
      [
        "  steps   1 ok, 1 failed, 1 skipped",
        "  tokens  0 in, 0 out, $0",
        "  failed  build exit: exited with 7: last words (fails.yaml:5:3)",
        "          | red",
        "          | last words",
        "",
      ].join("\n"),
    );
    const next = /next {4}node (.*)/.exec(stderr)?.[1] ?? "false";
    const { stdout: lines } = await place.shell(`"$NODE" ${next}`);
    expect(lines).toMatch(/^build: failed/);
    expect(lines).toContain("  | last words\n");
  });

  it("says in one line why it failed when it is quiet, and nothing when it did not", async () => {
    expect(await place.flow(["run", "fails.yaml", "--quiet"])).toMatchObject({
      stdout: "",
      stderr: "flow: failure: build: exited with 7: last words\n",
    });
    expect((await place.flow(["run", "two.yaml", "--progress", "quiet"])).stderr).toBe("");
    expect((await place.flow(["run", "two.yaml"], { env: { FLOW_PROGRESS: "quiet" } })).stderr).toBe("");
  });

  it("is the log itself with --progress json", async () => {
    const { stderr } = await place.flow(["run", "fails.yaml", "--progress", "json"]);
    expect(checkedEvents(stderr)).toEqual(place.events());
  });

  it("refuses a progress it does not have, and names those it has", async () => {
    const { code, stderr } = await place.flow(["run", "two.yaml", "--progress", "pretty"]);
    expect(stderr).toContain("Allowed choices are auto, plain, json, quiet");
    expect(code).toBe(2);
  });
});

describe("colour", () => {
  const cases: readonly {
    readonly args: readonly string[];
    readonly env: Record<string, string>;
    readonly on: boolean;
  }[] = [
    { args: [], env: {}, on: false },
    { args: [], env: { CI: "true", TERM: "xterm-256color" }, on: false },
    { args: [], env: { FORCE_COLOR: "1" }, on: true },
    { args: [], env: { FORCE_COLOR: "0" }, on: false },
    { args: [], env: { FORCE_COLOR: "1", NO_COLOR: "1" }, on: false },
    { args: ["--color"], env: { NO_COLOR: "1" }, on: true },
    { args: ["--no-color"], env: { FORCE_COLOR: "3" }, on: false },
  ];
  it.each(cases)("in a pipe with $args and $env: $on", async ({ args, env, on }) => {
    const run = await place.flow(["run", "fails.yaml", ...args], { env });
    const bad = await place.flow(["run", "bad.yaml", ...args], { env });
    const good = await place.flow(["validate", "two.yaml", ...args], { env });
    expect([run.stderr, bad.stderr, good.stdout].map((text) => text.includes(escape))).toEqual([on, on, on]);
    expect(run.stdout + good.stderr).not.toContain(escape);
  });
});

describe("a reader that goes away", () => {
  it("ends nothing and is not spoken of: | head -1", async () => {
    const { stdout, stderr } = await place.shell('flow run big.yaml --quiet | head -1; echo "${PIPESTATUS[0]}"');
    expect(stdout).toBe("big: |\n0\n");
    expect(stderr).toBe("");
    expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "success" });
  });

  it("may leave stderr too, in the middle of a run", async () => {
    const { stdout } = await place.shell("flow run fails.yaml 2> >(head -1 >/dev/null); echo $?");
    expect(stdout).toBe("1\n");
    expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "failure" });
  });

  it("may never have been there: closed stdout, closed stderr, closed stdin", async () => {
    expect((await place.shell("flow run two.yaml -q >&-; echo $?")).stdout).toBe("0\n");
    expect((await place.shell("flow run two.yaml 2>&-; echo $?")).stdout).toMatch(/^first: one[^]*\n0\n$/);
    expect((await place.shell("flow run two.yaml -q <&-; echo $?")).stdout).toMatch(/^first: one[^]*\n0\n$/);
  });

  it("is a disk that is full: said in one line, and no success", async ({ skip }) => {
    const { stdout: there } = await place.shell("test -c /dev/full && echo yes");
    if (there === "") skip("this system has no /dev/full");
    const { stdout, stderr } = await place.shell("flow run two.yaml -q > /dev/full; echo $? >&2");
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^flow: standard output cannot be written: ENOSPC.*\n3\n$/);
  });
});
