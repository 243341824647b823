import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import type { Diagnostic, Span } from "../../src/model/diagnostic.ts";
import { diagnosticsJson, renderDiagnostics } from "../../src/render/diagnostics.ts";
import type { Palette } from "../../src/render/palette.ts";

const same = (text: string): string => text;
const plain: Palette = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };

/** The span of the n-th `needle` in `source`, up to its end. */
function spanOf(source: string, needle: string, file = "review.yaml"): Span {
  const start = source.indexOf(needle);
  if (start < 0) throw new Error(`no ${needle}`);
  const position = (offset: number): [number, number] => {
    const before = source.slice(0, offset).split("\n");
    return [before.length, (before.at(-1) ?? "").length + 1];
  };
  const [line, column] = position(start);
  const [endLine, endColumn] = position(start + needle.length);
  return { file, line, column, endLine, endColumn };
}

function problem(at: Span, rest: Partial<Diagnostic> = {}): Diagnostic {
  return { code: "FLOW1006", severity: "error", message: "bad", at, ...rest };
}

function render(source: string, diagnostics: readonly Diagnostic[], limit?: number): string {
  const options = limit === undefined ? { palette: plain } : { palette: plain, limit };
  return renderDiagnostics(diagnostics, new Map([["review.yaml", source]]), options);
}

/** What stands above the carets, by display column. */
function underCaret(output: string): string {
  const lines = output.split("\n");
  const index = lines.findIndex((line) => /^ +\| +\^+$|^ +\|\^+$/.test(line));
  const carets = lines[index] ?? "";
  const from = carets.indexOf("^");
  let column = 0;
  let text = "";
  for (const { segment } of new Intl.Segmenter().segment(lines[index - 1] ?? "")) {
    if (column >= from && column < carets.length) text += segment;
    column += stringWidth(segment);
  }
  return text;
}

