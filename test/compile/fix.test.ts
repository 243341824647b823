import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { applyFixes } from "../../src/cli/fix.ts";
import { quotingAfter } from "../../src/compile/checks/quoting.ts";
import { check, run } from "../../src/flow.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-fix-"));
mkdirSync(join(folder, ".git"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Rewrites a workflow as `flow validate --fix` does; the codes are those of what is left. */
async function fixed(text: string): Promise<{ readonly text: string; readonly left: readonly string[] }> {
  const file = join(folder, "main.yaml");
  writeFileSync(file, text);
  applyFixes((await check({ file, cwd: folder })).diagnostics, folder);
  const { diagnostics } = await check({ file, cwd: folder });
  return { text: readFileSync(file, "utf8"), left: diagnostics.map((it) => it.code) };
}

const head =
  "inputs: { title: { type: string }, other-one: { type: string, default: o }, path: { type: string, default: p } }\n";

describe("an expression in a script becomes a variable", () => {
  test.each([
    ["a word", "echo ${{ inputs.title }}", 'echo "$TITLE"'],
    ["part of a word", "echo a${{ inputs.title }}b", 'echo a"$TITLE"b'],
    ["in double quotes", 'echo "a ${{ inputs.title }} b"', 'echo "a ${TITLE} b"'],
    ["in single quotes", "echo 'a ${{ inputs.title }} b'", "echo 'a '\"$TITLE\"' b'"],
    ["after quotes of the other kind", `echo "it's" '"' \${{ inputs.title }}`, `echo "it's" '"' "$TITLE"`],
    ["after an escaped quote", 'echo \\" ${{ inputs.title }}', 'echo \\" "$TITLE"'],
    ["after a comment with an apostrophe", "# don't\n      echo ${{ inputs.title }}", '# don\'t\n      echo "$TITLE"'],
    ["an assignment", "t=${{ inputs.title }}", 't="$TITLE"'],
    ["twice", "echo ${{ inputs.title }} ${{ inputs.title }}", 'echo "$TITLE" "$TITLE"'],
    ["two of them", "echo ${{ inputs.title }} ${{ inputs.other-one }}", 'echo "$TITLE" "$OTHER_ONE"'],
    [
      "one with quotes of its own",
      "echo ${{ format('{0} ''x'' \"y\"', inputs.title) }} 'b ${{ inputs.title }}'",
      "echo \"$Y_TITLE\" 'b '\"$TITLE\"''",
    ],
    ["a name that programs read", "echo ${{ inputs.path }}", 'echo "$PATH_VALUE"'],
    ["a name the script has already", "TITLE=1; echo ${{ inputs.title }}", 'TITLE=1; echo "$TITLE_2"'],
  ])("%s", async (_, script, expected) => {
    const { text, left } = await fixed(`${head}steps:\n  a:\n    run: |\n      ${script}\n`);
    expect(left).toEqual([]);
    expect(text).toContain(`    run: |\n      ${expected}`);
    expect(text).toMatch(/ {4}env:\n {6}[A-Z]/);
  });

  test.each([
    [
      "no env",
      "    run: echo x ${{ inputs.title }}\n",
      '    env:\n      TITLE: "${{ inputs.title }}"\n    run: echo x "$TITLE"\n',
    ],
    [
      "an env of its own",
      "    env:\n      A: b\n    run: echo x ${{ inputs.title }}\n",
      '    env:\n      TITLE: "${{ inputs.title }}"\n      A: b\n    run: echo x "$TITLE"\n',
    ],
    [
      "an env in braces",
      "    env: { A: b }\n    run: echo x ${{ inputs.title }}\n",
      '    env: { TITLE: "${{ inputs.title }}", A: b }\n    run: echo x "$TITLE"\n',
    ],
    [
      "an env that has it already",
      '    env: { TITLE: "${{ inputs.title }}" }\n    run: echo x ${{ inputs.title }}\n',
      '    env: { TITLE: "${{ inputs.title }}" }\n    run: echo x "$TITLE"\n',
    ],
    [
      "an env that has the name for something else",
      "    env: { TITLE: b }\n    run: echo x ${{ inputs.title }}\n",
      '    env: { TITLE_2: "${{ inputs.title }}", TITLE: b }\n    run: echo x "$TITLE_2"\n',
    ],
    [
      "an undo",
      "    run: 'true'\n    undo:\n      run: echo x ${{ inputs.title }}\n",
      '    run: \'true\'\n    undo:\n      env:\n        TITLE: "${{ inputs.title }}"\n      run: echo x "$TITLE"\n',
    ],
  ])("with %s", async (_, step, expected) => {
    const { text, left } = await fixed(`${head}steps:\n  a:\n${step}`);
    expect([text, left]).toEqual([`${head}steps:\n  a:\n${expected}`, []]);
  });

  test("under two names where two expressions would share one", async () => {
    const { text, left } = await fixed(
      "vars: { a-b: 1, a_b: 2 }\nsteps:\n  a:\n    run: |\n      echo ${{ vars.a-b }} ${{ vars.a_b }}\n",
    );
    expect(left).toEqual([]);
    expect(text).toContain('A_B: "${{ vars.a-b }}"\n      A_B_2: "${{ vars.a_b }}"');
  });
});

describe("nothing is rewritten where a variable would still be code, or quotes are not known:", () => {
  test.each([
    ["a here-document", "cat <<EOF\n      ${{ inputs.title }}\n      EOF"],
    ["a substitution", "echo $(echo ${{ inputs.title }})"],
    ["backquotes", "echo `echo ${{ inputs.title }}`"],
    ["arithmetic", "echo $(( ${{ inputs.title }} ))"],
    ["an arithmetic command", "(( ${{ inputs.title }} > 1 ))"],
    ["a conditional expression", "[[ ${{ inputs.title }} -gt 1 ]]"],
    ["eval", "eval echo ${{ inputs.title }}"],
    ["eval after another command", 'true && eval "echo ${{ inputs.title }}"'],
    ["another shell", "bash -c 'echo ${{ inputs.title }}'"],
    ["another language", "python3 -c 'print(${{ inputs.title }})'"],
    ["declare", "declare -i n=${{ inputs.title }}"],
    ["a subscript", "a[${{ inputs.title }}]=1"],
    ["a default value", "echo ${x:-${{ inputs.title }}}"],
    ["an escape", "echo \\${{ inputs.title }}"],
    ["a comment", "echo a # ${{ inputs.title }}"],
    ["a text with escapes", "echo $'a ${{ inputs.title }}'"],
  ])("%s", async (_, script) => {
    const written = `${head}steps:\n  a:\n    run: |\n      ${script}\n`;
    const { text, left } = await fixed(written);
    expect([text, left]).toEqual([written, ["FLOW8002"]]);
  });

  test.each([
    ["a script in quotes", 'run: "echo ${{ inputs.title }}"'],
    ["a folded script", "run: >\n      echo ${{ inputs.title }}"],
    ["a script of another program", "shell: python3\n    run: |\n      print('${{ inputs.title }}')"],
    ["a script that is nothing else", "run: ${{ inputs.title }}"],
  ])("%s", async (_, lines) => {
    const written = `${head}steps:\n  a:\n    ${lines}\n`;
    expect(await fixed(written)).toEqual({ text: written, left: ["FLOW8002"] });
  });
});

const payloads = [
  "$(touch HIT)",
  "`touch HIT`",
  "; touch HIT",
  "' ; touch HIT; '",
  '" ; touch HIT; "',
  "a[$(touch HIT)]",
  "$X ${X}",
  "a\nb",
  "  two  spaces ",
  "*",
  "~",
  "-n",
  "\\",
  "\\n",
  "!!",
  "é修",
  "'",
  '"',
  "#",
  "&",
  "|",
  ">HIT",
  "{a,b}",
  "%s",
];

describe("the rewritten script gives the value, and nothing of it runs:", () => {
  test.each([
    ["a word", "printf '<%s>' ${{ inputs.title }}"],
    ["double quotes", "printf '<%s>' \"${{ inputs.title }}\""],
    ["single quotes", "printf '<%s>' '${{ inputs.title }}'"],
    ["behind other quotes", "printf '<%s>' \"it's \"'\"'${{ inputs.title }}"],
  ])(
    "%s",
    async (_, script) => {
      const { left } = await fixed(
        `inputs: { title: { type: string } }\nsteps:\n  a:\n    run: |\n      ${script}\noutputs: { v: "\${{ steps.a.outputs.stdout }}" }\n`,
      );
      expect(left).toEqual([]);
      for (const value of payloads) {
        const result = await run({
          file: "main.yaml",
          cwd: folder,
          runsDir: join(folder, "runs"),
          inputs: { title: value },
        });
        const outputs = result.started ? result.end.outputs : {};
        const printed = outputs["v"];
        expect(printed).toMatch(/^<[^]*>$/);
        expect(typeof printed === "string" && printed.slice(0, -1).endsWith(value)).toBe(true);
      }
      expect(existsSync(join(folder, "HIT"))).toBe(false);
    },
    60_000,
  );

  test("in whatever quotes bash finds the place", () => {
    const pieces = fc.constantFrom(
      "a",
      " ",
      "'b c'",
      '"d e"',
      "\\'",
      '\\"',
      "\\\\",
      '"it\'s"',
      "'\"'",
      "$HOME",
      "${HOME}",
      "\n: ",
      "; : ",
      "\n# it's\n: ",
      "|| : ",
    );
    const openings = fc.constantFrom("", "'", '"', "'x ", '"y ', "\"z' ", "'\" ");
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 6 }),
        openings,
        fc.constantFrom(...payloads),
        (parts, opening, value) => {
          const before = `: ${parts.join("")}; printf '<%s>' ${opening}`;
          const quoting = quotingAfter(before);
          fc.pre(quoting !== undefined);
          const close = quoting === "word" ? "" : quoting === "single" ? "'" : '"';
          const place = { word: '"$V"', double: "${V}", single: "'\"$V\"'" }[quoting];
          const printed = execFileSync("bash", ["--noprofile", "--norc", "-c", `${before}${place}${close}`], {
            cwd: folder,
            env: { V: value, HOME: "/h", PATH: "/usr/bin:/bin" },
            encoding: "utf8",
          });
          expect(printed).toBe(`<${opening.slice(1)}${value}>`);
        },
      ),
      { numRuns: 150 },
    );
    expect(existsSync(join(folder, "HIT"))).toBe(false);
  }, 60_000);
});
