import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentOutcomes } from "../../src/model/message.ts";
import { Place, project } from "./flow.ts";

/** A server that tells everybody to come back much later. */
let busy: Server;
const places: Place[] = [];
beforeAll(async () => {
  busy = createServer((_, answer) =>
    answer.writeHead(429, { "retry-after": "600" }).end('{"error":{"message":"busy"}}'),
  );
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  busy.close();
  for (const place of places) place.remove();
});

interface Case {
  /** The agent's own keys, and the step's. */
  readonly agent?: string;
  readonly step?: string;
  /** The agent's turns, a YAML list in one line. */
  readonly turns: string;
  /** Keys of the script beside its turns. */
  readonly script?: string;
  readonly code: number;
  readonly reason: RegExp;
}

const answer = "{ type: object, required: [n], properties: { n: { type: integer } } }";
const read = (path: string): string => `{ calls: [{ name: Read, args: { file_path: ${path} } }] }`;

const cases: { readonly [name: string]: Case } = {
  "done: an answer": { turns: "[{ text: Here. }]", code: 0, reason: /^the model answered$/ },
  "done: an answer behind one call that failed, which the model was told of": {
    turns: `[${read("nothing.txt")}, { text: There is no such file. }]`,
    code: 0,
    reason: /answered/,
  },
  "max_turns: the turns are used up": {
    agent: "limits: { turns: 2 }",
    turns: `[${read("a.txt")}, ${read("b.txt")}, { text: as far as I came }]`,
    code: 4,
    reason: /2 turns/,
  },
  "max_turns: they run out before an answer fits": {
    agent: `limits: { turns: 2 }, output: ${answer}`,
    turns: "[{ text: five }, { text: five }, { text: '{\"n\": 5}' }]",
    code: 4,
    reason: /2 turns/,
  },
  "budget: the next call cannot be paid": {
    agent: "limits: { tokens: 3 }",
    turns: "[{ text: Here. }]",
    code: 4,
    reason: /limits\.tokens/,
  },
  "timeout: the step's own": {
    step: "timeout: 300ms",
    turns: "[{ text: Here., delay: 20s }]",
    code: 1,
    reason: /`timeout`/,
  },
  "denied: nobody is there to ask": {
    agent: "tools: [Write]",
    turns: "[{ calls: [{ name: Write, args: { file_path: x.txt, content: x } }] }, { text: Written. }]",
    code: 6,
    reason: /Write/,
  },
  "invalid_output: an empty answer": { turns: "[{ text: '' }]", code: 1, reason: /without an answer/ },
  "invalid_output: white space behind a call": {
    turns: `[${read("a.txt")}, { text: '   ' }]`,
    code: 1,
    reason: /without an answer/,
  },
  "invalid_output: prose three times": {
    agent: `output: ${answer}`,
    turns: "[{ text: five }, { text: five! }, { text: FIVE }]",
    code: 1,
    reason: /neither a call of `finish` nor a JSON object/,
  },
  "invalid_output: a number that is none": {
    agent: `output: ${answer}`,
    turns: "[{ text: '{\"n\": 1e999}' }, { text: '{\"n\": 1e999}' }, { text: '{\"n\": 1e999}' }]",
    code: 1,
    reason: /neither/,
  },
  "check: it never passes": {
    step: "check: { run: 'echo no; exit 3', max: 1 }",
    turns: "[{ text: Done. }, { text: Done now. }]",
    code: 1,
    reason: /failed 2 times: \[exited with 3\]/,
  },
  "stuck: the same call again and again": {
    turns: `[${[1, 2, 3, 4].map(() => read("a.txt")).join(", ")}, { text: Here. }]`,
    code: 1,
    reason: /same call of Read/,
  },
  "refused: the model will not": { turns: "[{ text: I cannot., stop: refusal }]", code: 1, reason: /^I cannot\.$/ },
  "refused: without a word": { turns: "[{ text: '', stop: refusal }]", code: 1, reason: /refused to answer/ },
  "overflow: the answer is cut": { turns: "[{ text: To be contin, stop: length }]", code: 1, reason: /output limit/ },
  "overflow: the prompt does not fit": {
    turns: "[{ text: Here. }]",
    script: "window: 10",
    step: `prompt: "\${{ '${"word ".repeat(40)}' }}"`,
    code: 1,
    reason: /10 fit into the model's window/,
  },
  "overflow: the provider says so, and nothing can be left out": {
    turns: "[{ error: overflow }, { text: Here. }]",
    code: 1,
    reason: /longer than the model's window/,
  },
  "rate_limit: the server wants a longer wait than anybody has": { turns: "", code: 3, reason: /600 s/ },
  "provider_error: the key is refused": { turns: "[{ text: hal, error: 401 }]", code: 3, reason: /401/ },
  "provider_error: the script is used up": { turns: `[${read("a.txt")}]`, code: 3, reason: /used up/ },
  "tool_error: arguments nobody can read": {
    turns: `[${[1, 2, 3].map((at) => `{ calls: [{ name: Read, raw: '{"a${at}":' }] }`).join(", ")}, { text: Here. }]`,
    agent: "guards: false",
    code: 1,
    reason: /could not be read, 3 times/,
  },
  "tool_error: an answer behind nothing but failures": {
    turns: `[${[1, 2, 3].map((at) => read(`no-${at}.txt`)).join(", ")}, { text: All is well. }]`,
    code: 1,
    reason: /although every tool call of its last 3 turns had failed/,
  },
};

