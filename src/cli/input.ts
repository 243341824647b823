import { InvalidArgumentError } from "commander";
import { readFileSync } from "node:fs";

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
export function readJsonFile(path: string, what: string): { [name: string]: unknown } {
  const value = parse(read(path, what), path, what);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new InvalidArgumentError(`${what}: ${path} does not hold a JSON object.`);
  return value as { [name: string]: unknown };
}

function read(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new InvalidArgumentError(
      `${what}: ${path} cannot be read (${error instanceof Error && "code" in error ? String(error.code) : String(error)}).`,
    );
  }
}

function parse(text: string, path: string, what: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new InvalidArgumentError(
      `${what}: ${path} is not JSON: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
}
