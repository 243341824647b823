import { afterEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place = new Place();
afterEach(() => {
  place.remove();
  place = new Place();
});

async function json(
  file: string,
  ...args: readonly string[]
): Promise<{ code: number | null; outcome: string; outputs: unknown }> {
  const { code, stdout, stderr } = await place.flow(["run", file, "--json", ...args]);
  if (stdout === "") throw new Error(stderr);
  return { ...(JSON.parse(stdout) as { outcome: string; outputs: unknown }), code };
}

describe("tool steps", () => {
  it("read, list and search the workspace without a model", async () => {
    place.write("notes/a.md", "one\nTODO two\n");
    place.write("notes/b.md", "three\n");
    place.write(
      "flow.yaml",
      [
        "steps:",
        "  read: { tool: Read, with: { file_path: notes/a.md, limit: 1 } }",
        "  list: { tool: LS, with: { path: notes } }",
        "  found: { tool: Glob, with: { pattern: '**/*.md' } }",
        "  todo: { tool: Grep, with: { pattern: TODO }, outputs: { files: '${{ lines(result.text) }}' } }",
        "  each:",
        "    foreach: ${{ lines(steps.list.outputs.text) }}",
        "    tool: Read",
        '    with: { file_path: "notes/${{ item }}" }',
        "outputs:",
        "  read: ${{ steps.read.outputs.text }}",
        "  list: ${{ lines(steps.list.outputs.text) }}",
        "  found: ${{ lines(steps.found.outputs.text) }}",
        "  todo: ${{ length(steps.todo.outputs.files) > 0 }}",
        "  each: ${{ length(steps.each.outputs.items) }}",
      ].join("\n"),
    );
    const { code, outputs } = await json("flow.yaml");
    expect(outputs).toMatchObject({ list: ["a.md", "b.md"], found: ["notes/a.md", "notes/b.md"], todo: true, each: 2 });
    expect((outputs as { read: string }).read).toContain("one");
    expect(code).toBe(0);
  });

  it("fail with the tool's words, are tried again by default kinds, and cannot leave the workspace", async () => {
    place.write(
      "flow.yaml",
      "steps:\n  a: { tool: Read, with: { file_path: ../../etc/passwd }, retry: { max: 1, backoff: 1ms } }\n",
    );
    const { code } = await json("flow.yaml");
    expect(code).toBe(1);
    const events = place.events();
    expect(events.filter(({ type }) => type === "step.retrying")).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ type: "run.finished", error: { kind: "tool_error", step: "a" } });
  });

  const wrong: readonly (readonly [what: string, step: string, ...told: readonly string[]])[] = [
    ["a missing argument", "{ tool: Read }", "FLOW3010", "tool `Read` needs `file_path`"],
    [
      "an argument it does not take",
      "{ tool: LS, with: { pth: . } }",
      "FLOW3009",
      "tool `LS` takes no `pth`",
      "did you mean `path`?",
    ],
    [
      "a constant of the wrong type",
      "{ tool: Read, with: { file_path: a, limit: 0 } }",
      "FLOW3011",
      "`limit` of tool `Read`",
    ],
    ["an undo of the same kind", "{ run: ls, undo: { tool: Read } }", "FLOW3010", "tool `Read` needs `file_path`"],
    ["a tool that is no step", "{ tool: Bash, with: { command: ls } }", "FLOW6002", "use a `run` step"],
    ["half its arguments", "{ tool: Write, with: { file_path: a } }", "FLOW3010", "tool `Write` needs `content`"],
    ["a tool of a server that is not there", "{ tool: mcp__a__b }", "FLOW6012", "there is no MCP server `a`"],
  ];
  it.each(wrong)("with %s are refused before anything runs", async (_what, step, ...told) => {
    place.write("flow.yaml", `steps:\n  a: ${step}\n`);
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    for (const part of told) expect(stderr).toContain(part);
    expect(code).toBe(2);
    expect(place.runs()).toEqual([]);
  });

  it("take arguments that are known only when they run, and check them then", async () => {
    place.write(
      "flow.yaml",
      "inputs: { n: {} }\nsteps:\n  a: { tool: Read, with: { file_path: flow.yaml, limit: '${{ inputs.n }}' } }\n",
    );
    place.write("inputs.json", '{ "n": "two" }');
    expect((await json("flow.yaml", "--inputs", "inputs.json")).code).toBe(1);
    expect(place.events().at(-1)).toMatchObject({ error: { kind: "input" } });
  });
});

