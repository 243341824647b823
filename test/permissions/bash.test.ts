import { describe, expect, it } from "vitest";
import { attacks, lookingAround } from "./attacks.ts";
import { honest, honestRules } from "./honest.ts";
import { bash, rightsUnder } from "./rights.ts";

describe("commands that hide other commands", () => {
  const rights = rightsUnder(lookingAround);

  it("knows more than a hundred ways", () => {
    expect(new Set(attacks).size).toBeGreaterThan(150);
  });

  it.each(attacks.map((command) => [JSON.stringify(command).slice(0, 60), command]))(
    "does not allow %s",
    async (_name, command) => {
      expect((await bash(rights, command)).decision).not.toBe("allow");
    },
  );

  it("allows what was permitted, in any honest spelling", async () => {
    const honest = [
      "ls",
      "ls -la src",
      "echo 'a; evil'",
      'echo "evil > x"',
      "cat <<'E'\n$(evil)\nE",
      "git status -s",
      "ls 2>&1 | cat",
    ];
    for (const command of [
      ...honest,
      "ls\\\n -la",
      "echo a#b",
      "(ls; echo a) && cat b",
      'for f in *.ts; do cat "$f"; done',
      "ls >/dev/null 2>&1",
    ])
      expect([command, (await bash(rights, command)).decision]).toEqual([command, "allow"]);
  });
});

describe("commands as people type them in CI", () => {
  it("allows at least 95 of 100 under rules as people write them", async () => {
    const rights = rightsUnder(honestRules);
    const commands = [...new Set(honest)];
    expect(commands.length).toBeGreaterThanOrEqual(200);
    const verdicts = await Promise.all(
      commands.map(async (command) => ({ command, ...(await bash(rights, command)) })),
    );
    const refused = verdicts.filter(({ decision }) => decision !== "allow");
    const said = refused.map(({ command, rule, toAllow }) => `${command}: ${rule.text} (${toAllow.join(", ")})`);
    expect(said.length / commands.length, said.join("\n")).toBeLessThanOrEqual(0.05);
  });
});