describe("a diagnostic on the terminal", () => {
  it("starts with file:line:column and shows the line, the caret, related places, help and a count", () => {
    const source = "steps:\n  test:\n    needs: biuld\n    run: npm test\n  build:\n    run: npm run build\n";
    const output = render(source, [
      problem(spanOf(source, "biuld"), {
        message: "there is no step `biuld` here",
        related: [{ message: "steps are declared here", at: spanOf(source, "steps:") }],
        suggestion: "did you mean `build`?",
      }),
      problem(spanOf(source, "run: npm run build"), { severity: "warning", code: "FLOW1011", message: "twice" }),
    ]);
    expect(output).toMatchInlineSnapshot(`
      "review.yaml:3:12 error FLOW1006: there is no step \`biuld\` here
        2 |   test:
      > 3 |     needs: biuld
          |            ^^^^^
        4 |     run: npm test
      review.yaml:1:1: steps are declared here
      > 1 | steps:
          | ^^^^^^
      help: did you mean \`build\`?

      review.yaml:6:5 warning FLOW1011: twice
        5 |   build:
      > 6 |     run: npm run build
          |     ^^^^^^^^^^^^^^^^^^

      1 error, 1 warning
      "
    `);
  });

  it.each([
    ["Chinese", "名字: 修复错误 done", "错误"],
    ["a tab before and inside", "\ta:\tb\tvalue x", "value"],
    ["an emoji of several code points", "a: 👩‍👩‍👧 family", "family"],
    ["a combining accent", "a: e\u0301te\u0301 hiver", "hiver"],
    ["the last character", "abc", "c"],
  ])("puts the caret exactly under the span after %s", (_, source, needle) => {
    expect(underCaret(render(source, [problem(spanOf(source, needle))]))).toBe(needle);
  });

  it("points behind the last character for an empty span at the end", () => {
    const at: Span = { file: "review.yaml", line: 1, column: 4, endLine: 1, endColumn: 4 };
    expect(render("abc", [problem(at)])).toContain("> 1 | abc\n    |    ^\n");
  });

  it("clamps a span of several lines to its first", () => {
    const source = "a:\n  b: 1   \n  c: 2\n";
    expect(underCaret(render(source, [problem(spanOf(source, "b: 1   \n  c"))]))).toBe("b: 1");
  });

  it("cuts a line of 200,000 characters around the caret, fast", () => {
    const source = `${"x".repeat(100_000)}WRONG${"修".repeat(100_000)}`;
    const started = performance.now();
    const output = render(source, [problem(spanOf(source, "WRONG"))]);
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(underCaret(output)).toBe("WRONG");
    expect(output).toMatch(/\| …x+WRONG修+…\n/);
    for (const line of output.split("\n")) expect(stringWidth(line)).toBeLessThanOrEqual(100);
  });

  it("spells control characters and bidirectional overrides in the source, the message, the name and the help", () => {
    const source = "a: \x1b[31mred\u202e \x07 z";
    const output = renderDiagnostics(
      [
        problem(spanOf(source, "z", "ev\x1bil.yaml"), {
          message: "\x1b]0;title\x07\nevil.yaml:1:1 error",
          suggestion: "a\rb",
        }),
      ],
      new Map([["ev\x1bil.yaml", source]]),
      { palette: plain },
    );
    expect(output).toContain("ev\\x1bil.yaml:1:16");
    expect(output).toContain("| a: \\x1b[31mred\\u202e \\x07 z");
    expect(output).toContain("\n    evil.yaml:1:1 error");
    expect(output).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f\u202e]/);
    expect(underCaret(output)).toBe("z");
  });

  it("reads CRLF files without showing the carriage return", () => {
    expect(render("a: 1\r\nb: 2\r\n", [problem(spanOf("a: 1\r\nb: 2", "b"))])).toContain("> 2 | b: 2\n");
  });

  it("leaves the frame out where the source is not known or the line does not exist", () => {
    const at: Span = { file: "other.yaml", line: 9, column: 9, endLine: 9, endColumn: 9 };
    expect(render("a", [problem(at), problem({ ...at, file: "review.yaml" })])).toBe(
      "other.yaml:9:9 error FLOW1006: bad\n\nreview.yaml:9:9 error FLOW1006: bad\n\n2 errors\n",
    );
  });

  it("prints at most the limit and counts all", () => {
    const many = Array.from({ length: 53 }, (_, index) =>
      problem(spanOf("a: 1", "a"), { severity: index < 52 ? "error" : "warning" }),
    );
    expect(render("a: 1", many).match(/FLOW1006/g)).toHaveLength(50);
    expect(render("a: 1", many)).toContain("\n\n… and 3 more (all with --format json)\n52 errors, 1 warning\n");
    expect(render("a: 1", many, 60)).not.toContain("more");
  });

  it("says nothing about nothing", () => {
    expect(render("a", [])).toBe("");
  });

  it("colours with the palette without moving anything", () => {
    const wrap = (code: number) => (text: string) => `\x1b[${code}m${text}\x1b[0m`;
    const palette: Palette = {
      bold: wrap(1),
      dim: wrap(2),
      red: wrap(31),
      green: wrap(32),
      yellow: wrap(33),
      cyan: wrap(36),
    };
    const source = "名: x\nb: y";
    const diagnostics = [
      problem(spanOf(source, "x"), { suggestion: "no", related: [{ message: "m", at: spanOf(source, "y") }] }),
    ];
    const coloured = renderDiagnostics(diagnostics, new Map([["review.yaml", source]]), { palette });
    expect(coloured).toContain("\x1b[31merror\x1b[0m");
    expect(stripVTControlCharacters(coloured)).toBe(render(source, diagnostics));
  });

  it("never throws, never prints a control character and keeps the width, for any text and any span", () => {
    const position = fc.integer({ min: -3, max: 300 });
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 300 }),
        position,
        position,
        position,
        (source, line, column, end) => {
          const at: Span = { file: "review.yaml", line: line % 5, column, endLine: line % 5, endColumn: end };
          const output = render(source, [problem(at)]);
          expect(output).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
          for (const row of output.split("\n")) expect(stringWidth(row)).toBeLessThanOrEqual(100);
        },
      ),
    );
  });
});

describe("diagnostics for programs", () => {
  it("hold everything, all of them, with the counts", () => {
    const at = spanOf("abc", "b");
    const full: Diagnostic = {
      ...problem(at, { severity: "warning", suggestion: "s" }),
      related: [{ message: "r", at }],
      fix: [{ at, text: "t" }],
    };
    const many = [full, ...Array.from({ length: 60 }, () => problem(at))];
    const json = diagnosticsJson(many);
    expect(json).toEqual({ schemaVersion: 1, diagnostics: many, errors: 60, warnings: 1 });
    expect(JSON.parse(JSON.stringify(json))).toEqual(json);
  });
});
