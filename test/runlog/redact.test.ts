import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMask } from "../../src/runlog/redact.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const encodings: { readonly [name: string]: (text: string) => string } = {
  plain: (text) => text,
  "JSON once": (text) => JSON.stringify(text).slice(1, -1),
  "JSON twice": (text) => JSON.stringify(JSON.stringify(text)).slice(3, -3),
  "JSON as Python writes it": (text) =>
    JSON.stringify(text)
      .replace(/[^\0-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .slice(1, -1),
  "URL component": encodeURIComponent,
  "URL form": (text) => new URLSearchParams({ a: text }).toString().slice(2),
  "URL in lower case": (text) => encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase()),
  base64,
  "base64 without padding": (text) => base64(text).replace(/=+$/, ""),
  base64url: (text) => Buffer.from(text).toString("base64url"),
  hex: (text) => Buffer.from(text).toString("hex"),
  HEX: (text) => Buffer.from(text).toString("hex").toUpperCase(),
  HTML: (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
};

/** No letter, digit or sign of these is in the text around, so that what is left of a secret shows. */
const secretText = fc
  .string({ unit: fc.constantFrom(..."QXZJ0258 \"'\\/+&<>?=\n\t%é修".split("")), minLength: 8, maxLength: 60 })
  .filter((text) => text.trim().length >= 8 && text.trim() === text && !/^[\s"'\\&<>?=%+/]*$/.test(text));
const around = fc.string({ unit: fc.constantFrom(..."abc,.-".split("")), maxLength: 30 });

describe("a mask", () => {
  for (const [name, encode] of Object.entries(encodings))
    it(`leaves nothing of a secret anywhere in a text: ${name}`, () => {
      fc.assert(
        fc.property(secretText, around, around, (value, before, after) => {
          const { mask } = createMask([{ name: "S", value }]);
          expect(mask(before + encode(value) + after)).toBe(`${before}***${after}`);
        }),
        { numRuns: 300 },
      );
    });

  it("finds a secret in base64 of a longer text, wherever it begins", () => {
    const value = "the-secret-value-0123456789";
    const { mask } = createMask([{ name: "S", value }]);
    for (const before of ["", "a", "ab", "user:", "Basic "])
      for (const after of ["", "x", "xy", "xyz"]) {
        const masked = mask(base64(before + value + after));
        expect(masked).toContain("***");
        // At most the characters that hold bits of a neighbour are left.
        const left = masked.replace(/\*+/, "").length;
        expect(left).toBeLessThanOrEqual(Math.ceil(((before.length + after.length) * 8) / 6) + 6);
        const bytes = Buffer.from(value);
        for (let at = 0; at + 3 <= bytes.length; at++)
          expect(Buffer.from(masked.split("***")[0] ?? "", "base64").includes(bytes.subarray(at, at + 3))).toBe(false);
      }
  });

  it("hides each line of a secret of several lines, and the strings inside a JSON one", () => {
    const pem = "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkq\r\nshort\r\n-----END KEY-----\r\n";
    const account = JSON.stringify({ type: "svc", private_key: pem, nested: [{ token: "tok-123456789" }] });
    const { mask } = createMask([{ name: "ACCOUNT", value: account }]);
    expect(mask(account)).toBe("***");
    expect(mask("x MIIEvQIBADANBgkq y tok-123456789 z short svc")).toBe("x *** y *** z short svc");
    expect(mask(pem)).not.toContain("MIIE");
  });

  it("prefers the longest secret where several begin", () => {
    const { mask } = createMask([
      { name: "A", value: "abcd" },
      { name: "B", value: "abcdefgh" },
    ]);
    expect(mask("abcdefgh abcdx")).toBe("*** ***x");
  });

  it("ignores secrets under four characters with a warning, and gives back the same text when nothing is found", () => {
    const { mask, warnings } = createMask([
      { name: "SHORT", value: "abc" },
      { name: "BLANK", value: "     " },
      { name: "UNSET", value: "" },
    ]);
    expect(warnings).toEqual([
      "secret SHORT has fewer than 4 characters and is not masked",
      "secret BLANK has fewer than 4 characters and is not masked",
    ]);
    expect(mask("abc and      more")).toBe("abc and      more");
  });

  it("stays quick on text made to resemble the secret", () => {
    const { mask } = createMask([{ name: "S", value: `${"a".repeat(2000)}b` }]);
    const text = "a".repeat(200_000);
    const start = performance.now();
    expect(mask(text)).toBe(text);
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

describe("a mask for text in pieces", () => {
  const secrets = [
    { name: "A", value: 'pass "word" & more' },
    { name: "B", value: "word" },
    { name: "C", value: "aabaabaac" },
  ];

  it("gives what the mask of the whole gives, cut at every place", () => {
    const { mask, stream } = createMask(secrets);
    for (const { value } of secrets)
      for (const [name, encode] of Object.entries(encodings)) {
        const text = `aabaab before ${encode(value)} after ${encode(value)}`;
        for (let at = 0; at <= text.length; at++) {
          const masked = stream();
          expect(masked.push(text.slice(0, at)) + masked.push(text.slice(at)) + masked.end(), name).toBe(mask(text));
        }
      }
  });

  it("gives what the mask of the whole gives, in any pieces", () => {
    const { mask, stream } = createMask(secrets);
    const piece = fc.oneof(
      fc.constantFrom(...secrets.map(({ value }) => value), "aab", "wor", "d", 'pass "', "c"),
      fc.string({ unit: fc.constantFrom(..."abcword ".split("")), maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const masked = stream();
        expect(pieces.map((text) => masked.push(text)).join("") + masked.end()).toBe(mask(pieces.join("")));
      }),
      { numRuns: 2000 },
    );
  });

  it("holds nothing back that cannot become a secret", () => {
    const masked = createMask(secrets).stream();
    expect(masked.push("hello")).toBe("hello");
    expect(masked.push(" wo")).toBe(" ");
    expect(masked.push("n")).toBe("won");
    expect(masked.end()).toBe("");
  });
});
