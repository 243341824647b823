import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { lookingAround } from "./attacks.ts";
import { commands } from "./generated.ts";
import { bash, rightsUnder } from "./rights.ts";

/** A tenth of what `npm run torture` does. */
const wanted = process.env["FLOW_TORTURE"] === undefined ? 1_000 : 10_000;
const batch = 100;

const folder = realpathSync(mkdtempSync(join(tmpdir(), "flow-generated-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const programs = join(folder, "bin");
const marker = join(folder, "marker");
mkdirSync(programs);
writeFileSync(join(programs, "evil"), `#!/bin/sh\necho evil >> ${marker}\n`, { mode: 0o755 });
for (const harmless of ["ls", "cat", "git"])
  writeFileSync(join(programs, harmless), "#!/bin/sh\nexit 0\n", { mode: 0o755 });

/** Runs each in a bash of its own that finds nothing but our programs, in an empty folder. What happened beside: a file, the marker. */
function run(lines: readonly string[]): readonly string[] {
  const place = mkdtempSync(join(folder, "run-"));
  const script =
    'for line in "$@"; do (timeout 5 "$BASH" --noprofile --norc -c "$line") </dev/null >/dev/null 2>&1; done';
  spawnSync("bash", ["-c", script, "bash", ...lines], {
    cwd: place,
    env: { PATH: `${programs}:/usr/bin:/bin`, HOME: place },
  });
  return [
    ...(existsSync(marker) ? ["the marker program ran"] : []),
    ...readdirSync(place).map((name) => `the file ${name}`),
  ];
}

describe("generated commands that are allowed", () => {
  it(`run in real bash without any effect, ${wanted} of them`, { timeout: 600_000 }, async () => {
    const rights = rightsUnder({ allow: [...lookingAround.allow, "Bash(true *)"] });
    const next = commands(20_260_101);
    const allowed = new Set<string>();
    let seen = 0;
    while (allowed.size < wanted) {
      const command = next();
      seen += 1;
      if ((await bash(rights, command)).decision === "allow") allowed.add(command);
    }
    const all = [...allowed];
    for (let at = 0; at < all.length; at += batch) {
      const some = all.slice(at, at + batch);
      if (run(some).length > 0) {
        rmSync(marker, { force: true });
        const guilty = some.filter((command) => run([command]).length > 0);
        expect(guilty, "these were allowed").toEqual([]);
      }
    }
    expect(seen).toBeGreaterThan(wanted);
  });

  it("the marker program does run when it is called", () => {
    expect(run(["evil"])).toContain("the marker program ran");
    rmSync(marker);
  });
});
