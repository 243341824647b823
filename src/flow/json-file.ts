import { isJsonObject, type JsonObject, parseJson } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { readSource } from "../source/read.ts";
import { decode } from "../source/text.ts";

/** The JSON object in a file, read as strictly as a workflow is. The error goes on after the name of the file. */
export async function readJsonObject(path: string): Promise<Result<JsonObject, string>> {
  const bytes = await readSource(path);
  if (!bytes.ok) return err(`cannot be read: ${bytes.error.message}`);
  const text = decode(bytes.value, path);
  if (!text.ok) {
    const { message, at } = text.error;
    return err(`is not text: ${message} (line ${at.line}, column ${at.column})`);
  }
  const read = parseJson(text.value);
  if (!read.ok) return err(`${read.error.isJson ? "cannot be kept as it is" : "is not JSON"}: ${read.error.message}`);
  return isJsonObject(read.value) ? ok(read.value) : err("does not hold a JSON object");
}
