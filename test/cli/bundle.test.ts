import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

/** Packages that are loaded only when a workflow asks for them: from source they work by Node's rules, here by the bundler's. */
let place: Place;
beforeAll(() => {
  place = new Place({ "a.txt": "a needle\n", "b.txt": "b\n" });
});
afterAll(() => place.remove());

async function outputsOf(workflow: string, ...args: string[]): Promise<unknown> {
  place.write("it.yaml", `name: it\n${workflow}\n`);
  const { stdout, stderr } = await place.flow(["run", "it.yaml", "--json", "-q", ...args]);
  expect(stderr).toBe("");
  return (JSON.parse(stdout) as { readonly outputs: unknown }).outputs;
}

describe("in the bundle, what is loaded late works:", () => {
  it("ajv, for a step's output", async () => {
    const steps = (said: string) => `
steps:
  a:
    run: echo '${said}'
    output: { type: object, required: [day], properties: { day: { type: string, format: date, pattern: '^2' } } }
outputs: { day: "\${{ steps.a.outputs.day }}" }`;
    expect(await outputsOf(steps('{"day":"2026-11-21"}'))).toEqual({ day: "2026-11-21" });
    place.write("wrong.yaml", `name: wrong${steps('{"day":"2026-13-21"}')}\n`);
    const { code, stderr } = await place.flow(["run", "wrong.yaml"]);
    expect(stderr).toMatch(/output: stdout does not match the step's output: `day` .*date/);
    expect(code).toBe(1);
  });

  it("ajv, for an input with a pattern and one with a format", async () => {
    const workflow = `
inputs:
  tag: { type: string, pattern: '^v(\\d+|x)+$' }
  at: { type: string, format: date-time }
steps: { a: { run: echo } }
outputs: { x: "\${{ inputs.tag }} \${{ inputs.at }}" }`;
    const given = ["-i", "tag=v12x", "-i", "at=2026-11-21T23:00:00Z"];
    expect(await outputsOf(workflow, ...given)).toEqual({ x: "v12x 2026-11-21T23:00:00Z" });
    const { code, stderr } = await place.flow(["run", "it.yaml", "-i", "tag=w", "-i", "at=now"]);
    expect(stderr).toMatch(/`at` .*date-time[^]*`tag`|`tag`[^]*`at` .*date-time/);
    expect(code).toBe(2);
  });

  it("tinyglobby, for hashFiles", async () => {
    const workflow = `steps: { a: { run: echo } }\noutputs: { hash: "\${{ hashFiles('*.txt') }}", none: "\${{ hashFiles('*.md') }}" }`;
    expect(await outputsOf(workflow)).toEqual({ hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string, none: "" });
  });

  it("ripgrep and tinyglobby, for an agent's tools", async () => {
    place.write(
      "replies.yaml",
      `agents:
  finder:
    - calls: [{ name: Grep, args: { pattern: nee.le } }, { name: Glob, args: { pattern: "*.txt" } }]
    - text: "\${{ trim(results[0].text) }} | \${{ length(lines(trim(results[1].text))) }}"
`,
    );
    const workflow = `model: scripted/replies.yaml
agents: { finder: { instructions: You find., tools: [Grep, Glob] } }
steps: { a: { agent: finder, prompt: go } }
outputs: { found: "\${{ steps.a.outputs.text }}" }`;
    expect(await outputsOf(workflow)).toEqual({ found: expect.stringMatching(/a\.txt[^]* \| 2$/) as string });
  });
});
