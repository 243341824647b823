import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place, project } from "../cli/flow.ts";

const first = 'c4nary-first "quoted" \\ line é';
const second = "c4nary-second/+ & <line> of it";
/** A secret of two lines, as keys in PEM are, and the key of a provider. */
const secret = `${first}\n${second}\n`;
const key = "sk-c4nary-third-0123456789";
const environment = { TOKEN: secret, MINE_API_KEY: key };

const json = (text: string): string => JSON.stringify(text).slice(1, -1);
const base64 = (text: string): string => Buffer.from(text).toString("base64");
/** What a careless program makes of it, one form on a line but for the first. */
const forms: Readonly<Record<string, string>> = {
  "as it is": secret,
  "its first line": first,
  "its second line": second,
  "as JSON": json(secret),
  "as JSON in JSON": json(json(secret)),
  "a line as JSON": json(first),
  "in base64": base64(secret),
  "in base64 without padding": base64(secret).replace(/=+$/, ""),
  "a line in base64": base64(second),
  "in base64 behind a name": base64(`user:${secret}`),
  "in a URL": encodeURIComponent(secret),
  "a line in a URL": encodeURIComponent(first),
  "in a form": new URLSearchParams({ x: secret }).toString().slice(2),
  "in hex": Buffer.from(secret).toString("hex"),
  "a provider's key": key,
  "a provider's key in base64": base64(key),
};
/** What no sink may hold. In base64 the ends of a form depend on what stands beside it. */
const leaks = Object.entries(forms).flatMap(([name, form]) =>
  form
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => [name, line.slice(8, -8)] as const),
);

const told = Object.values(forms).map((form, index) => `${index}: ${form}\n`);
const place = new Place({
  forms: told.join(""),
  // More than a line of the log takes, and more than is kept of a stream.
  large: told.join("").repeat(40),
  huge: told.join("").repeat(1200),
  "server.mjs": readFileSync(join(project, "test/security/leaky-server.mjs"), "utf8"),
  "flow.config.yaml": `providers: { mine: { base-url: "http://127.0.0.1:9", key: MINE_API_KEY } }
hooks:
  PreToolUse: [{ hooks: [{ command: "cat >> hook-stdin; cat forms" }] }]
  PostToolUse: [{ hooks: [{ command: "cat >> hook-stdin; cat forms >&2; exit 2" }] }]
  StepEnd: [{ hooks: [{ command: "cat >> hook-stdin; env > hook-env; cat forms >&2; exit 1" }] }]
`,
  "agents/other.md": "---\nname: other\ntools: [Bash]\n---\nYou work.\n",
  "leaky.yaml": `name: leaky
secrets: [TOKEN]
model: scripted/r.yaml
permissions: { Bash: allow, mcp__leaky: allow }
mcp:
  leaky: { command: "${process.execPath}", args: [server.mjs], env: { TOKEN: "\${{ secrets.TOKEN }}" }, sandbox: off }
steps:
  prints:
    run: |
      cat forms; cat forms >&2
      { echo 'said<<END'; cat forms; echo END; } >> "$FLOW_OUTPUT"
      echo 'no<<command' 
    env: { TOKEN: "\${{ secrets.TOKEN }}" }
    cache: true
  floods: { run: cat large; cat huge >&2 }
  later: { run: 'printf %s "$SEEN" > seen', env: { SEEN: "\${{ steps.prints.outputs.said }}" } }
  calls: { tool: mcp__leaky__tell, continue-on-error: true }
  told-no: { tool: mcp__leaky__fail, continue-on-error: true }
  works: { agent: { name: worker, tools: [Bash, Read], mcp: [leaky] }, prompt: go, continue-on-error: true }
  ends: { needs: [works, calls, told-no], tool: mcp__leaky__end, continue-on-error: true }
  fails: { needs: [ends, prints, floods, later], run: "cat forms >&2; exit 1", continue-on-error: true }
outputs:
  printed: \${{ steps.prints.outputs.stdout }}
  said: \${{ steps.works.outputs.text }}
`,
  "r.yaml": `agents:
  worker:
    - { calls: [{ name: Bash, args: { command: "cat forms" } }, { name: Bash, args: { command: "cat huge" } }] }
    - { calls: [{ name: Bash, args: { command: "cat forms; exit 1" } }, { name: mcp__leaky__tell, args: {} }] }
    - { calls: [{ name: Read, args: { file_path: forms } }, { name: Bash, args: ${JSON.stringify({ command: `echo '${key}'` })} }] }
    - { text: ${JSON.stringify(`I heard ${told.join("")}`)} }
`,
  "bad.yaml": `name: bad\nsecrets: [TOKEN]\nsteps: { a: { run: "echo \${{ secrets.TOKEN }}", timeot: 1 } }\n`,
});
afterAll(() => place.remove());

