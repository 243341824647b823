import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createEvaluator } from "../../src/expr/template.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { stepEnvironment } from "../../src/process/environment.ts";
import { Marks } from "../../src/process/marks.ts";
import { customTools } from "../../src/tools/index.ts";
import { canary, makeWorkspace } from "./workspace.ts";

const PATH = process.env["PATH"] ?? "";
const spill = makeWorkspace();
const work = makeWorkspace({ spillFolder: join(spill.root, "files"), environment: { PATH, A: "1" } });
afterAll(() => {
  work.remove();
  spill.remove();
});

const bash = (command: string, more: JsonObject = {}): Promise<string> => work.call("Bash", { command, ...more });

describe("Bash", () => {
  it("gives both streams in their order, and says an exit code that is not 0", async () => {
    expect(await bash("echo a; echo b >&2; echo c")).toBe("a\nb\nc");
    expect(await bash("echo a; exit 3")).toBe("error: a\n[exit code 3]");
    expect(await bash("false")).toBe("error: [exit code 1]");
    expect(await bash("kill -9 $$")).toBe("error: [ended by SIGKILL]");
  });

  it("works in the workspace with the environment it was made with, no input and no start-up files", async () => {
    expect(await bash("pwd; echo $A; cat; echo $BASH_ENV")).toBe(`${work.root}\n1`);
  });

  it("holds no provider's key, no declared secret and no token of the CI", async () => {
    const names = [
      "OPENAI_API_KEY",
      "ANTHROPIC_API_KEY",
      "MY_SECRET",
      "GITHUB_TOKEN",
      "ACTIONS_RUNTIME_TOKEN",
      "KEY_OF_OURS",
    ];
    const inherited = { PATH, ...Object.fromEntries(names.map((name) => [name, canary])) };
    const environment = stepEnvironment({ inherited, providerKeys: ["KEY_OF_OURS"], secrets: ["MY_SECRET"], own: {} });
    const other = makeWorkspace({ environment });
    const seen = await other.call("Bash", {
      command: "env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/self/cmdline | tr '\\0' ' '",
    });
    expect(seen).toContain("PATH=");
    expect(seen).not.toContain(canary);
    other.remove();
  });

  it("ends in time, with all it started", async () => {
    const start = performance.now();
    expect(await bash("echo begun; sleep 60 & sleep 60", { timeout: 300 })).toBe(
      "error: begun\n[ended after 300 ms (`timeout`)]",
    );
    expect(performance.now() - start).toBeLessThan(10_000);
  });

  it("keeps the beginning and the end of a flood, and the whole in a file", async () => {
    const text = await bash("echo first; head -c 6000000 /dev/zero | tr '\\0' x; echo; echo last");
    expect([text.startsWith("first\n"), text.endsWith("last"), text.length < 5_000_000]).toEqual([true, true, true]);
    const [file = ""] = readdirSync(join(spill.root, "files"));
    expect(readFileSync(join(spill.root, "files", file), "utf8")).toHaveLength(6_000_012);
  });

  it("hands the command to bash as it is", async () => {
    expect(await bash("cat <<'E'\n$(evil) `evil` \"'\nE\necho \"$((1+1))\"")).toBe("$(evil) `evil` \"'\n2");
    expect(await bash("echo 'a")).toContain("unexpected EOF");
  });
});

describe("a workflow's own tools", () => {
  const payloads = [
    "$(touch x)",
    "`touch x`",
    "; touch x",
    "a b",
    "'",
    '"',
    "-n",
    "\n",
    "${{ inputs.b }}",
    "*",
    "\\",
    "é𝄞",
  ];
  const make = (tool: JsonObject): ReturnType<typeof customTools> =>
    customTools(
      { mine: { description: "Mine.", parameters: { type: "object" }, ...tool } },
      {
        marks: new Marks("custom"),
        environment: { PATH },
        evaluator: createEvaluator(),
        secrets: { TOKEN: canary },
      },
    );
  const call = async (tool: JsonObject, args: JsonObject): Promise<unknown> => {
    const [mine] = make(tool);
    const result = await mine?.run(args, { workspace: work.root, signal: new AbortController().signal });
    if (result?.ok !== true) return `error: ${result?.error ?? "no tool"}`;
    return (
      result.value.structured ?? result.value.blocks.map((block) => (block.type === "text" ? block.text : "?")).join("")
    );
  };

  it.each(payloads)("get an argument byte for byte by argv, environment and stdin: %j", async (value) => {
    const script =
      "process.stdout.write(JSON.stringify([process.argv[1], process.env.V, JSON.parse(require('fs').readFileSync(0)).v]))";
    const run = [process.execPath, "-e", script, "--", "${{ inputs.v }}"];
    expect(await call({ run, env: { V: "${{ inputs.v }}" } }, { v: value })).toBe(
      JSON.stringify([value, value, value]),
    );
    expect(readdirSync(work.root)).not.toContain("x");
  });

  it("give fields when they print one JSON object, and say what went wrong", async () => {
    expect(await call({ run: ["echo", '{"a":1}'] }, {})).toEqual({ a: 1 });
    expect(await call({ run: ["sh", "-c", "echo no >&2; exit 2"] }, {})).toBe("error: no\n[exit code 2]");
    expect(await call({ run: ["sleep", "60"], timeout: "200ms" }, {})).toContain("after 200 ms");
    expect(await call({ run: ["no-such-program"] }, {})).toContain("no such program");
    expect(
      await call(
        { run: ["echo", "${{ inputs.n }}", "${{ inputs.missing }}", "x${{ inputs.list }}"] },
        { n: 3, list: [1, "a"] },
      ),
    ).toBe('3  x[1,"a"]');
  });

  it.each(["9007199254740993", "-12345678901234567890", "1e999"])(
    "never give a field another number than they printed: %s",
    async (number) => {
      const text = `{"ok":1,"id":${number}}`;
      expect(await call({ run: ["echo", text] }, {})).toBe(
        `error: ${text}\n[it cannot be used as JSON: the number ${number} is too large to be kept exactly; write it as text, in quotes]`,
      );
      expect(await call({ run: ["echo", `{"id":"${number}"}`] }, {})).toEqual({ id: number });
      expect(await call({ run: ["echo", `id ${number}`] }, {})).toBe(`id ${number}`);
    },
  );

  it("get a secret only where their `env` names it", async () => {
    expect(await call({ run: ["sh", "-c", "echo $T"], env: { T: "${{ secrets.TOKEN }}" } }, {})).toBe(canary);
    expect(await call({ run: ["sh", "-c", "echo [$TOKEN]"] }, {})).toBe("[]");
  });
});
