import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import type { ServerTool } from "./server.ts";

/** What a server offered when somebody looked at it: a hash of name, description and schemas, by the tool's name. */
export type Pin = ReadonlyMap<string, string>;

/** The pins of a project, by the file that defines a server and its name: `.mcp.json#github`. */
export type Pins = ReadonlyMap<string, Pin>;

export function pinOf(tools: readonly ServerTool[]): Pin {
  return new Map(tools.map(({ name, digest }) => [name, digest]));
}

/** What is not as it was pinned, in words; undefined when everything is. */
export function changeOf(pinned: Pin, now: Pin): string | undefined {
  const listed = (what: string, names: readonly string[]): string[] =>
    names.length === 0
      ? []
      : [
          `${what} ${names
            .toSorted()
            .map((name) => `\`${name}\``)
            .join(", ")}`,
        ];
  const changes = [
    ...listed(
      "added",
      [...now.keys()].filter((name) => !pinned.has(name)),
    ),
    ...listed(
      "removed",
      [...pinned.keys()].filter((name) => !now.has(name)),
    ),
    ...listed(
      "changed",
      [...now.keys()].filter((name) => pinned.has(name) && pinned.get(name) !== now.get(name)),
    ),
  ];
  return changes.length === 0 ? undefined : changes.join("; ");
}

export function pinKey({ file, name }: { readonly file: string; readonly name: string }): string {
  return `${file}#${name}`;
}

/** The text of `flow.lock`. The error says what is wrong with it. */
export function readPins(text: string): Result<Pins, string> {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return err(`it is not JSON: ${messageOf(error)}`);
  }
  const servers = isJsonObject(value) && own(value, "version") === 1 ? own(value, "mcp") : undefined;
  if (!isJsonObject(servers))
    return err("it is not a lock file of this version: `version` is not 1, or `mcp` is missing");
  const pins = new Map<string, Pin>();
  for (const [key, server] of Object.entries(servers)) {
    const tools = isJsonObject(server) ? own(server, "tools") : undefined;
    if (!isJsonObject(tools)) return err(`the entry ${JSON.stringify(key)} has no \`tools\``);
    const pin = Object.entries(tools).map(([name, digest]): [string, string] => [
      name,
      typeof digest === "string" ? digest : "",
    ]);
    pins.set(key, new Map(pin));
  }
  return ok(pins);
}

/** The same pins give the same text, so that a lock file changes in version control only when a server has. */
export function writePins(pins: Pins): string {
  const sorted = <T>(map: ReadonlyMap<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  const mcp: JsonObject = Object.fromEntries(
    sorted(pins).map(([key, pin]) => [key, { tools: Object.fromEntries(sorted(pin)) }]),
  );
  return `${JSON.stringify({ version: 1, mcp }, null, 2)}\n`;
}
