import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromForeignSchema } from "../../src/jsonschema/foreign-schema.ts";
import { Lines } from "../../src/mcp/lines.ts";
import { nameTools, prefixOf } from "../../src/mcp/names.ts";
import { changeOf, pinOf, readPins, writePins } from "../../src/mcp/pin.ts";
import { specOf, type SpecSource } from "../../src/mcp/spec.ts";
import { isNamed } from "../../src/mcp/tools.ts";

describe("the lines of a stream", () => {
  it("are the same however it is cut", () => {
    const cuts = fc.array(fc.nat(9), { maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme" }).map((text) => text.replaceAll(/[\r\n]/g, ""))),
        cuts,
        (texts, sizes) => {
          const heard: string[] = [];
          const lines = new Lines(
            10_000,
            (line) => heard.push(line),
            () => heard.push("too long"),
          );
          let rest = Buffer.from(texts.map((text) => `${text}\n`).join(""));
          for (const size of sizes) {
            lines.add(rest.subarray(0, size));
            rest = rest.subarray(size);
          }
          lines.add(rest);
          expect(heard).toEqual(texts);
        },
      ),
    );
  });

  it("end at one that is too long, which is told once", () => {
    const heard: string[] = [];
    const lines = new Lines(
      5,
      (line) => heard.push(line),
      () => heard.push("too long"),
    );
    for (const chunk of ["12345\n", "123", "456", "7\nab\n"]) lines.add(Buffer.from(chunk));
    expect(heard).toEqual(["12345", "too long"]);
  });
});

describe("names of tools", () => {
  it("are taken by every provider, each is another's, and none is lost", () => {
    const servers = fc.constantFrom("a", "files", "my_server-2");
    fc.assert(
      fc.property(
        servers,
        fc.uniqueArray(fc.string({ minLength: 1, maxLength: 120 }), { maxLength: 20 }),
        (server, tools) => {
          const names = [...nameTools(server, tools).names.values()];
          expect(new Set(names).size).toBe(tools.length);
          for (const name of names) {
            expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
            expect(name.startsWith(prefixOf(server))).toBe(true);
          }
        },
      ),
    );
  });

  it("that would be one are told", () => {
    const { names, notes } = nameTools("s", ["a.b", "a_b", "a_b"]);
    expect([...names.values()]).toEqual(["mcp__s__a_b", expect.stringMatching(/^mcp__s__a_b_[0-9a-f]{6}$/)]);
    expect(notes).toEqual([
      expect.stringContaining("`a.b` and `a_b`"),
      expect.stringContaining("the second is left out"),
    ]);
  });

  it.each([
    [["mcp__s__a"], true],
    [["mcp__s"], true],
    [["mcp__s__*"], true],
    [["mcp__s__ab", "mcp__", "mcp__*", "Read"], false],
  ])("%j names mcp__s__a: %s", (list, isIt) => expect(isNamed("mcp__s__a", "s", list)).toBe(isIt));
});

describe("pins", () => {
  const tool = (name: string, digest: string): Parameters<typeof pinOf>[0][number] => ({
    name,
    digest,
    description: "",
    parameters: {},
    readOnly: false,
  });

  it("are the same after they were written and read", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.dictionary(fc.string(), fc.stringMatching(/^[0-9a-f]{32}$/))),
        (servers) => {
          const pins = new Map(Object.entries(servers).map(([key, pin]) => [key, new Map(Object.entries(pin))]));
          expect(readPins(writePins(pins))).toEqual({ ok: true, value: pins });
        },
      ),
    );
  });

  it("say what was added, removed and changed", () => {
    const before = pinOf([tool("a", "1"), tool("b", "1"), tool("c", "1")]);
    expect(changeOf(before, before)).toBeUndefined();
    expect(changeOf(before, pinOf([tool("b", "2"), tool("c", "1"), tool("d", "1")]))).toBe(
      "added `d`; removed `a`; changed `b`",
    );
  });

  it.each(["", "[]", '{"version":2,"mcp":{}}', '{"version":1}', '{"version":1,"mcp":{"a":{}}}'])(
    "are not read from %s",
    (text) => {
      expect(readPins(text).ok).toBe(false);
    },
  );
});

describe("a definition with its values filled in", () => {
  const source = (definition: SpecSource["definition"], more: Partial<SpecSource> = {}): SpecSource => ({
    name: "it",
    definition,
    cwd: "/work",
    inherited: { PATH: "/bin", TOKEN: "inherited" },
    around: {},
    step: {},
    ...more,
  });

  it("is a program with arguments, whose environment the step outweighs", () => {
    const definition = { command: "x", args: ["a b", 1], cwd: "sub", env: { TOKEN: "defined", A: 1 } };
    const spec = specOf(source(definition, { around: { TOKEN: "around", B: "around" }, step: { A: "step" } }));
    const env = { PATH: "/bin", TOKEN: "defined", A: "step", B: "around" };
    expect(spec.ok && spec.value.address).toEqual({ kind: "stdio", argv: ["x", "a b", "1"], cwd: "/work/sub", env });
  });

  it("has ${VAR} and ${VAR:-default} of the environment where another program's file defines it, and nowhere else", () => {
    const definition = { command: "${A}", args: ["${B:-b}", "${C:-}x", "$A", "${A}${A}"] };
    const filled = specOf(source(definition, { variables: { A: "${B}", B: "" } }));
    expect(filled.ok && filled.value.address).toMatchObject({ argv: ["${B}", "b", "x", "$A", "${B}${B}"] });
    const plain = specOf(source(definition));
    expect(plain.ok && plain.value.address).toMatchObject({ argv: ["${A}", "${B:-b}", "${C:-}x", "$A", "${A}${A}"] });
  });

  it.each([
    [{ command: "${NOPE}", args: ["${constructor}"] }, "NOPE, constructor"],
    [{ url: "ftp://x" }, "no http or https address"],
    [{ url: "http://x", headers: { A: "b\nc: d" } }, "cannot be sent"],
    [{ command: "x", args: ["a\0"] }, "NUL"],
  ])("cannot be %j", (definition, why) => {
    const spec = specOf(source(definition, { variables: {} }));
    expect(spec.ok ? "" : spec.error).toContain(why);
  });

  it("keeps its own time for calls", () => {
    expect(specOf(source({ url: "http://x", timeout: "3s", type: "sse" }))).toMatchObject({
      ok: true,
      value: { callTime: 3000, address: { kind: "sse" } },
    });
  });
});

describe("a schema of another draft", () => {
  it.each([
    [{ $schema: "http://json-schema.org/draft-07/schema#", type: "object" }, { type: "object" }],
    [
      { items: [{ type: "string" }], additionalItems: false },
      { prefixItems: [{ type: "string" }], items: false },
    ],
    [
      { dependencies: { a: ["b"], c: { required: ["d"] } } },
      { dependentRequired: { a: ["b"] }, dependentSchemas: { c: { required: ["d"] } } },
    ],
    [
      { properties: { format: { type: "string", format: "color", "x-order": 1 } } },
      { properties: { format: { type: "string" } } },
    ],
    [
      { enum: [{ $schema: 1 }], default: { $id: 2 } },
      { enum: [{ $schema: 1 }], default: { $id: 2 } },
    ],
  ])("%j is one of ours", (theirs, ours) => expect(fromForeignSchema(theirs)).toEqual(ours));

  it.each([{ type: "objekt" }, { $ref: "https://example.com/x" }, "no", null])("%j is none", (theirs) =>
    expect(fromForeignSchema(theirs)).toBeUndefined(),
  );
});
