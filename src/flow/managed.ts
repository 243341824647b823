import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Managed, ManagedFile } from "./managed-read.ts";
import type { ConfigPlace } from "./config-files.ts";
import type { ConfigProblem } from "./config-read.ts";
import { err, ok, type Result } from "../model/result.ts";

/** Where whoever looks after a machine says what no run on it may do. */
const place = "/etc/flow/managed.yaml";

/**
 * What this machine restricts, and what the file `FLOW_MANAGED` names does beside it; undefined where there is neither. A
 * file that cannot be read or understood is an error: what it forbids would be allowed.
 */
export async function managedOf({
  cwd,
  env,
}: Pick<ConfigPlace, "cwd" | "env">): Promise<Result<Managed | undefined, ConfigProblem>> {
  const files = managedFiles({ cwd, env });
  if (files.length === 0) return ok(undefined);
  return (await import("./managed-read.ts")).readManaged(files);
}

/** The files that restrict here, whether they can be read or not. */
export function managedFiles({ cwd, env }: Pick<ConfigPlace, "cwd" | "env">): readonly ManagedFile[] {
  const named = env["FLOW_MANAGED"] ?? "";
  return [
    ...(isThere(place) ? [{ path: place, shown: place }] : []),
    ...(named === "" ? [] : [{ path: resolve(cwd, named), shown: named }]),
  ];
}

/** As {@link managedOf}; the error is its first problem with its place, in one line. */
export async function managedIn(where: Pick<ConfigPlace, "cwd" | "env">): Promise<Result<Managed | undefined, string>> {
  const managed = await managedOf(where);
  if (managed.ok) return managed;
  const [first] = managed.error.diagnostics;
  if (first === undefined) return err("the managed file cannot be read");
  const hint = first.suggestion === undefined ? "" : ` (${first.suggestion})`;
  return err(`${first.at.file}:${first.at.line}:${first.at.column} ${first.message}${hint}`);
}

/** A file that is there and that nobody here may look at is no missing one. */
function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}
