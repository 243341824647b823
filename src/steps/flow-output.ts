import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { isReservedName, namePattern } from "../model/ids.ts";
import { err, ok, type Result } from "../model/result.ts";

/** What a script wrote to `$FLOW_OUTPUT`. Keys are unique ignoring case. */
export type FlowOutput = ReadonlyMap<string, string>;

const maxBytes = 1024 * 1024;

/**
 * Reads what a script left at the path of `$FLOW_OUTPUT`; a file it removed is empty. The script owns the path, so
 * nothing is followed and nothing waited for: a link or a FIFO there is an error.
 */
export function readFlowOutput(path: string): Result<FlowOutput, string> {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "ENOENT" ? ok(new Map()) : err(`$FLOW_OUTPUT cannot be read (${String(code)})`);
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return err("$FLOW_OUTPUT is no regular file any more");
    if (stats.size === 0) return ok(new Map());
    if (stats.size > maxBytes) return err(`$FLOW_OUTPUT holds ${stats.size} bytes, more than ${maxBytes}`);
    return parseFlowOutput(readFileSync(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

/** Lines of `key=value`, or `key<<WORD`, the value's lines, `WORD`. Values are taken byte for byte. */
export function parseFlowOutput(bytes: Uint8Array): Result<FlowOutput, string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let lines: string[];
  try {
    lines = decoder.decode(bytes).split("\n");
  } catch {
    return err(`line ${firstBrokenLine(bytes)} of $FLOW_OUTPUT is not UTF-8`);
  }
  const values = new Map<string, string>();
  const seen = new Set<string>();
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (line === "") continue;
    const at = `line ${index + 1} of $FLOW_OUTPUT`;
    const entry = readEntry(lines, index);
    if (!entry.ok) return err(`${at}${entry.error}`);
    const { key, value, last } = entry.value;
    const problem = keyProblem(key, seen);
    if (problem !== undefined) return err(`${at}: ${problem}`);
    seen.add(key.toLowerCase());
    values.set(key, value);
    index = last;
  }
  return ok(values);
}

/** From 1. */
function firstBrokenLine(bytes: Uint8Array): number {
  const text = Buffer.from(bytes).toString("latin1").split("\n");
  return text.findIndex((line) => !isUtf8(Buffer.from(line, "latin1"))) + 1;
}

interface Entry {
  readonly key: string;
  readonly value: string;
  /** Index of the entry's last line. */
  readonly last: number;
}

function readEntry(lines: readonly string[], index: number): Result<Entry, string> {
  const line = lines[index] ?? "";
  const equals = line.indexOf("=");
  const heredoc = line.indexOf("<<");
  if (equals === -1 && heredoc === -1) return err(` is neither key=value nor key<<WORD: ${shown(line)}`);
  if (heredoc === -1 || (equals !== -1 && equals < heredoc))
    return ok({ key: line.slice(0, equals), value: line.slice(equals + 1), last: index });
  const word = line.slice(heredoc + 2);
  if (word === "") return err(" has no word after <<");
  const last = lines.indexOf(word, index + 1);
  if (last === -1) return err(` begins a value that no line ${shown(word)} ends`);
  return ok({ key: line.slice(0, heredoc), value: lines.slice(index + 1, last).join("\n"), last });
}

function keyProblem(key: string, seen: ReadonlySet<string>): string | undefined {
  if (!namePattern.test(key)) return `${shown(key)} is not a name (letters, digits, _ and -, no digit first)`;
  if (isReservedName(key)) return `${shown(key)} is a reserved name`;
  if (streamNames.has(key.toLowerCase())) return `${shown(key)} is an output every run step has already`;
  return seen.has(key.toLowerCase()) ? `${shown(key)} is written twice (names ignore case)` : undefined;
}

/** The outputs that every `run` step has. */
export const streamNames: ReadonlySet<string> = new Set(["stdout", "stderr", "exit-code"]);

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
