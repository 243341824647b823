import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Diagnostic } from "../../src/model/diagnostic.ts";
import { locate, nodeAt, toJson } from "../../src/source/document.ts";
import { parseFrontMatter } from "../../src/source/front-matter.ts";
import type { FrontMatter } from "../../src/source/front-matter.ts";
import { brief, bytes, covered } from "./reading.ts";

function front(text: string): FrontMatter {
  const parsed = parseFrontMatter(bytes(text), "agent.md");
  if (!parsed.ok) throw new Error(parsed.error.map(brief).join("\n"));
  return parsed.value;
}

function refused(text: string): readonly Diagnostic[] {
  const parsed = parseFrontMatter(bytes(text), "agent.md");
  return parsed.ok ? [] : parsed.error;
}

describe("an agent file", () => {
  test("gives its keys and its body, with lines counted from the top", () => {
    const text = "---\nname: x\ntools: [Read]\n---\n\nYou review ${{ inputs.diff }}.\n";
    const { document, body, warnings } = front(text);
    expect(toJson(document.root)).toEqual({ name: "x", tools: ["Read"] });
    expect(nodeAt(document.root, ["tools"])?.node.at).toMatchObject({ line: 3, column: 8 });
    expect(body.value).toBe("\nYou review ${{ inputs.diff }}.\n");
    expect(document.text).toBe(text);
    expect(warnings).toEqual([]);
    const span = locate(document, body, body.value.indexOf("${{"), 18);
    expect(covered(text, span)).toBe("${{ inputs.diff }}".slice(0, 18));
    expect(span).toMatchObject({ line: 6, column: 12 });
  });

  test("may have a byte order mark, CRLF, spaces behind the dashes and an empty body", () => {
    const { document, body } = front("\ufeff--- \r\nname: x\r\n---\t\r\nHello\r\n${{ a }}\r\n");
    expect(toJson(document.root)).toEqual({ name: "x" });
    expect(body.value).toBe("Hello\n${{ a }}\n");
    expect(locate(document, body, 6, 8)).toMatchObject({ line: 5, column: 1, endLine: 5, endColumn: 9 });
    expect(front("---\nname: x\n---").body.value).toBe("");
  });

  test("with nothing between the dashes is null", () => {
    expect(toJson(front("---\n---\nbody").document.root)).toBeNull();
  });

  test("may have any text in its body, a further `---` too", () => {
    const body = "a: [\n---\n%x \u001b \ufeff\n";
    expect(front(`---\na: 1\n---\n${body}`).body.value).toBe(body);
  });
});

describe("an agent file is refused", () => {
  const rows: [what: string, text: string, ...expected: string[]][] = [
    ["when it is empty", "", "FLOW1017 1:1"],
    ["without front matter", "# Title\n", "FLOW1017 1:1"],
    ["when an empty line stands before it", "\n---\na: 1\n---\n", "FLOW1017 1:1"],
    ["when it is not closed", "---\na: 1\n", "FLOW1017 1:1"],
    ["when only an indented `---` follows", "---\na: |\n  ---\n", "FLOW1017 1:1"],
    ["when four dashes should close it", "---\na: 1\n----\n", "FLOW1017 1:1"],
    ["with YAML that is wrong", "---\na: 1\nb: [\n---\nbody\n", "FLOW1006 3:4"],
    ["with a key twice", "---\na: 1\na: 2\n---\n", "FLOW1011 3:1"],
    [
      "with a second problem beside its description",
      "---\ndescription: a: b\nname: @x\n---\n",
      "FLOW1006 2:14",
      "FLOW1006 3:7",
    ],
    ["with a colon in another value", "---\nname: a: b\n---\n", "FLOW1006 2:7"],
    ["with a NUL in its body", "---\na: 1\n---\nx\0y", "FLOW1005 4:2"],
  ];
  test.each(rows)("%s", (_what, text, ...expected) => {
    expect(refused(text).map(brief)).toEqual(expected);
  });
});

describe("a description that is not valid YAML is read as text:", () => {
  const rows: [what: string, lines: string, value: string][] = [
    ["a colon", "description: Use when: asked", "Use when: asked"],
    ["a colon at the end", "description: Examples: a, b:", "Examples: a, b:"],
    ["a colon and a hash", "description: Use: a #1 tool", "Use: a #1 tool"],
    ["quotes inside", "description: Triggers on: 'GDPR', \"x\", [y]", "Triggers on: 'GDPR', \"x\", [y]"],
    ["a second line", "description: Use when: a\n  and also: b\n\n  or: c", "Use when: a and also: b\nor: c"],
  ];
  test.each(rows)("%s", (_what, lines, value) => {
    const text = `---\nname: x\n${lines}\nmodel: opus\n---\nbody\n`;
    const { document, warnings } = front(text);
    expect(toJson(document.root)).toEqual({ name: "x", description: value, model: "opus" });
    expect(warnings.map(({ code, severity, at }) => [code, severity, at.line])).toEqual([["FLOW1018", "warning", 3]]);
    const node = nodeAt(document.root, ["description"])?.node;
    if (node?.kind !== "scalar") throw new Error("no description");
    expect(covered(text, locate(document, node, value.indexOf(":"), 1))).toBe(":");
  });
});

const samples = fileURLToPath(new URL("../../../shared/samples/", import.meta.url));
const folders: [folder: string, warnings: number][] = [
  ["claude-agents", 0],
  ["claude-agents-malformed", 1],
  ["opencode-agents", 0],
  ["skills", 0],
];
const present = existsSync(samples);
if (!present) console.log("skipped: the samples of ../shared are not here");

describe.skipIf(!present)("files of other projects load unchanged:", () => {
  const files = present
    ? folders.flatMap(([folder, warnings]) =>
        readdirSync(join(samples, folder))
          .filter((name) => name.endsWith(".md"))
          .map((name): [string, number] => [join(folder, name), warnings]),
      )
    : [];
  test.each(files)("%s", (name, warnings) => {
    const content = readFileSync(join(samples, name));
    const parsed = parseFrontMatter(content, name);
    if (!parsed.ok) throw new Error(parsed.error.map(({ message }) => message).join("\n"));
    expect(parsed.value.warnings).toHaveLength(warnings);
    const description = nodeAt(parsed.value.document.root, ["description"])?.node;
    if (description?.kind !== "scalar" || typeof description.value !== "string") throw new Error("no description");
    expect(content.toString()).toContain(description.value);
    expect(content.toString().endsWith(parsed.value.body.value)).toBe(true);
  });
});
