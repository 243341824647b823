import { InvalidArgumentError } from "commander";
import type { JsonObject } from "../model/json.ts";

/** Everything on standard input, for a workflow given as `-`. */
export async function readStdin(file: string): Promise<{ stdin?: Uint8Array }> {
  if (file !== "-") return {};
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array);
  return { stdin: Buffer.concat(chunks) };
}

/** `name=text` of `--input`, repeatable. */
export function parseInput(
  argument: string,
  before: readonly { name: string; text: string }[] = [],
): { name: string; text: string }[] {
  const at = argument.indexOf("=");
  if (at <= 0) throw new InvalidArgumentError("write it as name=value.");
  return [...before, { name: argument.slice(0, at), text: argument.slice(at + 1) }];
}

/** A JSON object from a file. */
export async function readJsonFile(path: string, what: string): Promise<JsonObject> {
  const { readJsonObject } = await import("../flow/json-file.ts");
  const read = await readJsonObject(path);
  if (!read.ok) throw new InvalidArgumentError(`${what}: ${path} ${read.error}.`);
  return read.value;
}
