import { describe, expect, test } from "vitest";
import { entry, nodeAt, toJson } from "../../src/source/document.ts";
import { parseSource } from "../../src/source/parse.ts";
import { brief, bytes, covered, json, read, refusals } from "./reading.ts";

describe("a file is refused with a code and a place:", () => {
  const rows: [what: string, text: string | Uint8Array, ...expected: string[]][] = [
    ['keys 1 and "1" (yaml-07)', '1: a\n"1": b\n', "FLOW1012 1:1", "FLOW1011 2:1"],
    ["a step written twice (yaml-08)", "steps:\n  a: 1\n  b: 2\n  a: 3\n", "FLOW1011 4:3"],
    ["a key twice inside { }", "{ a: 1, a: 2 }", "FLOW1011 1:9"],
    ["the key __proto__ (yaml-14)", "inputs:\n  __proto__: { polluted: true }\n", "FLOW1016 2:3"],
    ["the key __proto__ written with an escape", '"\\x5f_proto__": 1', "FLOW1016 1:1"],
    ["an alias without an anchor", "a: *missing\n", "FLOW1009 1:4"],
    ["an alias before its anchor", "a: *x\nb: &x 1\n", "FLOW1009 1:4"],
    ["an alias inside its own anchor (yaml-19)", "a: &x { b: *x }\n", "FLOW1009 1:12"],
    ["an anchor without a name", "a: & b\n", "FLOW1009 1:4"],
    ["an alias as key", "a: &x b\n*x : c\n", "FLOW1012 2:1"],
    ["nested explicit keys (yaml-20)", `${"? ".repeat(400)}x`, "FLOW1010 1:129"],
    ["2,000 lists on one line (yaml-23)", `${"- ".repeat(2000)}x`, "FLOW1010 1:129"],
    ["65 nested brackets", `${"[".repeat(65)}${"]".repeat(65)}`, "FLOW1010 1:65"],
    ["a NUL in a scalar (yaml-28)", "a: x\0y\n", "FLOW1005 1:5"],
    ["a NUL in a key, written as an escape", '"a\\0": 1\n', "FLOW1005 1:1"],
    ["control characters in text (yaml-29)", "a: x\u0001\nb: \u001b[0m\n", "FLOW1005 1:5", "FLOW1005 2:4"],
    ["a DEL", "a: \u007f\n", "FLOW1005 1:4"],
    ["U+2028 in a key", "a\u2028b: 1\n", "FLOW1005 1:1"],
    ["bytes that are not UTF-8 (yaml-32)", Uint8Array.of(97, 58, 32, 10, 98, 195, 164, 0xff, 10), "FLOW1004 2:3"],
    ["a character cut by the end of the file", Uint8Array.of(97, 10, 0xe2, 0x82), "FLOW1004 2:1"],
    ["UTF-16", Uint8Array.of(0xff, 0xfe, 97, 0), "FLOW1004 1:1"],
    ["a byte order mark in the middle (yaml-35)", "a: 1\n\ufeffb: 2\n", "FLOW1005 2:1"],
    ["two byte order marks", "\ufeff\ufeffa: 1\n", "FLOW1005 1:1"],
    ["bare carriage returns (yaml-37)", "a: 1\rb: 2\r", "FLOW1005 1:5", "FLOW1005 1:10"],
    ["a tab as indentation (yaml-38)", "a:\n\tb: 1\n", "FLOW1006 2:1"],
    ["a directive (yaml-41)", "%YAML 1.1\n---\non: yes\n", "FLOW1007 1:1"],
    ["two documents", "a: 1\n---\nb: 2\n", "FLOW1008 2:1"],
    ["a second document after ...", "a: 1\n...\nb: 2\n", "FLOW1008 3:1"],
    ["a number beyond the safe integers (yaml-44)", "a: 99999999999999999999\n", "FLOW1006 1:4"],
    ["a number beyond the doubles (yaml-44)", "a: 1e400\n", "FLOW1006 1:4"],
    ["numbers that are not in JSON", "a: .inf\nb: -.INF\nc: .nan\n", "FLOW1006 1:4", "FLOW1006 2:4", "FLOW1006 3:4"],
    ["half a character", '"\\ud800": 1\na: "\\udc00"\n', "FLOW1006 1:1", "FLOW1006 2:5"],
    [
      "keys that are no text",
      "true: 1\nnull: 2\n1.5: 3\n0x1F: 4\n~: 5\n",
      "FLOW1012 1:1",
      "FLOW1012 2:1",
      "FLOW1012 3:1",
      "FLOW1012 4:1",
      "FLOW1012 5:1",
    ],
    ["a key that is missing", ": 1\n", "FLOW1012 1:1"],
    ["a key that is a list", "? [a]\n: b\n", "FLOW1012 1:3"],
    ["a merge key", "a: &x { b: 1 }\nc: { <<: *x }\n", "FLOW1012 2:6"],
    ["a tag that was a condition", "if: !cancelled()\n", "FLOW1013 1:5"],
    ["a tag that was a longer condition", "until: !inputs.a && inputs.b\n", "FLOW1013 1:8"],
    ["a tag", "a: !!str 1\nb: !x [1]\nc: ! d\n", "FLOW1013 1:4", "FLOW1013 2:4", "FLOW1013 3:4"],
    ["an expression cut by a comment", "a: ${{ x # y }}\n", "FLOW1014 1:4"],
    ["an expression in [ ]", "a: [b, ${{ x }}]\n", "FLOW1014 1:8"],
    [
      "expressions in { }",
      "a: {b: ${{ x }}, c: ${{ y }}}\nd: 1\nd: 2\n",
      "FLOW1014 1:8",
      "FLOW1014 1:21",
      "FLOW1011 3:1",
    ],
    ["an expression without its $", "a: {{ x }}\n", "FLOW1014 1:4"],
    ["single quote never closed", "a: 'x\nb: 2\n", "FLOW1006 1:4"],
    ["single quote closed by accident", "a: 'x''", "FLOW1006 1:4"],
    ["double quote never closed", 'a: 1\nb: "x\\"', "FLOW1006 2:4"],
    ["a bracket never closed", "a: [1, 2\nb: 3\n", "FLOW1006 1:4"],
    ["a bracket closed by a brace", "{ a: [b }\n", "FLOW1006 1:6"],
    ["a bracket never opened", "a: ]\n", "FLOW1006 1:4"],
    ["a colon in an unquoted value", "a: b: c\n", "FLOW1006 1:4"],
    ["no space after the colon", "name:flow\nsteps: 1\n", "FLOW1006 1:1"],
    ["a line without a colon", "a: 1\nfoo\nb: 2\n", "FLOW1006 2:1"],
    ["a dedent to nowhere", "a:\n    b: 1\n  c: 2\n", "FLOW1006 3:1"],
    ["text after a quote", "if: 'a' == inputs.b\n", "FLOW1006 1:9"],
    ["a list on the line of its key", "a: - b\n", "FLOW1006 1:4"],
    ["a value that begins with @", "a: @b\n", "FLOW1006 1:4"],
    ["an unknown escape", 'a: "\\d"\n', "FLOW1006 1:5"],
    ["two mistakes on two lines", "a: @b\nc: `d`\n", "FLOW1006 1:4", "FLOW1006 2:4"],
  ];
  test.each(rows)("%s", (_what, text, ...expected) => {
    expect(refusals(text).map(brief)).toEqual(expected);
  });
});

