import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

const canary = 'c4nary "quoted" \\ & é/+';
const bytes = Buffer.from(canary);
/** The forms a careless step gives a secret. */
const forms: Readonly<Record<string, string>> = {
  plain: canary,
  json: JSON.stringify(canary).slice(1, -1),
  "json in ASCII": JSON.stringify(canary)
    .slice(1, -1)
    .replaceAll(/[^ -~]/g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, "0")}`),
  "json in json": JSON.stringify(JSON.stringify(canary)).slice(3, -3),
  url: encodeURIComponent(canary),
  form: new URLSearchParams({ x: canary }).toString().slice(2),
  html: canary.replaceAll("&", "&amp;").replaceAll('"', "&quot;"),
  hex: bytes.toString("hex"),
  "upper hex": bytes.toString("hex").toUpperCase(),
  base64: bytes.toString("base64"),
  "base64 without padding": bytes.toString("base64").replace(/=+$/, ""),
  base64url: bytes.toString("base64url"),
  "base64, one byte in": Buffer.from(`:${canary}`).toString("base64"),
  "base64, two bytes in": Buffer.from(`::${canary}`).toString("base64"),
  "basic authentication": Buffer.from(`user:${canary}`).toString("base64"),
  repeated: canary + canary,
};

let place: Place;
beforeEach(() => {
  place = new Place({
    "leaky.yaml": `
name: leaky
secrets: [TOKEN]
steps:
  leak:
    run: |
      cat forms
      cat forms >&2
      echo "form=$(cat one)" >> "$FLOW_OUTPUT"
    env: { TOKEN: "\${{ secrets.TOKEN }}" }
  later:
    run: printf '%s' "$SEEN" | tee seen
    env: { SEEN: "\${{ steps.leak.outputs.stdout }}" }
  fails:
    needs: [later]
    run: cat one >&2; exit 1
outputs:
  stdout: \${{ steps.leak.outputs.stdout }}
  form: \${{ steps.leak.outputs.form }}
`,
    "env.yaml": `
name: env
secrets: [TOKEN]
steps:
  without: { run: 'printf "[%s]" "\${TOKEN-none}"' }
  with: { run: 'printf "[%s]" "\${#TOKEN}"', env: { TOKEN: "\${{ secrets.TOKEN }}" } }
outputs:
  without: \${{ steps.without.outputs.stdout }}
  with: \${{ steps.with.outputs.stdout }}
`,
  });
});
afterEach(() => place.remove());

describe("a declared secret", () => {
  it("that is not set is exit 3 before anything runs", async () => {
    for (const env of [{}, { TOKEN: "" }]) {
      const { code, stdout, stderr } = await place.flow(["run", "env.yaml"], { env });
      expect(stderr).toContain("declares the secret TOKEN, and no such environment variable is set");
      expect([code, stdout, place.runs()]).toEqual([3, "", []]);
    }
  });

  it("reaches the step it is handed to and no other", async () => {
    const { code, stdout } = await place.flow(["run", "env.yaml"], { env: { TOKEN: canary } });
    expect(stdout).toBe(`without: [none]\nwith: [${canary.length}]\n`);
    expect(code).toBe(0);
  });

  it.each(Object.entries(forms))("is *** in log, stdout, stderr, outputs and later steps: %s", async (_, form) => {
    place.write("one", form);
    place.write("forms", `before ${form} after\n`);
    for (const args of [["-vv"], ["--json", "--progress", "json", "--log-deltas"], ["-q"]]) {
      const { code, stdout, stderr } = await place.flow(["run", "leaky.yaml", ...args], { env: { TOKEN: canary } });
      expect(code).toBe(1);
      // In base64 a secret shares its first and last characters with what stands beside it.
      const middle = form.slice(8, -8);
      const sinks = { stdout, stderr, log: place.log(), later: place.read("seen") };
      const leaks = Object.entries(sinks).filter(([, text]) =>
        [middle, JSON.stringify(middle).slice(1, -1)].some((it) => text.includes(it)),
      );
      expect(leaks.map(([sink]) => sink)).toEqual([]);
      expect(place.read("seen")).toMatch(/^before .*\*\*\*.* after$/);
    }
  });

  it("may stand in no prompt, script or output: a compile error", async () => {
    const agent = "agents: { a: { instructions: You., tools: [] } }\nmodel: scripted/r.yaml\n";
    const steps = {
      prompt: 's: { agent: a, prompt: "${{ secrets.TOKEN }}" }',
      stdin: 's: { run: cat, stdin: "${{ secrets.TOKEN }}" }',
      script: 's: { run: "echo ${{ secrets.TOKEN }}" }',
      set: 's: { set: { x: "${{ secrets.TOKEN }}" } }',
      condition: "s: { if: \"secrets.TOKEN == ''\", run: echo }",
    };
    for (const step of Object.values(steps)) {
      place.write("bad.yaml", `name: bad\nsecrets: [TOKEN]\n${agent}steps:\n  ${step}\n`);
      const { code, stderr } = await place.flow(["run", "bad.yaml"], { env: { TOKEN: canary } });
      expect(stderr).toMatch(/^bad\.yaml:6:\d+ error FLOW/);
      expect([step, code, place.runs()]).toEqual([step, 2, []]);
    }
  });

  it("that is too short to be masked is said", async () => {
    const { code, stderr } = await place.flow(["run", "env.yaml"], { env: { TOKEN: "abc" } });
    expect(stderr).toContain("warning FLOW8007");
    expect(code).toBe(0);
  });
});
