import { Argument, type Command } from "commander";
import { existsSync, readFileSync } from "node:fs";
import { print } from "../output.ts";

export function defineSchema(program: Command): void {
  program
    .command("schema")
    .description("print a JSON Schema of flow's files")
    .addArgument(new Argument("<name>", "which one").choices(["workflow", "agent", "event", "config", "managed"]))
    .action((name: string) =>
      print(["workflow", "config", "managed"].includes(name) ? selfContained(read(name), read("agent")) : read(name)),
    );
}

/** A schema with that of an agent inside, of which it uses parts, so that one file is enough for an editor. */
function selfContained(workflow: string, agent: string): string {
  const inside = "#/$defs/agentFile";
  const whole = JSON.parse(workflow.replaceAll(/"agent\.schema\.json(?:#([^"]*))?"/g, `"${inside}$1"`)) as Schema;
  const { $id: _, $schema: __, ...part } = JSON.parse(agent.replaceAll('"$ref": "#', `"$ref": "${inside}`)) as Schema;
  return `${JSON.stringify({ ...whole, $defs: { ...whole.$defs, agentFile: part } }, null, 2)}\n`;
}

interface Schema {
  readonly $id?: string;
  readonly $schema?: string;
  readonly $defs?: object;
}

function read(name: string): string {
  return readFileSync(schemaFile(name), "utf8");
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
