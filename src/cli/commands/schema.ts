import { Argument, type Command } from "commander";
import { existsSync, readFileSync } from "node:fs";
import { print } from "../output.ts";

export function defineSchema(program: Command): void {
  program
    .command("schema")
    .description("print a JSON Schema of flow's files")
    .addArgument(new Argument("<name>", "which one").choices(["workflow", "agent", "event"]))
    .action((name: string) => print(readFileSync(schemaFile(name), "utf8")));
}

/** The schemas lie beside `dist` and `src`; this file may be in either, or in a chunk one folder deeper. */
function schemaFile(name: string): URL {
  const places = ["../", "../../", "../../../"].map(
    (up) => new URL(`${up}schemas/${name}.schema.json`, import.meta.url),
  );
  const found = places.find((place) => existsSync(place));
  if (!found) throw new Error(`schemas/${name}.schema.json is missing from this installation`);
  return found;
}
