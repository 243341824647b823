import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkRules } from "../../src/permissions/index.ts";
import {
  bash,
  decisionOf,
  folder,
  home,
  permissionsOf,
  rightsOf,
  rightsUnder,
  vocabulary,
  workspace,
} from "./rights.ts";

writeFileSync(join(workspace, "README.md"), "");
mkdirSync(join(workspace, "src/deep"), { recursive: true });
mkdirSync(join(workspace, "secrets"));
mkdirSync(join(folder, "outside"));
symlinkSync(join(folder, "outside"), join(workspace, "out-link"));
symlinkSync("secrets", join(workspace, "alias"));

describe("where nothing is written", () => {
  it.each([
    ["Read", "README.md", "allow"],
    ["Grep", "src", "allow"],
    ["Glob", ".", "allow"],
    ["LS", "", "allow"],
    ["Read", ".env", "deny"],
    ["Read", ".env.local", "deny"],
    ["Read", ".env.example", "allow"],
    ["Read", "src/id_rsa", "deny"],
    ["Read", ".git/config", "deny"],
    ["Read", "../outside/x", "deny"],
    ["Read", "out-link/x", "deny"],
    ["Read", "/etc/passwd", "deny"],
    ["Read", "~/x", "deny"],
    ["Write", "a.txt", "ask"],
    ["Edit", "a.txt", "ask"],
    ["Bash", "ls", "ask"],
    ["WebFetch", "https://example.com/", "ask"],
    ["TodoWrite", "", "allow"],
    ["mcp__docs__search", "", "ask"],
  ])("%s %s: %s", async (tool, subject, decision) => {
    expect(await decisionOf({}, tool, subject)).toBe(decision);
  });

  it.each([
    ["read", "Bash", "ls", "deny"],
    ["read", "Write", "a", "deny"],
    ["read", "Read", "README.md", "allow"],
    ["edit", "Write", "a", "allow"],
    ["edit", "Edit", "src/a", "allow"],
    ["edit", "Write", ".npmrc", "deny"],
    ["edit", "Bash", "ls", "ask"],
    ["full", "Bash", "rm -rf x; f() { ls; }; X=1", "allow"],
    ["full", "Bash", "cat .env", "deny"],
    ["full", "Bash", "echo 'a", "deny"],
    ["full", "WebFetch", "http://example.com/", "allow"],
    ["full", "Read", ".env", "deny"],
  ] as const)("profile %s: %s %s is %s", async (profile, tool, subject, decision) => {
    const key = tool === "Bash" ? "command" : tool === "WebFetch" ? "url" : "file_path";
    const verdict = await rightsUnder({}, { profile }).judge({ tool, args: { [key]: subject } });
    expect(verdict.decision).toBe(decision);
  });
});

