import { type JsonObject, own } from "../model/json.ts";

/** Arguments were checked against the tool's schema before; these only read them with their types. */
export function textArgument(args: JsonObject, name: string): string | undefined {
  const value = own(args, name);
  return typeof value === "string" ? value : undefined;
}

export function wholeArgument(args: JsonObject, name: string): number | undefined {
  const value = own(args, name);
  return typeof value === "number" && Number.isInteger(value) ? value : undefined;
}

export function flagArgument(args: JsonObject, name: string): boolean | undefined {
  const value = own(args, name);
  return typeof value === "boolean" ? value : undefined;
}