/** All that is written anywhere, by what it is. */
const sinks = new Map<string, string>();
/** What the server had, each time it was started. */
const environments: string[] = [];

function under(folder: string): string {
  const path = join(place.folder, folder);
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .map((name) => join(path, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
}

beforeAll(async () => {
  const flow = async (name: string, args: readonly string[], wanted: number): Promise<void> => {
    const { code, stdout, stderr } = await place.flow(args, { env: environment });
    sinks.set(`${name}: stdout`, stdout).set(`${name}: stderr`, stderr);
    expect([name, code, code === wanted ? "" : stderr.slice(-2000)]).toEqual([name, wanted, ""]);
  };
  await flow("run", ["run", "leaky.yaml", "-vv"], 0);
  environments.push(place.read("server-env.json"));
  const run = `.flow/runs/${place.runs().at(-1)}`;
  sinks.set("log", place.read(`${run}/log.jsonl`));
  for (const folder of ["blobs", "files"]) sinks.set(folder, under(`${run}/${folder}`));
  sinks.set("cache", under(".flow/cache")).set("what hooks read", place.read("hook-stdin"));
  sinks.set("the environment of hooks", place.read("hook-env")).set("a later step", place.read("seen"));
  await flow("run --json", ["run", "leaky.yaml", "--json", "--progress", "json", "--log-deltas", "--no-cache"], 0);
  sinks.set("log with deltas", place.log());
  await flow("show", ["show", "latest"], 0);
  await flow("show --json", ["show", "latest", "--json"], 0);
  await flow("logs", ["logs", "latest"], 0);
  await flow("logs --json", ["logs", "latest", "--json"], 0);
  await flow("why", ["why", "latest", "fails"], 0);
  await flow("why --json", ["why", "latest", "fails", "--json"], 0);
  await flow("replay", ["run", "leaky.yaml", "--replay", "latest"], 0);
  await flow("runs", ["runs"], 0);
  await flow("agents explain", ["agents", "explain", "other", "--json"], 0);
  await flow("mcp list", ["mcp", "list", "leaky.yaml"], 0);
  environments.push(place.read("server-env.json"));
  await flow("mcp list --json", ["mcp", "list", "leaky.yaml", "--json"], 0);
  await flow("mcp call", ["mcp", "call", "leaky", "tell", "--file", "leaky.yaml"], 0);
  await flow("mcp call of a tool that fails", ["mcp", "call", "leaky", "fail", "--file", "leaky.yaml", "--json"], 1);
  await flow("mcp call of a server that ends", ["mcp", "call", "leaky", "end", "--file", "leaky.yaml"], 1);
  await flow("mcp lock", ["mcp", "lock", "leaky.yaml"], 0);
  sinks.set("flow.lock", place.read("flow.lock"));
  // Nobody listens where the provider should be.
  await flow("doctor", ["doctor"], 3);
  await flow("doctor --json", ["doctor", "--json"], 3);
  await flow("permit", ["permit", "leaky.yaml", "Bash(ls)"], 0);
  await flow("diagnostics", ["validate", "bad.yaml"], 2);
  await flow("diagnostics --json", ["validate", "bad.yaml", "--json"], 2);
}, 120_000);

/** Sinks into which what was printed goes: there it has been seen and covered. */
const covered = [
  "run: stdout",
  "run: stderr",
  "run --json: stdout",
  "run --json: stderr",
  "log",
  "log with deltas",
  "blobs",
  "files",
  "cache",
  "what hooks read",
  "a later step",
  "show: stdout",
  "logs: stdout",
  "logs --json: stdout",
  "why: stdout",
  "why --json: stdout",
  "replay: stdout",
  "replay: stderr",
  "mcp list: stdout",
  "mcp list --json: stdout",
  "mcp call: stdout",
  "mcp call of a tool that fails: stdout",
  "mcp call of a server that ends: stderr",
];

describe("a secret that everybody prints, in every form", () => {
  it.each(covered)("went through: %s", (name) => {
    expect(sinks.get(name)).toContain("***");
  });

  it("is in nothing that is written", () => {
    const found = [...sinks].flatMap(([sink, text]) =>
      leaks.filter(([, leak]) => text.includes(leak) || text.includes(json(leak))).map(([form]) => `${form}, ${sink}`),
    );
    expect([...new Set(found)]).toEqual([]);
  });

  it("reaches the server it is handed to, which gets no model's key", () => {
    expect(environments).toHaveLength(2);
    for (const text of environments) {
      const env = JSON.parse(text) as Record<string, string>;
      expect([env["TOKEN"], env["MINE_API_KEY"]]).toEqual([secret, undefined]);
    }
  });
});
