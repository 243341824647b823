import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Bench, outputs } from "./attempt.ts";

const bench = new Bench();
afterAll(() => bench.remove());

const payloads = [
  "$(touch HIT)",
  "`touch HIT`",
  "; touch HIT",
  '"; touch HIT; "',
  "'; touch HIT; '",
  "| touch HIT",
  "|| touch HIT",
  "&& touch HIT",
  "& touch HIT &",
  "> HIT",
  ">> HIT #",
  "<(touch HIT)",
  "${x:-$(touch HIT)}",
  "a[$(touch HIT)]",
  "$((a[$(touch HIT)]))",
  "\ntouch HIT\n",
  "\r\ntouch HIT\r\n",
  "$'\\x3b touch HIT'",
  "() { :; }; touch HIT",
  "{ touch HIT; }",
  "* ? [a-z] ~ ~root {a,b}",
  "!! !touch ^a^b",
  "-n -e --help",
  "--eval=touch HIT",
  "%s%s%n %(touch HIT)T",
  "\\",
  "\\$(touch HIT)\\",
  "\\n\\t\\0",
  "EOF\ntouch HIT\nEOF",
  "k=v\nother<<EOF\nx\nEOF",
  "::set-output name=x::touch HIT",
  "${{ secrets.X }}",
  "#{`touch HIT`} <%= `touch HIT` %>",
  "__proto__",
  "\u001B]0;touch HIT\u0007\u001B[2J",
  "é€😀 \u202E\u200B\uFEFF",
  " leading and trailing ",
  "\t",
  "=",
  "../../HIT",
  "a".repeat(1000),
  "'\"`$\\ \n'\"`$\\",
] as const;

/** As `$(…)` and the step's own outputs cut it. */
function withoutFinalNewlines(text: string): string {
  return text.replace(/\n+$/, "");
}

describe("text from elsewhere never becomes code and arrives byte for byte", () => {
  it.each(payloads.map((payload) => [JSON.stringify(payload).slice(0, 60), payload] as const))(
    "%s",
    async (_name, payload) => {
      const script = [
        `printf '%s' "$VALUE" | od -An -v -tx1 | tr -d ' \\n'`,
        "echo",
        "od -An -v -tx1 | tr -d ' \\n'",
        `printf 'out<<%s\\n%s\\n%s\\n' "$WORD" "$VALUE" "$WORD" >> "$FLOW_OUTPUT"`,
      ].join("\n");
      const hex = Buffer.from(payload).toString("hex");
      const env = { VALUE: payload, WORD: "-end-of-the-value-" };
      const first = outputs(await bench.run({ run: script, inputs: { env, stdin: payload } }));
      expect(first["stdout"]).toBe(`${hex}\n${hex}`);
      expect(first["out"]).toBe(payload);

      const second = await bench.run({ run: ["printf", "%s", payload] });
      expect(outputs(second)["stdout"]).toBe(withoutFinalNewlines(payload));

      if (Buffer.byteLength(payload) < 200 && !payload.includes("..")) {
        const cwd = join(bench.cwd, `d${payload.replaceAll("/", "_")}`);
        mkdirSync(cwd, { recursive: true });
        const third = await bench.run({
          run: "pwd; echo >&2; printf '%s' \"$PWD\" | od -An -v -tx1 | tr -d ' \\n' >&2",
          inputs: { cwd },
        });
        expect(outputs(third)["stderr"]).toBe(`\n${Buffer.from(cwd).toString("hex")}`);
        expect(existsSync(join(cwd, "HIT"))).toBe(false);
      }
      expect(existsSync(join(bench.cwd, "HIT"))).toBe(false);
      expect(existsSync(join(bench.folder, "HIT"))).toBe(false);
    },
  );

  it("leaves nothing beside the pipes that were not used", () => {
    expect(readdirSync(bench.temp).filter((name) => !name.startsWith("pipe-"))).toEqual([]);
  });
});
