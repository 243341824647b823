import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Conditions } from "./requests.ts";

/** What is wrong with `--script` or `--replay` as far as it can be seen without reading it; also where no agent asks for it. */
export async function repliesProblem(
  { script, replay, runsDir }: Pick<Conditions, "script" | "replay" | "runsDir">,
  cwd: string,
): Promise<string | undefined> {
  if (script !== undefined && replay !== undefined) return "--script and --replay exclude each other";
  if (script !== undefined && !existsSync(resolve(cwd, script))) return `--script: there is no file ${script}`;
  if (replay === undefined) return undefined;
  const { locateLog } = await import("./cassette.ts");
  const found = locateLog(replay, { cwd, ...(runsDir !== undefined && { runsDir }) });
  return found.ok ? undefined : `--replay: ${found.error}`;
}
