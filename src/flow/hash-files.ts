import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../model/result.ts";

type HashFiles = (globs: readonly string[]) => Result<string, string>;

const fileLimit = 10_000;

/** `hashFiles(globs…)`: sha256 over the paths and contents of the files in `cwd` that match, in order of path; '' for none. */
export async function loadHashFiles(cwd: string): Promise<HashFiles> {
  const { globSync } = await import("tinyglobby");
  return (globs) => {
    const paths = globSync([...globs], {
      cwd,
      followSymbolicLinks: false,
      dot: true,
      ignore: ["**/.git/**", "**/.flow/**"],
    }).sort();
    if (paths.length > fileLimit) return err(`hashFiles() matches more than ${fileLimit} files`);
    if (paths.length === 0) return ok("");
    const hash = createHash("sha256");
    for (const path of paths) {
      const file = join(cwd, path);
      if (!statSync(file).isFile()) continue;
      const content = createHash("sha256").update(readFileSync(file)).digest("hex");
      hash.update(`${JSON.stringify(path)}:${content}\n`);
    }
    return ok(hash.digest("hex"));
  };
}
