import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../../src/model/json.ts";
import { toJson } from "../../src/source/document.ts";
import { parseFrontMatter } from "../../src/source/front-matter.ts";
import { parseSource } from "../../src/source/parse.ts";
import { brief, bytes, read, refusals } from "./reading.ts";

const workflow = `# a comment
name: review-change
inputs:
  base: { type: string, default: main }
  depth: { type: string, enum: [quick, "deep"] }
limits: { cost: 2.00, tokens: 400000, duration: 30m }
steps:
  diff: &diff
    run: |
      git diff "$BASE"...HEAD
      echo 'done'
    env: { BASE: "\${{ inputs.base }}" }
  style:
    agent: style-reviewer
    if: inputs.depth == 'deep'
    with: { diff: '\${{ steps.diff.outputs.stdout }}' }
    prompt: >-
      Folded text
      with \${{ steps.diff.outputs }}

      and "quotes"
  again: *diff
outputs:
  approve: \${{ steps.verdict.outputs.approve }}
`;
const agent = `---\nname: x\ndescription: Use when: asked\ntools: [Read, "Grep"]\n---\n\nYou review.\n`;

/** Byte-level damage: a flip, a slice written twice, a slice removed, or a token of YAML put in. */
const damage = fc.oneof(
  fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) }),
  fc.record({ at: fc.nat(), length: fc.integer({ min: 1, max: 80 }), times: fc.constantFrom(0, 2, 3, 40) }),
  fc.record({
    at: fc.nat(),
    token: fc.constantFrom(
      ..."& * ! | > ' \" % @ ` [ ] { } , : - ? # --- ... << &diff *diff ${{ }} __proto__: \t \r \n \\ \u2028 \ufeff".split(
        " ",
      ),
      " #",
      "\n  ",
      "? ",
      ": ",
      "- ",
    ),
  }),
);

function apply(
  source: Uint8Array,
  all: readonly (typeof damage extends fc.Arbitrary<infer D> ? D : never)[],
): Uint8Array {
  let result = Buffer.from(source);
  for (const one of all) {
    const at = one.at % (result.length + 1);
    if ("byte" in one) result.fill(one.byte, at, Math.min(at + 1, result.length));
    else if ("token" in one) result = Buffer.concat([result.subarray(0, at), bytes(one.token), result.subarray(at)]);
    else {
      const slice = result.subarray(at, at + one.length);
      const copies = Array.from({ length: one.times }, () => slice);
      result = Buffer.concat([result.subarray(0, at), ...copies, result.subarray(at + one.length)]);
    }
  }
  return result;
}

const runs = process.env["FLOW_TORTURE"] === undefined ? 2_500 : 50_000;

describe("a damaged file is read or refused, in less than a second:", () => {
  const readers: [what: string, source: string, parse: (damaged: Uint8Array) => Json | readonly string[]][] = [
    [
      "workflow",
      workflow,
      (damaged) => {
        const parsed = parseSource(damaged, "flow.yaml");
        return parsed.ok ? toJson(parsed.value.root) : parsed.error.map(brief);
      },
    ],
    [
      "agent",
      agent,
      (damaged) => {
        const parsed = parseFrontMatter(damaged, "agent.md");
        return parsed.ok ? toJson(parsed.value.document.root) : parsed.error.map(brief);
      },
    ],
  ];
  test.each(readers)(
    "%s",
    (_what, source, parse) => {
      const before = Object.getOwnPropertyNames(Object.prototype);
      const whole = bytes(source);
      fc.assert(
        fc.property(fc.array(damage, { minLength: 1, maxLength: 6 }), (all) => {
          const damaged = apply(whole, all);
          const start = performance.now();
          const result = parse(damaged);
          expect(performance.now() - start).toBeLessThan(1000);
          // Whatever was read is JSON; whatever was refused has a place.
          expect(isJson(result)).toBe(true);
        }),
        { numRuns: runs },
      );
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    },
    600_000,
  );
});

/** Said of the value itself: V8's `JSON.parse` takes `"a\\"` for `"a\""` where it has read the first one often. */
function isJson(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isJson);
  if (typeof value === "object" && value !== null)
    return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isJson);
  return value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
}

function milliseconds(work: () => unknown): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

describe("documents made to exhaust the reader end at once:", () => {
  const laughs = Array.from({ length: 9 }, (_, level) => {
    const one = level === 0 ? "lol" : `*l${level - 1}`;
    return `l${level}: &l${level} [${Array.from({ length: 9 }, () => one).join(", ")}]`;
  }).join("\n");
  const anchors = Array.from({ length: 5000 }, (_, index) => `a${index}: &x${index} 1`).join("\n");
  const chain = Array.from({ length: 40 }, (_, i) => (i === 0 ? `c0: &c0 [1]` : `c${i}: &c${i} [[*c${i - 1}]]`)).join(
    "\n",
  );
  const deepMaps = Array.from({ length: 1500 }, (_, level) => `${" ".repeat(level)}a:\n`).join("");
  const rows: [what: string, text: string, code: string][] = [
    ["billion laughs (yaml-16)", laughs, "FLOW1009"],
    ["5,000 anchors (yaml-17)", anchors, "FLOW1009"],
    ["101 aliases of one anchor", `a: &x 1\nb: [${"*x, ".repeat(101)}]`, "FLOW1009"],
    ["depth hidden in aliases", chain, "FLOW1010"],
    ["400 nested explicit keys (yaml-20)", `${"? ".repeat(400)}x`, "FLOW1010"],
    ["mappings 1,500 deep (yaml-22)", deepMaps, "FLOW1010"],
    ["100,000 open brackets", "[".repeat(100_000), "FLOW1010"],
    ["100,000 closing brackets", "]".repeat(100_000), "FLOW1006"],
    ["a list of 2,000 lists on one line (yaml-23)", "- ".repeat(2000), "FLOW1010"],
    ["100,000 documents", "--- a\n".repeat(100_000), "FLOW1008"],
    ["20,000 expressions in [ ]", `a: [${"${{ x }}, ".repeat(20_000)}]`, "FLOW1014"],
    ["200 KiB of quotes", `a: ${'"\\'.repeat(100_000)}`, "FLOW1006"],
    ["100,001 entries", Array.from({ length: 100_001 }, (_, index) => `k${index}: 1`).join("\n"), "FLOW1015"],
  ];
  test.each(rows)("%s", (_what, text, code) => {
    let found: readonly { readonly code: string }[] = [];
    expect(milliseconds(() => (found = refusals(text)))).toBeLessThan(10_000);
    expect(found[0]?.code).toBe(code);
  });
});

test("mappings of 20,000 and 100,000 keys are read in linear time", () => {
  const keys = (count: number): string => Array.from({ length: count }, (_, index) => `key${index}: 1\n`).join("");
  const [small, large] = [keys(20_000), keys(100_000)];
  read(small);
  const once = milliseconds(() => read(small));
  expect(milliseconds(() => read(large))).toBeLessThan(once * 25 + 1000);
});

test("100 anchors and aliases are allowed", () => {
  expect(refusals(`a: &x 1\nb: [${"*x, ".repeat(99)}]`)).toEqual([]);
});

test("the reader leaves Error.stackTraceLimit as it was", () => {
  const before = Error.stackTraceLimit;
  refusals("a: @b");
  expect(Error.stackTraceLimit).toBe(before);
});
