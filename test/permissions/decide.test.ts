import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Judge, Verdict } from "../../src/model/ports.ts";
import { type AgentRights, type Block, intersect } from "../../src/permissions/index.ts";
import { decide } from "../../src/permissions/decide.ts";
import { covers, mayCover, star, one, symbolsOf, unknown, wildcardsOf } from "../../src/permissions/pattern.ts";
import type { Decision, Rule } from "../../src/permissions/rule.ts";
import { permissionsOf } from "./rights.ts";

/** What `*` and `?` mean, said by the machine's own regular expressions. */
function asRegExp(pattern: string): RegExp {
  const text = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`^${text}$`, "u");
}

const letters = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), maxLength: 8 });
const plain = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 10 });
const decision = fc.constantFrom<Decision>("allow", "ask", "deny");

/** A tenth of what `FLOW_TORTURE` asks for. */
const trees = process.env["FLOW_TORTURE"] === undefined ? 1_000 : 10_000;

describe("wildcards", () => {
  it("mean what a regular expression says", () => {
    fc.assert(
      fc.property(letters, plain, (pattern, text) => {
        expect(covers(wildcardsOf(pattern), symbolsOf(text))).toBe(asRegExp(pattern).test(text));
      }),
      { numRuns: 5_000 },
    );
  });

  it("cover an unknown piece only when they cover everything it can be, and never miss what it may be", () => {
    fc.assert(
      fc.property(letters, plain, plain, plain, (pattern, before, value, after) => {
        const symbols = wildcardsOf(pattern);
        const text = [...symbolsOf(before), unknown, ...symbolsOf(after)];
        const holds = asRegExp(pattern).test(before + value + after);
        if (covers(symbols, text)) expect(holds).toBe(true);
        if (holds) expect(mayCover(symbols, text)).toBe(true);
      }),
      { numRuns: 10_000 },
    );
  });

  it("are decided in linear steps", () => {
    const pattern = [...Array.from({ length: 2_000 }, () => [star, 97]).flat(), one, 98];
    const start = performance.now();
    expect(covers(pattern, symbolsOf("a".repeat(60_000)))).toBe(false);
    expect(performance.now() - start).toBeLessThan(1_000);
  });
});

describe("the last rule that holds", () => {
  const rule = fc.record({ pattern: letters, decision, final: fc.boolean() });

  it("decides, but for final denials, in 10,000 random lists", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 8 }), plain, (written, text) => {
        const rules: Rule[] = [
          { decision: "ask", text: "*", layer: "default", concerns: () => true, final: false },
          ...written.map(({ pattern, decision: said, final }): Rule => {
            const patterns = [wildcardsOf(pattern)];
            const isFinal = final && said === "deny";
            return { decision: said, text: pattern, layer: "workflow", concerns: () => true, patterns, final: isFinal };
          }),
        ];
        const holding = rules.filter((it) => it.patterns === undefined || asRegExp(it.text).test(text));
        const expected = holding.some((it) => it.final) ? "deny" : holding.at(-1)?.decision;
        expect(decide(rules, { tool: "Bash", text: symbolsOf(text), readings: [] }).decision).toBe(expected);
      }),
      { numRuns: 10_000 },
    );
  });
});

describe("a child", () => {
  const weight = { allow: 0, ask: 1, deny: 2 } as const;
  const subject = fc.constantFrom("git push", "git log", "rm x", "npm test");
  const ruleText = fc.constantFrom("Bash", "Bash(git *)", "Bash(git push)", "Bash(rm *)", "*", "Write", "Read(src/*)");
  const block = fc.record({
    layer: fc.constantFrom<Block["layer"]>("workflow", "agent", "step", "user"),
    allow: fc.array(ruleText, { maxLength: 3 }),
    ask: fc.array(ruleText, { maxLength: 2 }),
    deny: fc.array(ruleText, { maxLength: 2 }),
  });
  interface Written {
    readonly layer: Block["layer"];
    readonly allow: string[];
    readonly ask: string[];
    readonly deny: string[];
  }
  const asBlock = ({ layer, ...lists }: Written): Block => ({ layer, permissions: lists });
  /** Each member but the first is a child of one before it. */
  const tree = fc.array(fc.record({ blocks: fc.array(block, { maxLength: 2 }), parent: fc.nat(3) }), {
    minLength: 2,
    maxLength: 4,
  });

  it(`never has more rights than its parent, in ${trees} random trees`, { timeout: 120_000 }, async () => {
    const made = permissionsOf();
    if (!made.ok) throw new Error(made.error);
    const permissions = made.value;
    await fc.assert(
      fc.asyncProperty(tree, subject, async (members, command) => {
        const call = { tool: "Bash", args: { command } };
        const family: AgentRights[] = [];
        for (const { blocks, parent: index } of members) {
          const parent = family[Math.min(index, family.length - 1)];
          const rights = permissions.forAgent(blocks.map(asBlock), parent);
          family.push(rights);
          if (parent === undefined) continue;
          const [outer, inner] = [(await parent.judge(call)).decision, (await rights.judge(call)).decision];
          expect(weight[inner]).toBeGreaterThanOrEqual(weight[outer]);
          for (const tool of ["Bash", "Write"])
            expect(weight[rights.reach(tool)]).toBeGreaterThanOrEqual(weight[parent.reach(tool)]);
          if (!parent.mayRead("src/a")) expect(rights.mayRead("src/a")).toBe(false);
        }
      }),
      { numRuns: trees },
    );
  });

  it("keeps the reason of whoever is stricter", async () => {
    const saying = (said: Decision, text: string): Judge => {
      const verdict: Verdict = { decision: said, rule: { text, layer: "workflow" }, toAllow: [] };
      return () => Promise.resolve(verdict);
    };
    const call = { tool: "Bash", args: {} };
    expect((await intersect(saying("deny", "outer"), saying("allow", "inner"))(call)).rule.text).toBe("outer");
    expect((await intersect(saying("allow", "outer"), saying("ask", "inner"))(call)).rule.text).toBe("inner");
  });
});
