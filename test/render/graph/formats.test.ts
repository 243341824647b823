import { describe, expect, it } from "vitest";
import { dotGraph } from "../../../src/render/graph/dot.ts";
import { jsonGraph } from "../../../src/render/graph/json.ts";
import { mermaidGraph } from "../../../src/render/graph/mermaid.ts";
import { hostileTexts } from "./hostile.ts";
import { everything, planOf } from "./plans.ts";

const hostilePlan = (text: string) =>
  planOf(text, {
    end: { run: text, name: text },
    graph: { agent: text, when: text, needs: [["end", text]] },
    group: {
      uses: ["graph"],
      until: text,
      steps: { subgraph: { approve: text }, node: { run: [text], after: ["subgraph"] } },
    },
  });

describe("the Mermaid graph", () => {
  it("has shapes by kind, subgraphs for groups, dotted references and labelled conditions", () => {
    expect(mermaidGraph(everything)).toMatchInlineSnapshot(`
      "flowchart TD
        s0["<b>diff</b><br/>run git diff #34;$BASE#34;...HEAD"]
        s1[/"<b>topics</b><br/>set list, max"/]
        s2["<b>lint</b><br/>run npm run lint"]
        s3(["<b>research</b><br/>agent 市场调研 · researcher<br/>× steps.topics.outputs.list #40;max 4#41;"])
        s4(["<b>security</b><br/>agent security-reviewer<br/>when inputs.depth == #39;deep#39;"])
        s5(["<b>style</b><br/>agent style-reviewer"])
        subgraph s6["<b>polish</b><br/>steps 3 steps<br/>↻ ≤3 until steps.judge.outputs.score #62;= 8"]
          s6_0(["<b>draft</b><br/>agent writer"])
          s6_1[["<b>facts</b><br/>tool WebFetch"]]
          s6_2(["<b>judge</b><br/>agent editor"])
        end
        s7(["<b>verdict</b><br/>agent editor"])
        s8{{"<b>ask</b><br/>approve Ship it?"}}
        subgraph s9["<b>publish</b><br/>workflow publish.yaml<br/>when inputs.publish"]
          s9_0["<b>tag</b><br/>run git tag v1"]
          s9_1["<b>push</b><br/>run git push"]
          s9_2[["<b>page</b><br/>tool Write"]]
        end
        s10["<b>matrix</b><br/>run npm test<br/>× 4 combinations"]
        s11["<b>notify</b><br/>run curl -d #64;- $URL …<br/>when always#40;#41;"]
        s1 -.-> s3
        s0 -.-> s4
        s0 -.-> s5
        s3 -.-> s6
        s6_0 -.-> s6_2
        s6_1 -.-> s6_2
        s2 -->|"if inputs.strict"| s7
        s4 -.-o s7
        s5 -.-> s7
        s6 -.-> s8
        s7 -.-> s8
        s8 --> s9
        s9_0 --> s9_1
        s9_0 --> s9_2
        s8 --> s10
        s9 -.-o s11
        s10 -.-o s11
      "
    `);
  });

  // Every line must be one of the few forms we write; no text can add a line or leave its quotes.
  const label = String.raw`"(?:[\p{L}\p{N}\p{M}\p{So}\p{Emoji_Modifier}\p{Join_Control} _.,/×↻≤·…!?=$-]|#\d+;|<b>|<\/b>|<br\/>)*"`;
  const forms = [
    /^flowchart TD$/,
    new RegExp(String.raw`^ +s[\d_]+(?:\(\[|\[\[|\[\/|\{\{|\[)${label}(?:\]\)|\]\]|\/\]|\}\}|\])$`, "u"),
    new RegExp(String.raw`^ +subgraph s[\d_]+\[${label}\]$`, "u"),
    /^ +end$/,
    new RegExp(String.raw`^ +s[\d_]+ (?:-->|-\.->|-\.-o)(?:\|${label}\|)? s[\d_]+$`, "u"),
  ];

  it.each(hostileTexts.map((text) => [text.slice(0, 40), text]))("stays the same graph around %j", (_, text) => {
    const lines = mermaidGraph(hostilePlan(text)).trimEnd().split("\n");
    expect(lines.filter((line) => !forms.some((form) => form.test(line)))).toEqual([]);
    expect(lines).toHaveLength(mermaidGraph(hostilePlan("x")).trimEnd().split("\n").length);
  });
});

