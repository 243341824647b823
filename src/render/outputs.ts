import type { Json, JsonObject } from "../model/json.ts";
import { visible } from "./display.ts";

/** A run's outputs for people and simple scripts: `name: value`, a text of several lines as an indented block. */
export function renderOutputs(outputs: JsonObject): string {
  return Object.entries(outputs)
    .map(([name, value]) => `${name}: ${outputText(value)}\n`)
    .join("");
}

/**
 * The answer of an agent that was run by itself: its text, or its object as JSON. A program gets it as it is; a terminal
 * would obey some of its characters.
 */
export function renderAnswer(answer: Json, to: "program" | "terminal"): string {
  const text = typeof answer === "string" ? answer.replace(/\n+$/, "") : JSON.stringify(answer, null, 2);
  return `${
    to === "program"
      ? text
      : text
          .split(/([\n\t])/)
          .map(shown)
          .join("")
  }\n`;
}

function shown(piece: string): string {
  return piece === "\n" || piece === "\t" ? piece : visible(piece);
}

function outputText(value: Json): string {
  if (typeof value !== "string") return visible(JSON.stringify(value));
  const lines = value.replace(/\n+$/, "").split("\n");
  if (lines.length === 1) return visible(lines[0] ?? "");
  return `|\n${lines.map((line) => (line === "" ? "" : `  ${visible(line)}`)).join("\n")}`;
}