describe("loops, tries and undo in real processes", () => {
  it("a matrix runs its combinations, with the first failure stopping what sleeps", async () => {
    place.write(
      "flow.yaml",
      [
        "steps:",
        "  a:",
        "    matrix: { os: [linux, macos], node: [22, 24], exclude: [{ os: macos, node: 22 }], include: [{ os: linux, fast: true }] }",
        '    run: if [ "$OS" = macos ]; then exit 3; else sleep 60; fi',
        '    env: { OS: "${{ matrix.os }}" }',
      ].join("\n"),
    );
    const started = Date.now();
    expect((await json("flow.yaml")).code).toBe(1);
    expect(Date.now() - started).toBeLessThan(15_000);
    const ends = place
      .events()
      .flatMap((event) => (event.type === "step.finished" ? [`${event.step} ${event.outcome}`] : []));
    expect(ends.toSorted()).toEqual(["a failure", "a[0] cancelled", "a[1] cancelled", "a[2] failure"]);
  });

  it("a retried command succeeds at last; a repeated one counts up; limits hold", async () => {
    place.write(
      "flow.yaml",
      [
        "steps:",
        '  flaky: { run: "echo x >> tries; [ $(wc -l < tries) -eq 3 ]", retry: { max: 5, backoff: 1ms } }',
        "  count:",
        "    repeat: { until: result.stdout == '3', max: 9 }",
        '    run: echo "$N"',
        '    env: { N: "${{ iteration }}" }',
        "  slow: { run: sleep 60, limits: { duration: 200ms }, continue-on-error: true }",
        'outputs: { count: "${{ steps.count.outputs.stdout }}", slow: "${{ steps.slow.error.kind }}" }',
      ].join("\n"),
    );
    expect(await json("flow.yaml")).toMatchObject({ code: 0, outputs: { count: "3", slow: "budget" } });
    expect(place.read("tries")).toBe("x\nx\nx\n");
  });

  it("an undo that is a workflow gets what its step gave", async () => {
    place.write(
      "back.yaml",
      'inputs: { file: { type: string } }\nsteps:\n  rm: { run: rm "$F", env: { F: "${{ inputs.file }}" } }\n',
    );
    place.write(
      "flow.yaml",
      [
        "steps:",
        "  make:",
        '    run: touch made; echo "file=made" >> "$FLOW_OUTPUT"',
        '    undo: { workflow: back.yaml, with: { file: "${{ steps.make.outputs.file }}" } }',
        "  bad: { run: test -e made && exit 1, needs: make }",
      ].join("\n"),
    );
    expect((await json("flow.yaml")).code).toBe(1);
    expect(() => place.read("made")).toThrow();
    expect(place.events().flatMap((event) => (event.type === "step.undone" ? [event.step] : []))).toEqual(["make"]);
  });

  it("Ctrl-C takes back what had been done", async () => {
    place.write(
      "flow.yaml",
      'steps:\n  a: { run: touch made, undo: { run: rm made } }\n  b: { run: "echo here >&2; sleep 60", needs: a }\n',
    );
    const running = place.start(["run", "flow.yaml"]);
    await running.said("b          start run");
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    expect(() => place.read("made")).toThrow();
    expect(place.events().filter(({ type }) => type === "step.undone")).toHaveLength(1);
  });
});
