import type { Json, JsonObject } from "../model/json.ts";
import { visible } from "./display.ts";

/** A run's outputs for people and simple scripts: `name: value`, a text of several lines as an indented block. */
export function renderOutputs(outputs: JsonObject): string {
  return Object.entries(outputs)
    .map(([name, value]) => `${name}: ${outputText(value)}\n`)
    .join("");
}

function outputText(value: Json): string {
  if (typeof value !== "string") return visible(JSON.stringify(value));
  const lines = value.replace(/\n+$/, "").split("\n");
  if (lines.length === 1) return visible(lines[0] ?? "");
  return `|\n${lines.map((line) => (line === "" ? "" : `  ${visible(line)}`)).join("\n")}`;
}
