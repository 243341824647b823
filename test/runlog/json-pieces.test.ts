import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/model/json.ts";
import { inlineBytes } from "../../src/runlog/fields.ts";
import { holdsLongText, jsonPieces } from "../../src/runlog/json-pieces.ts";

describe("JSON in pieces", () => {
  /** Texts whose cuts fall on every kind of character: control, quoted, of two halves, and halves alone. */
  const long = fc
    .tuple(fc.nat(3), fc.constantFrom("\0", '"\\', "é", "😀", "\ud83d", "\ude00", "\ud83dx", "a😀"), fc.nat(2))
    .map(([shift, unit, times]) => "x".repeat(shift) + unit.repeat((times * inlineBytes) / unit.length + 3));
  const value = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      long,
      fc.jsonValue() as fc.Arbitrary<Json>,
      fc.dictionary(fc.oneof(fc.string(), fc.constant("__proto__")), fc.oneof(long, tie("value")), { maxKeys: 4 }),
    ),
  })).value;

  it("is what JSON.stringify gives", () => {
    fc.assert(
      fc.property(value, (it) => {
        expect([...jsonPieces(it)].join("") === JSON.stringify(it)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("never holds much of a long text at once", () => {
    const streams = { stdout: "\0".repeat(1024 * 1024), stderr: "\0".repeat(1024 * 1024), "exit-code": 0 };
    expect(holdsLongText(streams)).toBe(true);
    expect(Math.max(...[...jsonPieces(streams)].map((piece) => piece.length))).toBe(6 * inlineBytes);
  });
});
