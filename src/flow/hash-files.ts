import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { PlanFile } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";

type HashFiles = (globs: readonly string[]) => Result<string, string>;
type ListFiles = (globs: readonly string[]) => Result<readonly PlanFile[], string>;

const fileLimit = 10_000;

/** `hashFiles(globs…)`: sha256 over the paths and contents of the files in `cwd` that match, in order of path; '' for none. */
export async function loadHashFiles(cwd: string): Promise<HashFiles> {
  const listFiles = await loadListFiles(cwd);
  return (globs) => {
    const files = listFiles(globs);
    if (!files.ok) return err(`hashFiles() ${files.error}`);
    if (files.value.length === 0) return ok("");
    const hash = createHash("sha256");
    for (const { path, sha256 } of files.value) hash.update(`${JSON.stringify(path)}:${sha256}\n`);
    return ok(hash.digest("hex"));
  };
}

/** The files in a folder that match, in order of path, with what they hold. The error ends a sentence about who asks. */
export async function loadListFiles(folder: string): Promise<ListFiles> {
  const { globSync } = await import("tinyglobby");
  return (globs) => {
    const paths = globSync([...globs], {
      cwd: folder,
      followSymbolicLinks: false,
      dot: true,
      ignore: ["**/.git/**", "**/.flow/**"],
    }).sort();
    if (paths.length > fileLimit) return err(`matches more than ${fileLimit} files`);
    return ok(
      paths.flatMap((path) => {
        const file = join(folder, path);
        if (!statSync(file).isFile()) return [];
        return [{ path, sha256: createHash("sha256").update(readFileSync(file)).digest("hex") }];
      }),
    );
  };
}