function placeFor({ agent = "", step = "", turns, script = "" }: Case): Place {
  const { port } = busy.address() as AddressInfo;
  const model =
    turns === "" ? `model: { id: x, base-url: "http://127.0.0.1:${port}/v1" }` : "model: scripted/replies.yaml";
  const place = new Place({
    "a.txt": "a\n",
    "b.txt": "b\n",
    "flow.yaml": `${model}\nsteps:\n  ask:\n    agent: { prompt: Go.${agent === "" ? "" : `, ${agent}`} }\n    retry: 0\n${step === "" ? "" : `    ${step}\n`}outputs: { said: "\${{ steps.ask.outputs }}" }\n`,
    "replies.yaml": `${script}\nsteps:\n  ask: ${turns === "" ? "[{ text: unused }]" : turns}\n`,
  });
  places.push(place);
  return place;
}

describe("an agent ends in exactly one way", () => {
  it.each(Object.entries(cases))("%s", async (name, one) => {
    const outcome = name.split(":")[0] ?? "";
    const place = placeFor(one);
    const { code, stdout, stderr } = await place.flow(["run", "flow.yaml"]);
    const events = place.events();
    const ends = events.filter((event) => event.type === "agent.finished");
    expect(ends).toHaveLength(1);
    expect(ends[0]).toMatchObject({ outcome, reason: expect.stringMatching(one.reason) as string });
    expect([code, stderr]).toEqual([one.code, stderr]);
    const step = events.find((event) => event.type === "step.finished");
    if (outcome === "done") expect(step).toMatchObject({ outcome: "success" });
    else {
      expect(step).toMatchObject({ outcome: "failure", error: { kind: outcome } });
      expect(stdout).toBe("");
    }
  });

  it("cancelled: somebody interrupts it", async () => {
    const place = placeFor({ turns: "[{ text: Here., delay: 20s }]", code: 130, reason: /./ });
    const running = place.start(["run", "flow.yaml"]);
    await running.said("start agent");
    running.kill("SIGINT");
    const { code } = await running.ended;
    expect(code).toBe(130);
    expect(place.events().find((event) => event.type === "agent.finished")).toMatchObject({ outcome: "cancelled" });
  });

  it("and the guide has each with its exit code", () => {
    const guide = readFileSync(join(project, "docs/agents.md"), "utf8");
    const rows = [...guide.matchAll(/^\| `([a-z_]+)` \| .* \| (\d+) \|$/gm)].map(([, name, code]) => [
      name,
      Number(code),
    ]);
    const codes = Object.entries(cases).map(([name, { code }]) => [name.split(":")[0], code]);
    expect(Object.fromEntries(rows)).toEqual({ ...Object.fromEntries(codes), cancelled: 130 });
  });

  it("and each of the fourteen is here", () => {
    const shown = new Set([...Object.keys(cases).map((name) => name.split(":")[0]), "cancelled"]);
    expect(shown).toEqual(new Set(agentOutcomes));
  });
});
