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

describe("files that hold credentials, by another spelling", () => {
  const rights = rightsUnder({ allow: ["Bash(cat *)", "Bash(ls *)", "Bash(printf *)"] });

  it.each([
    "cat .e*",
    "cat .en?",
    "cat .[e]nv",
    "cat .e{nv,x}",
    "cat {.env,x}",
    "cat .e{n,{v,nv}}",
    "cat @(.env|x)",
    "cat ~+/.env",
    "cat ~+/.e*",
    "cat ~/.ss*/id_ed*",
    "cat .git/c*",
    "cat .g*/config",
    "cat .g{i,x}t/co?fig",
    "cat ./.e*",
    "cat sub/.env.l*",
    'cat ".e"*',
    "cat \\.e*",
    "cat .E*",
    "cat .*",
    "cat --file=.e*",
    "cat id_*",
    "cat *.p?m",
    "cat .e$X",
    "cat .{a..z}nv",
    "cat .{e,f}{n,m}{v,w}",
    "cat <(cat .e*)",
    "cat .git/modules/*/c*",
    `cat ${"{a,b}".repeat(12)}`,
    'for f in .e*; do cat "$f"; done',
    "for f in .env; do cat $f; done",
    'for f in a b .env.local; do cat "${f}"; done',
    'for f in .e*; do :; done; cat "$f"',
    'while ls; do cat "$f"; for f in .e*; do ls; done; done',
    "for d in .; do for f in $d/.e*; do for g in $f; do cat ./$g; done; done; done",
    "for f in env; do cat .$f; done",
    'for f in *; do cat ".$f"; done',
    "for f in ~/.a*; do cat $f/credentials; done",
    "for f in x.envy; do cat ${f:1:4}; done",
    "for f in x.env; do cat ${f#x}; done",
    "for f in .envx; do cat ${f%x}; done",
    "for f in x/.e*; do cat ${f##*/}; done",
    "for f in xenv; do cat ${f/x/.}; done",
    "for f in .ENV; do cat ${f,,}; done",
    "for f in ${x:-.env}; do cat $f; done",
    `for f in ${"a ".repeat(300)}; do cat $f; done`,
    "cat ${x:-.env}",
    "cat ${x+.e}nv",
    "cat $(ls)env",
    'cat "${x}env"',
  ])("does not allow %s", async (command) => {
    expect(await bash(rights, command)).toMatchObject({ decision: "deny", toAllow: [] });
  });

  it.each([
    "cat *",
    "cat *.ts",
    "cat src/*.json",
    "ls src/{a,b}/*.ts",
    "cat ~/notes.txt",
    "cat $FILE",
    'cat "$d"/x',
    "cat */config",
    "cat .github/w*/*.yml",
    "cat .eslintrc*",
    "ls {1..9}.txt",
    "cat README.{md,txt}",
    "cat .env.example",
    'for f in src/*.ts test/*.ts; do cat "$f"; done',
    'for f in packages/core/*.ts; do cat "${f%.ts}.js" "${f##*/}" "${f/src/dist}"; done',
    "for d in api web; do cat $d/package.json; done",
    'for f in *; do cat "$f"; done',
    "for f in .github/workflows/*.yml; do cat $f; done",
    "for f in $(ls); do cat $f; done",
    "cat ${DIR:-src}/index.ts",
    'cat "$1.log" $A$B',
  ])("allows %s", async (command) => {
    expect((await bash(rights, command)).decision).toBe("allow");
  });

  it.each([
    "printf 'abc%n' PATH",
    "printf '%s%-5n' a PATH",
    "printf '%ln' X",
    "printf '%%%n' PATH",
    "printf -v PATH x",
    'printf "$F" PATH',
    'printf -- "$F" PATH',
    "printf $F",
    'printf "%$F" PATH',
    "printf *",
  ])("does not allow %s, which may set a variable", async (command) => {
    expect((await bash(rights, command)).decision).not.toBe("allow");
  });

  it.each(["printf '%s\\n' a", "printf 'a%%n' b", 'printf "$text"', "printf '%s' \"$x\" *.ts", "printf '%d new\\n' 3"])(
    "allows %s",
    async (command) => {
      expect((await bash(rights, command)).decision).toBe("allow");
    },
  );

  it("a printf that sets a variable is allowed by the rule that spells it", async () => {
    const spelled = rightsUnder({ allow: ["Bash(printf 'abc%n' PATH)"] });
    expect((await bash(spelled, "printf 'abc%n' PATH")).decision).toBe("allow");
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
