import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { locate, nodeAt } from "../../src/source/document.ts";
import type { ScalarNode, SourceDocument } from "../../src/source/document.ts";
import { covered, read } from "./reading.ts";

function scalarAt(document: SourceDocument, ...path: (string | number)[]): ScalarNode & { value: string } {
  const node = nodeAt(document.root, path)?.node;
  if (node?.kind !== "scalar" || typeof node.value !== "string") throw new Error("no text there");
  return { ...node, value: node.value };
}

/** What the span of `part` of the scalar at `path` covers in the text. */
function found(text: string, part: string, ...path: (string | number)[]): string {
  const document = read(text);
  const scalar = scalarAt(document, ...path);
  const offset = scalar.value.indexOf(part);
  if (offset === -1) throw new Error(`${JSON.stringify(scalar.value)} lacks ${part}`);
  return covered(document.text, locate(document, scalar, offset, part.length));
}

const word = fc.stringMatching(/^[A-Za-zäß😀.,;()=<>$]{1,8}$/u);
const words = fc.array(word, { maxLength: 4 }).map((list) => list.join(" "));
const expression = fc.stringMatching(/^[a-z.]{1,10}( == 'x')?$/).map((inner) => `\${{ ${inner} }}`);
const line = fc.tuple(words, expression, words).map((parts) => parts.filter((part) => part !== "").join(" "));
const proseLine = words.filter((text) => text !== "");

/** Lines with the expression in one of them, wherever the style allows it. */
const lines = fc
  .tuple(fc.array(fc.oneof(proseLine, fc.constant("")), { maxLength: 4 }), line, fc.array(proseLine, { maxLength: 3 }))
  .map(([before, middle, after]) => [...before, middle, ...after]);
const expressionIn = /\$\{\{ .*? \}\}/;

describe("the span of an expression covers exactly its text,", () => {
  const styles: [style: string, write: (lines: readonly string[]) => string][] = [
    ["plain, one line", (all) => `a: ${plain(all.join(" "))}\nb: 1\n`],
    ["plain, many lines", (all) => `a:\n${indent(all.map(plain), "  ")}\nb: 1\n`],
    ["single quotes", (all) => `a: '${all.join(" ").replaceAll("'", "''")}'\n`],
    ["single quotes, many lines", (all) => `- x: 'it''s\n${indent(all, "     ").replaceAll("'", "''")}'\n`],
    ["double quotes", (all) => `a: "${all.join(" ")}"\n`],
    ["double quotes with escapes", (all) => `a: "\\t\\u00e4\\U0001F600 \\"q\\" ${all.join("\\n")}\\x41"\n`],
    ["double quotes, many lines", (all) => `a: "\\\n${indent(all, "    ")} \\\n   end"\n`],
    ["literal", (all) => `a:\n  b: |\n${indent(all, "      ")}\n\nc: 1\n`],
    ["literal, kept and indented deeper", (all) => `a: |2+\n${indent(["  deeper", ...all], "  ")}\n\n`],
    ["folded", (all) => `a: >-\n${indent(all, "   ")}\n`],
    ["literal with CRLF", (all) => `a: |\r\n${indent(all, "  ").replaceAll("\n", "\r\n")}\r\n`],
    ["in [ ]", (all) => `[x, "${all.join(" ")}"]`],
  ];
  test.each(styles)("%s", (_style, write) => {
    fc.assert(
      fc.property(lines, (all) => {
        const text = write(all);
        const document = read(text);
        const scalar = someText(document);
        const match = expressionIn.exec(scalar.value);
        if (match === null) throw new Error(`no expression in ${JSON.stringify(scalar.value)}`);
        const span = locate(document, scalar, match.index, match[0].length);
        const raw = covered(document.text, span);
        expect(raw.replaceAll("''", "'")).toBe(match[0]);
      }),
      { numRuns: 200 },
    );
  });
});

/** Plain text may not begin or end with what means something to YAML. */
function plain(text: string): string {
  return `t${text.replaceAll(/[,:]/g, ".")}t`;
}

function indent(all: readonly string[], by: string): string {
  return all.map((text) => (text === "" ? "" : by + text)).join("\n");
}

/** The one scalar of the document that holds an expression. */
function someText(document: SourceDocument): ScalarNode & { value: string } {
  for (const path of [["a"], ["a", "b"], [0, "x"], [1]])
    if (nodeAt(document.root, path)?.node.kind === "scalar") return scalarAt(document, ...path);
  throw new Error("no scalar");
}

describe("a part of a value is found", () => {
  const rows: [what: string, text: string, part: string, raw: string][] = [
    ["behind escapes", 'a: "\\"x\\" ${{ y }}"', "${{ y }}", "${{ y }}"],
    ["that is itself an escape", 'a: "x\\u00e4y"', "ä", "\\u00e4"],
    ["that is a doubled quote", "a: 'it''s'", "'", "''"],
    ["over a folded line", "a: >\n  one\n  two\n", "one two", "one\n  two"],
    ["at the second of two equal places", 'a: "x\\n${{ a }}\\n${{ b }}"', "${{ b }}", "${{ b }}"],
    ["in white space of one line", "a: |\n  x  y\n", "  ", "  "],
  ];
  test.each(rows)("%s", (_what, text, part, raw) => {
    expect(found(text, part, "a")).toBe(raw);
  });

  test("through an alias, at the anchor", () => {
    const text = "a: &x 'p ${{ q }}'\nb: *x\n";
    expect(found(text, "${{ q }}", "b")).toBe("${{ q }}");
  });

  test("and what lies outside the value is the whole scalar", () => {
    const document = read("a: 'abc'\n");
    expect(covered(document.text, locate(document, scalarAt(document, "a"), 2, 5))).toBe("'abc'");
  });

  test("at the end of a value, as an empty span", () => {
    const document = read("a: |\n  abc\nb: 1\n");
    const span = locate(document, scalarAt(document, "a"), 3, 0);
    expect(span).toMatchObject({ line: 2, column: 6, endLine: 2, endColumn: 6 });
  });
});

test("100,000 expressions of one text are found in linear time", () => {
  const document = read(`a: |\n${"  ${{ x }}\n".repeat(100_000)}`);
  const scalar = scalarAt(document, "a");
  const start = performance.now();
  for (let offset = 0; offset < scalar.value.length; offset += 9) locate(document, scalar, offset, 8);
  expect(performance.now() - start).toBeLessThan(5000);
});