describe("the DOT graph", () => {
  it("has shapes by kind, clusters for groups, dashed references and labelled conditions", () => {
    expect(dotGraph(everything)).toMatchInlineSnapshot(`
      "digraph "release" {
        node [fontname="sans-serif"];
        s0 [label="diff\\nrun git diff \\"$BASE\\"...HEAD", shape=box];
        s1 [label="topics\\nset list, max", shape=note];
        s2 [label="lint\\nrun npm run lint", shape=box];
        s3 [label="research\\nagent 市场调研 · researcher\\n× steps.topics.outputs.list (max 4)", shape=box, style=rounded];
        s4 [label="security\\nagent security-reviewer\\nwhen inputs.depth == 'deep'", shape=box, style=rounded];
        s5 [label="style\\nagent style-reviewer", shape=box, style=rounded];
        subgraph cluster_s6 {
          s6 [label="polish\\nsteps 3 steps\\n↻ ≤3 until steps.judge.outputs.score >= 8", shape=tab];
          s6_0 [label="draft\\nagent writer", shape=box, style=rounded];
          s6_1 [label="facts\\ntool WebFetch", shape=component];
          s6_2 [label="judge\\nagent editor", shape=box, style=rounded];
        }
        s7 [label="verdict\\nagent editor", shape=box, style=rounded];
        s8 [label="ask\\napprove Ship it?", shape=hexagon];
        subgraph cluster_s9 {
          s9 [label="publish\\nworkflow publish.yaml\\nwhen inputs.publish", shape=tab];
          s9_0 [label="tag\\nrun git tag v1", shape=box];
          s9_1 [label="push\\nrun git push", shape=box];
          s9_2 [label="page\\ntool Write", shape=component];
        }
        s10 [label="matrix\\nrun npm test\\n× 4 combinations", shape=box];
        s11 [label="notify\\nrun curl -d @- $URL …\\nwhen always()", shape=box];
        s1 -> s3 [style=dashed];
        s0 -> s4 [style=dashed];
        s0 -> s5 [style=dashed];
        s3 -> s6 [style=dashed];
        s6_0 -> s6_2 [style=dashed];
        s6_1 -> s6_2 [style=dashed];
        s2 -> s7 [label="if inputs.strict"];
        s4 -> s7 [style=dotted, arrowhead=odot];
        s5 -> s7 [style=dashed];
        s6 -> s8 [style=dashed];
        s7 -> s8 [style=dashed];
        s8 -> s9;
        s9_0 -> s9_1;
        s9_0 -> s9_2;
        s8 -> s10;
        s9 -> s11 [style=dotted, arrowhead=odot];
        s10 -> s11 [style=dotted, arrowhead=odot];
      }
      "
    `);
  });

  it.each(hostileTexts.map((text) => [text.slice(0, 40), text]))("stays the same graph around %j", (_, text) => {
    const bare = (plan: string) => plan.replace(/"(?:[^"\\]|\\.)*"/g, '""');
    expect(bare(dotGraph(hostilePlan(text)))).toBe(bare(dotGraph(hostilePlan("x"))));
    expect(dotGraph(hostilePlan(text))).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
  });
});

describe("the JSON graph", () => {
  it("names steps, edges with their origin, waves, groups and sub-workflows", () => {
    const plan = planOf(
      "small",
      {
        a: { run: "x" },
        b: { agent: "judge", when: "inputs.go", uses: ["a"], after: [] },
        g: { needs: [["a", "inputs.deep"]], after: ["b"], steps: { one: { run: "1" } } },
        w: { workflow: "sub.yaml" },
      },
      { "sub.yaml": { only: { set: ["v"] } } },
    );
    expect(JSON.parse(jsonGraph(plan))).toEqual({
      schemaVersion: 1,
      name: "small",
      steps: [
        { id: "a", kind: "run", wave: 1, summary: "x" },
        { id: "b", kind: "agent", wave: 2, summary: "judge", if: "inputs.go" },
        {
          id: "g",
          kind: "steps",
          wave: 3,
          summary: "1 step",
          steps: [{ id: "one", kind: "run", wave: 1, summary: "1" }],
          edges: [],
        },
        { id: "w", kind: "workflow", wave: 1, summary: "sub.yaml", workflow: "sub.yaml" },
      ],
      edges: [
        { from: "a", to: "b", hard: true, origin: "reference" },
        { from: "a", to: "g", hard: true, origin: "written", if: "inputs.deep" },
        { from: "b", to: "g", hard: false, origin: "reference" },
      ],
      workflows: [
        { key: "sub.yaml", name: "sub.yaml", steps: [{ id: "only", kind: "set", wave: 1, summary: "v" }], edges: [] },
      ],
    });
  });

  it("is the same text every time and keeps what programs read as it was written", () => {
    expect(jsonGraph(everything)).toBe(jsonGraph(structuredClone(everything)));
    for (const text of hostileTexts) {
      const graph: unknown = JSON.parse(jsonGraph(hostilePlan(text)));
      expect(graph).toMatchObject({ name: text, steps: [{ name: text }, { if: text }, { repeat: { until: text } }] });
    }
  });
});