describe("patterns", () => {
  it.each([
    [{ Bash: { "*": "deny", "git *": "allow" } }, "Bash", "git push", "allow"],
    [{ Bash: { "git *": "allow", "*": "deny" } }, "Bash", "git push", "deny"],
    [{ Bash: { "git status": "allow" } }, "Bash", "git status", "allow"],
    [{ Bash: { "git status": "allow" } }, "Bash", "git status -s", "ask"],
    [{ allow: ["Bash(npm run:*)"] }, "Bash", "npm run test", "allow"],
    [{ allow: ["Bash(npm run:*)"] }, "Bash", "npm run", "allow"],
    [{ allow: ["Bash(npm run:*)"] }, "Bash", "npm running", "ask"],
    [{ allow: ["Bash(npm run test*)"] }, "Bash", "npm run test:unit -- -x", "allow"],
    [{ allow: ["Bash(git * main)"] }, "Bash", "git push origin main", "allow"],
    [{ allow: ["Bash(git * main)"] }, "Bash", "git push origin $X", "ask"],
    [{ allow: ["Bash(git commit -m *)"] }, "Bash", 'git commit -m "two words; rm x"', "allow"],
    [{ allow: ["Bash(git commit -m 'a b')"] }, "Bash", "git commit -m 'a b'", "allow"],
    [{ allow: ["Bash(git commit -m 'a b')"] }, "Bash", "git commit -m a b", "ask"],
    [{ allow: ["Bash(echo \\*)"] }, "Bash", "echo '*'", "allow"],
    [{ allow: ["Bash(echo \\*)"] }, "Bash", "echo x", "ask"],
    [{ allow: ["Bash(ls ?)"] }, "Bash", "ls a", "allow"],
    [{ allow: ["Bash(ls ?)"] }, "Bash", "ls ab", "ask"],
    [{ allow: ["Bash(cat *)"] }, "Bash", "cat .env", "deny"],
    [{ allow: ["Bash(cat .env)"] }, "Bash", "cat .env", "allow"],
    [{ allow: ["Bash(DEBUG=* npm test)"] }, "Bash", "DEBUG=a npm test", "allow"],
    [{ allow: ["Bash(npm test)"] }, "Bash", "DEBUG=a npm test", "ask"],
    [{ allow: ["Bash(npm test)"] }, "Bash", "CI=1 npm test", "allow"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "sudo -u x rm -rf /", "deny"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "bash -c 'echo a; rm x'", "deny"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "/bin/rm x", "deny"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "$X y", "deny"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "X=1 rm y", "deny"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "f() { rm x; }", "deny"],
    [{ Bash: { "*": "allow", "rm *": "deny" } }, "Bash", "npm run $X", "allow"],
    [{ Bash: { "*": "allow" } }, "Bash", "echo a > b", "ask"],
    [{ Bash: "allow", Write: { "build/*": "allow" } }, "Bash", "echo a > build/b", "allow"],
    [{ Bash: "allow", Write: { "build/*": "allow" } }, "Bash", "cd src && echo a > build/b", "ask"],
    [{ Bash: "allow", Write: { "/tmp/*": "allow" } }, "Bash", "echo a > /tmp/b", "allow"],
    [{ allow: ["Write(src/*)"] }, "Write", "src/deep/a.ts", "allow"],
    [{ allow: ["Write(src/*)"] }, "Write", "src/../a.ts", "ask"],
    [{ allow: ["Write(src)"] }, "Write", "src/a.ts", "allow"],
    [{ allow: ["Write(src/)"] }, "Write", "./src//a.ts", "allow"],
    [{ allow: ["Write(./src/**/*.ts)"] }, "Write", "src/a.ts", "allow"],
    [{ allow: ["Write(./src/**/*.ts)"] }, "Write", "src/x/y/a.ts", "allow"],
    [{ allow: ["Write(./src/**/*.ts)"] }, "Write", "src/a.js", "ask"],
    [{ allow: ["Write(**/notes.md)"] }, "Write", "my-notes.md", "ask"],
    [{ allow: ["Edit(docs/*)"] }, "Write", "docs/a.md", "allow"],
    [{ allow: ["Write(docs/*)"] }, "Edit", "docs/a.md", "ask"],
    [{ deny: ["Read(secrets)"] }, "Grep", "secrets/a", "deny"],
    [{ deny: ["Read(./secrets/*)"] }, "Read", "alias/a", "deny"],
    [{ deny: ["Read(./secrets/*)"] }, "Read", "SECRETS/a", "deny"],
    [{ deny: ["Read(./alias/*)"] }, "Read", "alias/a", "deny"],
    [{ deny: ["Read(*.key.txt)"] }, "Read", "src/deep/a.key.txt", "deny"],
    [
      { WebFetch: { "*": "deny", "https://docs.example.com/*": "allow" } },
      "WebFetch",
      "https://docs.example.com/a",
      "allow",
    ],
    [{ allow: ["WebFetch(domain:example.com)"] }, "WebFetch", "https://www.example.com/a", "allow"],
    [{ allow: ["WebFetch(domain:example.com)"] }, "WebFetch", "https://evil.com/x.example.com/", "ask"],
    [{ allow: ["WebFetch(domain:example.com)"] }, "WebFetch", "https://notexample.com/", "ask"],
    [{ allow: ["WebFetch(domain:example.com)"] }, "WebFetch", "https://example.com@evil.com/", "ask"],
    [{ network: "allow" }, "WebFetch", "https://example.com/", "allow"],
    [{ "modify-files": "deny" }, "Edit", "a", "deny"],
    [{ "execute-commands": "allow" }, "Bash", "ls", "allow"],
    [{ bash: { "*": "deny" }, edit: "allow" }, "Write", "a", "allow"],
    [{ "*": "deny" }, "Read", "README.md", "deny"],
    [{ mcp__docs: "allow" }, "mcp__docs__search", "", "allow"],
    [{ allow: ["mcp__docs__*"] }, "mcp__docs__search", "", "allow"],
    [{ allow: ["Task(explore)"], deny: ["Task"] }, "Task", "explore", "deny"],
    [{ Task: { "*": "deny", explore: "allow" } }, "Task", "explore", "allow"],
    [{ allow: ["Bash(git push)"], deny: ["Bash(git *)"] }, "Bash", "git push", "deny"],
    [{ allow: ["Bash(git *)"], ask: ["Bash(git push *)"] }, "Bash", "git push", "ask"],
  ] as const)("%j: %s %s is %s", async (permissions, tool, subject, decision) => {
    expect(await decisionOf(structuredClone(permissions) as never, tool, subject)).toBe(decision);
  });

  it("take no time whatever they are", async () => {
    const rights = rightsUnder({ allow: [`Bash(${"*a".repeat(500)}*b)`], Bash: { [`${"*a".repeat(900)}b`]: "deny" } });
    const start = performance.now();
    await bash(rights, `echo ${"a".repeat(20_000)}`);
    await bash(rights, `echo ${"a$X".repeat(5_000)}`);
    expect(performance.now() - start).toBeLessThan(1_000);
  });
});