describe("what a refusal says:", () => {
  const rows: [text: string, message: string, suggestion: string][] = [
    [
      "if: !cancelled()\n",
      "YAML reads `!cancelled()` as a tag",
      'Write `${{ !cancelled() }}`, or put the condition in quotes: "!cancelled()".',
    ],
    [
      'if: !contains(a, "b")\n',
      "as a tag",
      `Write \`\${{ !contains(a, "b") }}\`, or put the condition in quotes: '!contains(a, "b")'.`,
    ],
    ["a: [${{ x }}]\n", "inside [ ] and { }", 'Write "${{ x }}".'],
    ["a: {{ x }}\n", "is written `${{ … }}`", 'Write "${{ x }}".'],
    ["a: ${{ x # y }}\n", "begins a comment", 'Put the value in quotes: "${{ x # y }}".'],
    ["name:flow\nsteps: 1\n", "a space is missing after `name:`", "Write `name: flow`."],
    ["on: 1\n2: b\n", "the key `2` is a number", 'Put it in quotes: "2".'],
    ["\ta: 1\n", "a tab is used for indentation", "Replace the tab by spaces."],
    ["a: b: c\n", "this value holds `: `", "Put the value in quotes, or begin the inner mapping on a new line."],
    ["a: 1e400\n", "`1e400` is too large", "Put it in quotes if it is text."],
  ];
  test.each(rows)("%j", (text, message, suggestion) => {
    const [first] = refusals(text);
    expect(first?.message).toContain(message);
    expect(first?.suggestion).toBe(suggestion);
  });

  test("a key that stands twice points at the first", () => {
    const [twice] = refusals("a: 1\nb: 2\na: 3\n");
    expect(twice?.related?.[0]?.at).toMatchObject({ line: 1, column: 1, endColumn: 2 });
  });

  test("problems come in the order of the file and stop at 1,000", () => {
    const flood = refusals("a: @b\n".repeat(5000));
    expect(flood).toHaveLength(1000);
    expect(flood.map(({ at }) => at.line)).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1));
  });
});

