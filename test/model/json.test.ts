import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isDeeperThan, parseJson } from "../../src/model/json.ts";

describe("JSON text", () => {
  it.each(["9007199254740993", "-9007199254740992", '{"a":[{"b":123456789012345678901}]}', "1e400", '["\\\\",1E+999]'])(
    "is refused where a number would become another one: %s",
    (text) => {
      const read = parseJson(text);
      expect(read).toMatchObject({ ok: false, error: { isJson: true } });
      expect(read.ok ? "" : read.error.message).toContain("too large to be kept exactly");
    },
  );

  it.each([
    "9007199254740991",
    "0.1234567890123456789",
    "1e30",
    '"9007199254740993"',
    '{"9007199254740993":"1e400 \\" 1e400"}',
  ])("is taken where no number changes: %s", (text) => {
    expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  it("is what JSON.parse makes of it, for every value without such numbers", () => {
    const value = fc.jsonValue({ maxDepth: 5 }).filter((json) => numbersIn(json).every(isPlain));
    fc.assert(
      fc.property(value, (json) => {
        const text = JSON.stringify(json);
        expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) });
      }),
    );
  });

  it("is refused when it is nested too deep to be walked, and tells text from JSON", () => {
    const deep = "[".repeat(50_000) + "]".repeat(50_000);
    expect(parseJson(deep)).toMatchObject({ ok: false, error: { isJson: true } });
    expect(parseJson("[1")).toMatchObject({ ok: false, error: { isJson: false } });
    expect(isDeeperThan('["[[[[", {"a": []}]', 3)).toBe(false);
    expect(isDeeperThan('["[[[[", {"a": []}]', 2)).toBe(true);
  });
});

function numbersIn(json: unknown): number[] {
  if (typeof json === "number") return [json];
  return typeof json === "object" && json !== null ? Object.values(json).flatMap(numbersIn) : [];
}

/** A whole number that is written in digits alone is kept only where all of them count. */
function isPlain(value: number): boolean {
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(String(value));
}
