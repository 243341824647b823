import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { textGraph } from "../../../src/render/graph/text.ts";
import { hostileTexts } from "./hostile.ts";
import { everything, planOf } from "./plans.ts";

describe("the text graph", () => {
  it("shows twelve steps with everything inside 60 columns", () => {
    expect(textGraph(everything)).toMatchInlineSnapshot(`
      "release  12 steps in 6 waves

      1   ┌ diff      run       git diff "$BASE"...HEAD
          ├ topics    set       list, max
          └ lint      run       npm run lint              may fail
                      cached
      2   ┌ research  agent     市场调研 · researcher
          │           × steps.topics.outputs.list (max 4)
          │           ← topics   retry ≤2 on rate_limit, timeout
          │           timeout 10m
          ├ security  agent     security-reviewer         ← diff
          │           when inputs.depth == 'deep'   ≤ $0.50
          └ style     agent     style-reviewer            ← diff
      3   ┌ polish    steps     3 steps
          │           ↻ ≤3 until steps.judge.outputs.score >= 8
          │           ← research
      3.1 │ ┌ draft   agent     writer
          │ └ facts   tool      WebFetch
      3.2 │   judge   agent     editor
          │           ← draft, facts
          └ verdict   agent     editor                    ← style
                      ⇐ lint (if inputs.strict)   ⇠ security
      4     ask       approve   Ship it?
                      ← polish, verdict
      5   ┌ publish   workflow  publish.yaml              ⇐ ask
          │           when inputs.publish
      5.1 │   tag     run       git tag v1
      5.2 │ ┌ push    run       git push                  ⇐ tag
          │ └ page    tool      Write                     ⇐ tag
          └ matrix    run       npm test
                      × 4 combinations   ⇐ ask   worktree
      6     notify    run       curl -d @- $URL …
                      ⇠ publish, matrix   when always()
                      any of its sources

      ┌ └ at once   ← uses its outputs   ⇐ needs
      ⇠ after, whatever its outcome   × once per item   ↻ repeats
      "
    `);
  });

  it("puts facts behind the summary where the terminal is wide", () => {
    expect(textGraph(everything, { width: 100 })).toMatchInlineSnapshot(`
      "release  12 steps in 6 waves

      1   ┌ diff      run       git diff "$BASE"...HEAD
          ├ topics    set       list, max
          └ lint      run       npm run lint              may fail   cached
      2   ┌ research  agent     市场调研 · researcher     × steps.topics.outputs.list (max 4)   ← topics
          │           retry ≤2 on rate_limit, timeout   timeout 10m
          ├ security  agent     security-reviewer         ← diff   when inputs.depth == 'deep'   ≤ $0.50
          └ style     agent     style-reviewer            ← diff
      3   ┌ polish    steps     3 steps                   ↻ ≤3 until steps.judge.outputs.score >= 8
          │           ← research
      3.1 │ ┌ draft   agent     writer
          │ └ facts   tool      WebFetch
      3.2 │   judge   agent     editor                    ← draft, facts
          └ verdict   agent     editor                    ← style   ⇐ lint (if inputs.strict)   ⇠ security
      4     ask       approve   Ship it?                  ← polish, verdict
      5   ┌ publish   workflow  publish.yaml              ⇐ ask   when inputs.publish
      5.1 │   tag     run       git tag v1
      5.2 │ ┌ push    run       git push                  ⇐ tag
          │ └ page    tool      Write                     ⇐ tag
          └ matrix    run       npm test                  × 4 combinations   ⇐ ask   worktree
      6     notify    run       curl -d @- $URL …         ⇠ publish, matrix   when always()
                      any of its sources

      ┌ └ at once   ← uses its outputs   ⇐ needs   ⇠ after, whatever its outcome   × once per item
      ↻ repeats
      "
    `);
  });

  it("shows a chain without a bracket", () => {
    const chain = planOf("chain", {
      a: { run: "make" },
      b: { run: "make test", uses: ["a"] },
      c: { run: "make push", uses: ["b"] },
    });
    expect(textGraph(chain)).toMatchInlineSnapshot(`
      "chain  3 steps in 3 waves

      1   a  run  make
      2   b  run  make test   ← a
      3   c  run  make push   ← b

      ← uses its outputs
      "
    `);
  });

  it("shows a diamond", () => {
    const diamond = planOf("diamond", {
      split: { set: ["parts"] },
      left: { agent: "l", uses: ["split"] },
      right: { agent: "r", uses: ["split"] },
      join: { agent: "j", uses: ["left", "right"] },
    });
    expect(textGraph(diamond)).toMatchInlineSnapshot(`
      "diamond  4 steps in 3 waves

      1   split  set    parts
      2 ┌ left   agent  l       ← split
        └ right  agent  r       ← split
      3   join   agent  j       ← left, right

      ┌ └ at once   ← uses its outputs
      "
    `);
  });

  it("names every source of a wide fan, on several lines", () => {
    const fan = Object.fromEntries(
      Array.from({ length: 10 }, (_, index) => [`worker-${index}`, { run: `work ${index}`, uses: ["start"] }]),
    );
    const wide = planOf("fan", { start: { run: "prepare" }, ...fan, merge: { run: "merge", needs: Object.keys(fan) } });
    expect(textGraph(wide)).toMatchInlineSnapshot(`
      "fan  12 steps in 3 waves

      1   start     run  prepare
      2 ┌ worker-0  run  work 0    ← start
        ├ worker-1  run  work 1    ← start
        ├ worker-2  run  work 2    ← start
        ├ worker-3  run  work 3    ← start
        ├ worker-4  run  work 4    ← start
        ├ worker-5  run  work 5    ← start
        ├ worker-6  run  work 6    ← start
        ├ worker-7  run  work 7    ← start
        ├ worker-8  run  work 8    ← start
        └ worker-9  run  work 9    ← start
      3   merge     run  merge
                    ⇐ worker-0, worker-1, worker-2, worker-3,
                      worker-4, worker-5, worker-6, worker-7,
                      worker-8, worker-9

      ┌ └ at once   ← uses its outputs   ⇐ needs
      "
    `);
  });

  it("tells conditions of edges from conditions of steps", () => {
    const routes = planOf("routes", {
      triage: { agent: "triage" },
      fix: { agent: "fixer", needs: [["triage", "steps.triage.outputs.kind == 'bug'"]] },
      answer: { agent: "writer", needs: [["triage", "steps.triage.outputs.kind == 'question'"]] },
      report: { run: "report", after: ["fix"], when: "failure('fix')" },
    });
    expect(textGraph(routes)).toMatchInlineSnapshot(`
      "routes  4 steps in 3 waves

      1   triage  agent  triage
      2 ┌ fix     agent  fixer
        │         ⇐ triage (if steps.triage.outputs.kind == 'bug')
        └ answer  agent  writer
                  ⇐ triage (if steps.triage.outputs.kind ==
                    'question')
      3   report  run    report   ⇠ fix   when failure('fix')

      ┌ └ at once   ⇐ needs   ⇠ after, whatever its outcome
      "
    `);
  });

  it("opens groups and sub-workflows one level, not two", () => {
    const nested = planOf(
      "nested",
      {
        outer: { steps: { inner: { steps: { deep: { run: "deep" } } }, other: { run: "x", uses: ["inner"] } } },
        sub: { workflow: "sub.yaml", uses: ["outer"] },
      },
      { "sub.yaml": { one: { workflow: "leaf.yaml" } }, "leaf.yaml": { leaf: { run: "leaf" } } },
    );
    const text = textGraph(nested);
    expect(text).toMatchInlineSnapshot(`
      "nested  2 steps in 2 waves

      1     outer    steps     2 steps
      1.1     inner  steps     1 step
      1.2     other  run       x           ← inner
      2     sub      workflow  sub.yaml    ← outer
      2.1     one    workflow  leaf.yaml

      ← uses its outputs
      "
    `);
    expect(text).not.toContain("deep");
    expect(text).not.toMatch(/\bleaf {2}/);
  });

  it("aligns Chinese by display width", () => {
    const chinese = planOf("发布流程", {
      a: { agent: "翻译", name: "把文档翻译成中文" },
      b: { agent: "editor", name: "校对" },
      c: { approve: "可以发布吗？", uses: ["a", "b"], when: "inputs.语言 == '中文'" },
    });
    expect(textGraph(chinese)).toMatchInlineSnapshot(`
      "发布流程  3 steps in 2 waves

      1 ┌ a  agent    把文档翻译成中文 · 翻译
        └ b  agent    校对 · editor
      2   c  approve  可以发布吗？              ← a, b
             when inputs.语言 == '中文'

      ┌ └ at once   ← uses its outputs
      "
    `);
  });

  it("keeps a long id whole, on a line of its own", () => {
    const long = "collect_every_single_review_comment_of_the_week";
    expect(textGraph(planOf("w", { [long]: { run: "x" }, b: { run: "y" } }))).toContain(`┌ ${long}\n  │ `);
  });

  it.each(hostileTexts.map((text) => [text.slice(0, 40), text]))(
    "keeps one step a line and its width around %j",
    (_, text) => {
      const plan = planOf(text, {
        a: { run: text, name: text },
        b: { agent: text, when: text, needs: [["a", text]] },
        c: { approve: text, until: text, uses: ["b"] },
      });
      const lines = textGraph(plan).split("\n");
      expect(lines.filter((line) => /^[123] +[abc] /.test(line))).toHaveLength(3);
      for (const line of lines) {
        expect(line).not.toMatch(/[\p{Cc}\p{Cs}\u2028-\u202e]/u);
        expect(stringWidth(line)).toBeLessThanOrEqual(60);
      }
    },
  );

  it("draws a chain of 10,000 steps without overflowing the stack", () => {
    const steps = Array.from({ length: 10_000 }, (_, index) => [
      `s${index}`,
      { run: "x", needs: index === 0 ? [] : [`s${index - 1}`] },
    ]);
    const chain = planOf("long", Object.fromEntries(steps));
    expect(textGraph(chain)).toContain("long  10000 steps in 10000 waves");
  });
});
