import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canonicalToolName, createTools, toolNames } from "../../src/tools/index.ts";
import { isSecretFile } from "../../src/tools/secret-files.ts";
import { Marks } from "../../src/process/marks.ts";
import { type Workspace, canary, makeWorkspace } from "./workspace.ts";

const secrets = [
  ".env",
  ".env.local",
  ".env.production",
  "packages/api/.env",
  ".ENV",
  ".envrc",
  "id_rsa",
  "keys/id_ed25519",
  "id_ecdsa_sk",
  "server.pem",
  "tls/server.KEY",
  "store.p12",
  ".npmrc",
  ".netrc",
  ".pypirc",
  ".git-credentials",
  ".git/config",
  ".git/modules/sub/config",
  ".git/worktrees/w/config.worktree",
  "sub/.git/config",
  ".ssh/known_hosts",
  ".aws/credentials",
  "home/.config/gcloud/access_tokens.db",
  ".kube/config",
  ".docker/config.json",
  ".cargo/credentials.toml",
];
const open = [
  ".env.example",
  "env",
  "environment.ts",
  ".environment",
  "src/.envelope",
  "id_rsa.pub",
  "id_rsa_notes.md",
  "pem.txt",
  "keys.ts",
  "config",
  ".github/config.json",
  ".git/HEAD",
  "docker/config.json",
  "credentials.md",
];

let work: Workspace;
beforeAll(() => {
  work = makeWorkspace();
  for (const path of secrets) work.write(path, `${canary}\n`);
  for (const path of open) work.write(path, "harmless\n");
  symlinkSync(".env", join(work.root, "notes.txt"));
  symlinkSync("keys.ts", join(work.root, "linked.pem"));
});
afterAll(() => work.remove());

describe("files that hold credentials", () => {
  it.each(secrets)("are refused by Read and Grep: %s", async (path) => {
    const refused = `error: ${JSON.stringify(path)} is a file that holds credentials; no tool touches it`;
    expect(await work.call("Read", { file_path: path })).toBe(refused);
    expect(await work.call("Grep", { pattern: ".", path, output_mode: "content" })).toBe(refused);
    expect(await work.call("Read", { file_path: join(work.root, path) })).toContain("holds credentials");
  });

  it("are refused through a link to them, and by the name of a link", async () => {
    expect(await work.call("Read", { file_path: "notes.txt" })).toContain("holds credentials");
    expect(await work.call("Read", { file_path: "linked.pem" })).toContain("holds credentials");
  });

  it("are left out of every listing and search", async () => {
    const answers = await Promise.all([
      work.call("Grep", { pattern: canary }),
      work.call("Grep", { pattern: canary, output_mode: "content", glob: "**/.env*" }),
      work.call("Grep", { pattern: canary, output_mode: "count", path: ".git" }),
      work.call("Glob", { pattern: "**/.env*" }),
      work.call("Glob", { pattern: ".git/**" }),
      work.call("Glob", { pattern: "**" }),
      ...[".", ".git", ".ssh", ".aws", "keys", "packages/api"].map((path) => work.call("LS", { path })),
    ]);
    const names = answers.join("\n").split("\n");
    expect(answers.join("\n")).not.toContain(canary);
    for (const path of secrets) expect(names).not.toContain(path);
    expect(names).not.toContain("known_hosts");
  });

  it.each(open)("are not confused with %s", async (path) => {
    expect(isSecretFile(path)).toBe(false);
    expect(await work.call("Read", { file_path: path })).toBe("     1\tharmless");
  });
});

describe("the names of tools", () => {
  it("are ours for every alias of OpenCode, pi and Gemini", () => {
    expect(
      ["read_file", "list_directory", "find", "grep_search", "run_shell_command", "Agent"].map(canonicalToolName),
    ).toEqual(["Read", "LS", "Glob", "Grep", "Bash", "Task"]);
    for (const name of toolNames) expect(canonicalToolName(name)).toBe(name);
    for (const name of ["", "READ", "constructor", "__proto__", "NotebookEdit"])
      expect(canonicalToolName(name)).toBeUndefined();
  });

  it("belong to tools that take no argument they do not know", () => {
    const tools = createTools({ marks: new Marks("names"), environment: {} });
    const reading = ["Read", "Glob", "Grep", "LS", "WebFetch"];
    const names = ["Read", "Glob", "Grep", "LS", "Write", "Edit", "Bash", "WebFetch", "TodoWrite"];
    expect(tools.map(({ name }) => name)).toEqual(names);
    for (const { name, readOnly, parameters } of tools) {
      expect(readOnly).toBe(reading.includes(name));
      expect(parameters).toMatchObject({ type: "object", additionalProperties: false });
    }
  });
});