describe("layers", () => {
  it("the last word is the step's, but an agent stays within what is written around it", async () => {
    const workflow = { layer: "workflow", permissions: { Bash: { "*": "deny", "git *": "allow" } } } as const;
    const agent = { layer: "agent", permissions: { Bash: "allow", Write: "allow" }, bounded: true } as const;
    const step = { layer: "step", permissions: { Bash: { "npm test": "allow" } } } as const;
    const rights = rightsOf([step, agent, workflow]);
    expect((await bash(rights, "rm x")).decision).toBe("deny");
    expect((await bash(rights, "git log")).decision).toBe("allow");
    expect((await bash(rights, "npm test")).rule).toEqual({ text: "Bash(npm test)", layer: "step" });
    expect((await rights.judge({ tool: "Write", args: { file_path: "a" } })).decision).toBe("allow");
  });

  it("what a list denies stays denied, for the command line too", async () => {
    const rights = rightsUnder({ deny: ["Bash(git push *)"] }, { allowed: ["Bash(git *)"] });
    expect((await bash(rights, "git push")).decision).toBe("deny");
    expect((await bash(rights, "git log")).rule).toEqual({ text: "Bash(git *)", layer: "command line" });
  });

  it("a managed file only restricts", async () => {
    const managed = [
      { layer: "managed", permissions: { WebFetch: "allow", Bash: { "*": "ask", "git *": "allow" } } },
    ] as const;
    const rights = rightsUnder({ Bash: "allow" }, { managed });
    expect((await bash(rights, "rm x")).decision).toBe("ask");
    expect((await bash(rights, "git log")).decision).toBe("allow");
    expect((await rights.judge({ tool: "WebFetch", args: { url: "https://a.org/" } })).decision).toBe("ask");
  });

  it("says the rule, its layer, file and line, and the narrowest rules that would allow", async () => {
    const lines = { "Bash/git *": 7 };
    const rights = rightsOf([
      { layer: "workflow", permissions: { Bash: { "git *": "allow" } }, file: "a.yaml", lines },
    ]);
    expect((await bash(rights, "git log")).rule).toEqual({
      text: "Bash(git *)",
      layer: "workflow",
      file: "a.yaml",
      line: 7,
    });
    const verdict = await bash(rights, "git log | tee 'a b' > out.txt; curl \"$URL\" '*'");
    expect(verdict.toAllow).toEqual(["Bash(tee 'a b')", "Write(./out.txt)", "Bash(curl * \\*)"]);
  });

  it("what it names to allow a call does allow it", async () => {
    const commands = [
      "git commit -m 'a \"b\" c'",
      "echo '' '*' '?' \\\\",
      "A=1 make x",
      "cat .env",
      "ls | wc -l > n.txt",
      'echo "$X" a',
    ];
    for (const command of [...commands, "echo 'a\nb'", 'echo "it\'s"']) {
      const { toAllow } = await bash(rightsUnder({}), command);
      expect([command, (await bash(rightsUnder({ allow: [...toAllow] }), command)).decision]).toEqual([
        command,
        "allow",
      ]);
    }
  });
});

