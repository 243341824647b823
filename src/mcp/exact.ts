import { isJsonObject, type Json, parseJson } from "../model/json.ts";

/**
 * A message of the wire as it came, but for structured content that cannot be kept as it is written: a number in it that
 * would become another one makes an error of the answer. Whoever parses the text later can trust what it reads.
 */
export function exactMessage(text: string): string {
  if (!text.includes('"structuredContent"')) return text;
  const read = parseJson(text);
  if (read.ok || !read.error.isJson) return text;
  const why = `what it gave was not taken: ${read.error.message}`;
  const message = JSON.parse(text) as Json;
  return JSON.stringify(Array.isArray(message) ? message.map((one) => refused(one, why)) : refused(message, why));
}

function refused(message: Json, why: string): Json {
  if (!isJsonObject(message) || !isJsonObject(message["result"])) return message;
  if (!Object.hasOwn(message["result"], "structuredContent")) return message;
  return { jsonrpc: "2.0", id: message["id"] ?? null, error: { code: -32603, message: why } };
}
