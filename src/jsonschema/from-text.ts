import { isJsonObject, isKept, type Json, own, parseJson } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";

/**
 * A text that somebody typed as the type its schema declares: texts stay texts unless a number, a boolean or JSON is
 * asked for. Whether the value fits the rest of the schema is another question.
 */
export function fromText(text: string, schema: Json): Result<Json, string> {
  const types = isJsonObject(schema) ? [own(schema, "type") ?? []].flat() : [];
  if (types.length === 0) return ok(choice(text, schema));
  if (types.includes("string")) return ok(text);
  const reasons: string[] = [];
  for (const wanted of types) {
    const value = asType(text, typeof wanted === "string" ? wanted : "");
    if (value.ok) return value;
    reasons.push(value.error);
  }
  return err(`${reasons.join(" or ")}; given was ${JSON.stringify(text.slice(0, 60))}`);
}

/** The one of the values a schema without a type lists that is written so. */
function choice(text: string, schema: Json): Json {
  const listed = isJsonObject(schema) ? own(schema, "enum") : undefined;
  return (Array.isArray(listed) ? listed.find((value) => JSON.stringify(value) === text) : undefined) ?? text;
}

function asType(text: string, type: string): Result<Json, string> {
  switch (type) {
    case "number":
    case "integer": {
      const written = text.trim();
      const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(written);
      if (isNumber && isKept(written)) return ok(Number(written));
      const wanted = type === "integer" ? "must be a whole number" : "must be a number";
      return err(
        isNumber ? `${wanted} that is kept exactly, and this is too large (\`type: string\` keeps it as text)` : wanted,
      );
    }
    case "boolean":
      return text === "true" || text === "false" ? ok(text === "true") : err("must be `true` or `false`");
    case "null":
      return text === "null" ? ok(null) : err("must be `null`");
    default: {
      const read = parseJson(text);
      if (!read.ok && read.error.isJson) return err(`must be JSON that can be kept as it is: ${read.error.message}`);
      const fits = read.ok && (type === "array" ? Array.isArray(read.value) : isJsonObject(read.value));
      return fits ? read : err(`must be a JSON ${type}, such as ${type === "array" ? "'[1, 2]'" : `'{"a": 1}'`}`);
    }
  }
}