describe("a run's permissions", () => {
  it("hide a tool whose calls are all denied, and know the most another could get", () => {
    const rights = rightsUnder({
      Bash: { "git *": "allow", "*": "deny" },
      WebFetch: "deny",
      Write: { "*": "deny", "a/*": "allow" },
    });
    const most = ["Bash", "WebFetch", "Write", "Edit", "Read"].map((tool) => rights.reach(tool));
    expect(most).toEqual(["deny", "deny", "allow", "ask", "allow"]);
    expect(rightsUnder({ Bash: "allow", deny: ["Bash"] }).reach("Bash")).toBe("deny");
  });

  it("count what each written rule decided", async () => {
    const made = permissionsOf({ allowed: ["Bash(ls)"] });
    if (!made.ok) throw new Error(made.error);
    const rights = made.value.forAgent([{ layer: "workflow", permissions: { Bash: { "git *": "allow" } } }]);
    await bash(rights, "git log");
    await bash(rights, "git log");
    const counts = made.value.hits().map(({ rule, hits }) => [rule.text, hits]);
    expect(counts).toEqual([
      ["Bash(ls)", 0],
      ["Bash(git *)", 2],
    ]);
  });

  it("count every rule that let a part of a command go ahead", async () => {
    const made = permissionsOf({ allowed: ["Bash(ls)"] });
    if (!made.ok) throw new Error(made.error);
    const rights = made.value.forAgent([{ layer: "workflow", permissions: { Bash: { "git *": "allow" } } }]);
    await bash(rights, "git log && ls && git status");
    expect(made.value.hits().map(({ rule, hits }) => [rule.text, hits])).toEqual([
      ["Bash(ls)", 1],
      ["Bash(git *)", 1],
    ]);
  });

  it("refuse a rule of the command line that is none", () => {
    expect(permissionsOf({ allowed: ["Bash(git"] })).toMatchObject({ ok: false });
    expect(permissionsOf({ allowed: ["Bsh"] })).toEqual({
      ok: false,
      error: "the rule `Bsh` never holds: there is no tool `Bsh`",
    });
  });

  it("remember what a person approved", async () => {
    const rights = rightsUnder({});
    rights.approve(["Bash(git push)"]);
    expect((await bash(rights, "git push")).rule.layer).toBe("approved");
    expect((await bash(rights, "git pull")).decision).toBe("ask");
  });

  it("show files in lists only where they may be read", () => {
    const rights = rightsUnder({ Read: { "secrets/*": "ask", "*.lock": "deny" } });
    expect(["a.ts", "secrets/a", "src/x.lock", ".env"].map((path) => rights.mayRead(path))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("rules that are wrong", () => {
  it.each([
    [{ allow: ["Bash(git"] }, "allow/0", true],
    [{ allow: ["Bash(git) x"] }, "allow/0", true],
    [{ deny: ["(x)"] }, "deny/0", true],
    [{ Bsh: "allow" }, "Bsh", false],
    [{ TodoWrite: { "x*": "deny" } }, "TodoWrite/x*", false],
    [{ "B?sh*x": "allow" }, "B?sh*x", false],
  ])("%j", (permissions, path, broken) => {
    const found = checkRules({ layer: "workflow", permissions }, vocabulary);
    expect(found.map((it) => [it.path.join("/"), it.broken])).toEqual([[path, broken]]);
  });

  it("a home has its own spelling", async () => {
    for (const spelled of ["~/x", "$HOME/x", "${HOME}/x", `${home}/x`])
      expect(await decisionOf({ Bash: "allow", Write: { [spelled]: "allow" } }, "Bash", "echo a > ~/x")).toBe("allow");
  });
});
