import { compileSchema } from "../jsonschema/compile.ts";
import { fromText } from "../jsonschema/from-text.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { FormField } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";

/** The fields of a form, in the order they are written; none without a form. */
export function fieldsOf(form: Json | undefined): FormField[] {
  const required = listOf(form, "required");
  return Object.entries(propertiesOf(form)).map(([name, schema]) => {
    const described = isJsonObject(schema) ? schema : {};
    const { description, default: byDefault } = described;
    const types = [own(described, "type") ?? "text"].flat();
    const type = types.filter((one) => typeof one === "string").join(" or ");
    const choices = listOf(described, "enum").map((value) =>
      typeof value === "string" ? value : JSON.stringify(value),
    );
    return {
      name,
      type: type === "string" ? "text" : type,
      ...(typeof description === "string" && { description }),
      ...(choices.length > 0 && { choices }),
      ...(byDefault !== undefined && { default: byDefault }),
      required: required.includes(name),
    };
  });
}

/** What somebody typed for a field as the value it means. */
export async function readField(form: Json, name: string, text: string): Promise<Result<Json, string>> {
  const value = fromText(text, own(propertiesOf(form), name) ?? {});
  if (!value.ok) return value;
  const { required: _, ...rest } = isJsonObject(form) ? form : {};
  const check = await compileSchema(rest);
  const issues = check.ok ? check.value({ [name]: value.value }).filter(({ path }) => path[0] === name) : [];
  return issues.length === 0 ? value : err(issues.map(({ message }) => message).join("; "));
}

/** The values with the defaults of those that are not there; or what is wrong with them, a sentence a field. */
export async function fitForm(
  form: Json | undefined,
  given: JsonObject,
): Promise<Result<JsonObject, readonly string[]>> {
  const defaults = fieldsOf(form).flatMap(({ name, default: value }) => (value === undefined ? [] : [[name, value]]));
  const values: JsonObject = { ...(Object.fromEntries(defaults) as JsonObject), ...given };
  const known = Object.keys(propertiesOf(form));
  const extra = Object.keys(given).filter((name) => !known.includes(name) && !isOpen(form));
  if (extra.length > 0) {
    const has = known.length === 0 ? "it has none" : `it has ${known.map((name) => `\`${name}\``).join(", ")}`;
    return err(extra.map((name) => `there is no field \`${name}\`; ${has}`));
  }
  if (form === undefined) return ok(values);
  const check = await compileSchema(form);
  const issues = check.ok ? check.value(values) : check.error;
  if (issues.length === 0) return ok(values);
  return err(issues.map(({ path, message }) => (path.length === 0 ? message : `\`${path.join(".")}\` ${message}`)));
}

/** Whether the form says that it takes fields it does not list. */
function isOpen(form: Json | undefined): boolean {
  if (!isJsonObject(form)) return false;
  const more = own(form, "additionalProperties");
  return (more !== undefined && more !== false) || own(form, "patternProperties") !== undefined;
}

function propertiesOf(form: Json | undefined): JsonObject {
  const properties = isJsonObject(form) ? own(form, "properties") : undefined;
  return isJsonObject(properties) ? properties : {};
}

function listOf(schema: Json | undefined, key: string): Json[] {
  const list = isJsonObject(schema) ? own(schema, key) : undefined;
  return Array.isArray(list) ? list : [];
}
