import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The folder of the agents that come with flow. It lies beside `dist` and `src`; this file may be in either. */
export function builtInAgentsFolder(): string {
  const places = ["../agents", "../../agents"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const found = places.find((place) => existsSync(`${place}/general.md`));
  if (found === undefined) throw new Error("the folder `agents` is missing from this installation");
  return found;
}
