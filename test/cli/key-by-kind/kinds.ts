import type { StepKind } from "../../../src/model/plan.ts";
import type { Asker } from "../../../src/model/ports.ts";

export const kinds: readonly StepKind[] = ["agent", "run", "tool", "workflow", "steps", "approve", "set"];

/** What the body of a step does in a cell. */
export type Does =
  /** It succeeds at once. */
  | "succeeds"
  /** It fails. */
  | "fails"
  /** It succeeds, long after a timeout of 20 ms. */
  | "lasts"
  /** An agent in it asks a model twice. */
  | "asks";

/** The shortest body of each kind, as it stands in a step between braces. Absent: no body of the kind does that. */
export const bodies: { readonly [kind in StepKind]: { readonly [does in Does]?: string } } = {
  agent: {
    succeeds: "agent: talks",
    fails: "agent: fails",
    lasts: "agent: lasts",
    asks: "agent: asks",
  },
  run: { succeeds: "run: echo a", fails: "run: exit 3", lasts: "run: sleep 0.3" },
  tool: {
    succeeds: "tool: LS, with: { path: . }",
    fails: "tool: Read, with: { file_path: nowhere }",
    lasts: "tool: Grep, with: { pattern: hello, output_mode: content }",
  },
  workflow: {
    succeeds: "workflow: succeeds.yaml",
    fails: "workflow: fails.yaml",
    lasts: "workflow: lasts.yaml",
    asks: "workflow: asks.yaml",
  },
  steps: {
    succeeds: "steps: { b: { run: echo a } }",
    fails: "steps: { b: { run: exit 3 } }",
    lasts: "steps: { b: { run: sleep 0.3 } }",
    asks: "steps: { b: { agent: asks } }",
  },
  approve: { succeeds: "approve: 'Yes?'", fails: "approve: 'No?'", lasts: "approve: 'Later?'" },
  set: { succeeds: "set: { v: 1 }", fails: 'set: { v: "${{ fromJSON(inputs.broken) }}" }' },
};

/** Everything in front of \`steps\`. */
export const head = `
inputs: { no: { type: boolean, default: false }, broken: { type: string, default: "{" } }
model: scripted/replies.yaml
agents:
  talks: { instructions: You., tools: [], inputs: { who: { type: string, default: nobody } }, prompt: "to \${{ inputs.who }}" }
  fails: { instructions: You., tools: [], prompt: hi }
  lasts: { instructions: You., tools: [], prompt: hi }
  asks: { instructions: You., tools: [LS], prompt: hi }
  fits: { instructions: You., tools: [], prompt: hi }
  spawns: { instructions: You., tools: [], prompt: hi, subagents: [talks] }
`;

const sub = (step: string): string => `${head}steps: { b: { ${step} } }\noutputs: { v: 1 }\n`;

/** What lies around the workflow. */
export const files: Readonly<Record<string, string>> = {
  "replies.yaml": `
price: { input: 3, output: 15 }
agents:
  talks: [{ text: hello }, { text: hello }]
  fails: [{ when: "false", text: never }]
  lasts: [{ delay: 300ms, text: hello }]
  asks: [{ calls: [{ name: LS, args: { path: . } }] }, { text: hello }]
  fits: [{ text: '{ "a": 1 }' }]
  spawns:
    - calls:
        - { name: Task, args: { description: one, prompt: hi, subagent_type: talks } }
        - { name: Task, args: { description: two, prompt: hi, subagent_type: talks } }
    - { text: hello }
`,
  "other.yaml": "agents: { talks: [{ text: other }] }\n",
  "succeeds.yaml": sub("run: echo a")
    .replace("no: {", "who: { type: string, default: nobody }, no: {")
    .replace("v: 1", 'v: 1, who: "${{ inputs.who }}"'),
  "fails.yaml": sub("run: exit 3"),
  "lasts.yaml": sub("run: sleep 0.3"),
  "asks.yaml": sub("agent: asks"),
  "sub/file": "",
};

/** Answers approvals by their question. */
export const asker: Asker = {
  ask: async ({ question, fields }, signal) => {
    if (question === "Later?") await pause(300, signal);
    if (signal.aborted) return undefined;
    const form = Object.fromEntries(fields.map(({ name }) => [name, 7]));
    return { decision: question === "No?" ? "denied" : "approved", comment: "", form };
  },
};

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