describe("a file is read as YAML 1.2:", () => {
  const rows: [what: string, text: string, value: unknown][] = [
    ["an empty file is null (yaml-40)", "", null],
    ["comments only are null (yaml-40)", "# a\n\n# b\n", null],
    [
      "words of YAML 1.1 are text (yaml-43)",
      "on: yes\nno: off\nt: 1:30\ny: n\n",
      { on: "yes", no: "off", t: "1:30", y: "n" },
    ],
    ["numbers", "[0o17, 0x1F, 017, 1e3, -0, .5, 1_000]", [15, 31, 17, 1000, 0, 0.5, "1_000"]],
    ["null and booleans", "[~, null, , true, False]".replace(" ,", ""), [null, null, true, false]],
    ["a key without a value", "a:\nb: { c }\n", { a: null, b: { c: null } }],
    [
      "an expression in block style",
      "a: ${{ x }}\nb: ${{ y }} and ${{ z }} # ok\n",
      { a: "${{ x }}", b: "${{ y }} and ${{ z }}" },
    ],
    ["a quoted expression in [ ]", "a: [\"${{ x }}\", '${{ y }}']", { a: ["${{ x }}", "${{ y }}"] }],
    ["`#` inside a quoted expression part is cut only outside quotes", "a: ${{ b }}#c\n", { a: "${{ b }}#c" }],
    ["anchors and aliases", "a: &x [1]\nb: *x\nc: { d: *x }\n", { a: [1], b: [1], c: { d: [1] } }],
    ["an anchor named again", "a: &x 1\nb: &x 2\nc: *x\n", { a: 1, b: 2, c: 2 }],
    ["document markers around one document", "---\na: 1\n...\n", { a: 1 }],
    ["CRLF", "a: |\r\n  b\r\n  c\r\nd: 1\r\n", { a: "b\nc\n", d: 1 }],
    ["U+2028 in a value", "a: x\u2028y\n", { a: "x\u2028y" }],
    ["escapes in double quotes", '"a\\n\\u0041\\U0001F600\\ud83d\\ude00\\0"', "a\nA😀😀\0"],
    [
      "names that objects inherit",
      "constructor: 1\ntoString: { hasOwnProperty: 2 }\n",
      { constructor: 1, toString: { hasOwnProperty: 2 } },
    ],
    ["a key that only looks like a number in quotes", '"1": a\n', { "1": "a" }],
    ["64 nested lists", `${"[".repeat(64)}1${"]".repeat(64)}`, JSON.parse(`${"[".repeat(64)}1${"]".repeat(64)}`)],
  ];
  test.each(rows)("%s", (_what, text, value) => {
    expect(json(text)).toEqual(value);
  });

  test("a byte order mark changes nothing (yaml-34)", () => {
    const text = "name: x\nsteps: { a: 1 }\n";
    const [plain, marked] = [read(text), read(`\ufeff${text}`)];
    expect(marked.text).toBe(text);
    expect(marked.root).toEqual(plain.root);
  });
});

describe("places:", () => {
  const text = "a: 'x y' # c\nlist:\n  - {k: v}\n  - |\n    one\n    two\n\nend: 1\n";
  const document = read(text);

  test("every key and value covers its own text", () => {
    const at = (...path: (string | number)[]): string => {
      const found = nodeAt(document.root, path);
      return found === undefined ? "nothing" : covered(text, found.node.at);
    };
    expect(at("a")).toBe("'x y'");
    expect(at("list", 0)).toBe("{k: v}");
    expect(at("list", "0", "k")).toBe("v");
    expect(at("list", 1)).toBe("|\n    one\n    two");
    expect(at("end")).toBe("1");
    expect(at("list")).toBe("- {k: v}");
    expect(at()).toBe("a: 'x y' # c");
    expect(at("list", 7)).toBe("nothing");
    expect(at("end", "x")).toBe("nothing");
    const key = nodeAt(document.root, ["list"])?.keyAt;
    expect(key === undefined ? undefined : covered(text, key)).toBe("list");
  });

  test("a value that is absent stands behind its key", () => {
    const { root } = read("a:\nb: 1\n");
    expect(nodeAt(root, ["a"])?.node.at).toEqual({ file: "flow.yaml", line: 1, column: 3, endLine: 1, endColumn: 3 });
  });

  test("entry finds keys of small and large maps, and no inherited ones", () => {
    const large = Array.from({ length: 100 }, (_, index) => `k${index}: ${index}\n`).join("");
    for (const map of [read("k7: 7\n").root, read(large).root]) {
      if (map.kind !== "map") throw new Error("not a map");
      expect(entry(map, "k7")?.value).toMatchObject({ value: 7 });
      expect(entry(map, "constructor")).toBeUndefined();
    }
  });
});

test("toJson keeps a key named __proto__ as an own key", () => {
  const at = { file: "x", line: 1, column: 1, endLine: 1, endColumn: 1 };
  const value = { kind: "scalar", value: 1, style: "plain", at, from: 0, to: 0 } as const;
  const made = toJson({ kind: "map", at, entries: [{ key: "__proto__", keyAt: at, value }] });
  expect(JSON.stringify(made)).toBe('{"__proto__":1}');
  expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
});

test("a file over 8 MiB is refused before it is looked at (yaml-22, yaml-25)", () => {
  const parsed = parseSource(new Uint8Array(8 * 1024 * 1024 + 1), "big.yaml");
  expect(parsed.ok ? [] : parsed.error.map(brief)).toEqual(["FLOW1003 1:1"]);
  expect(parseSource(bytes("a: 1"), "a").ok).toBe(true);
});
