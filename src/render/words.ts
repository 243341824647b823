import type { Usage } from "../model/message.ts";
import type { StepOutcome } from "../model/outcome.ts";
import { cut, visible } from "./display.ts";

const excerptLength = 300;

/** Text of a step or a model on one line: line breaks and tabs become spaces, what a terminal would obey becomes visible. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\r\n\t]+/g, " ").trim());
}

/** A line a program wrote for a terminal, without its colours and what it wrote over; its indent stays. */
export function tidy(line: string): string {
  const last = line.replace(/\r+$/, "").split("\r").at(-1) ?? "";
  return visible(last.replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, "").replaceAll("\t", "    "));
}

/** `1.3k`, `20.2k`, `3.4M`. */
export function count(value: number): string {
  if (value < 1000) return String(value);
  return value < 999_950 ? `${(value / 1000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`;
}

/** Milliseconds as `4.3s`, `2m 05s`, `1h 02m`. */
export function duration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
}

/** US dollars; null is a price nobody knows, never 0. */
export function money(cost: number | null): string {
  if (cost === null) return "cost unknown";
  if (cost === 0) return "$0";
  return cost < 0.0005 ? "<$0.001" : `$${cost.toFixed(cost < 10 ? 3 : 2)}`;
}

export function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** The beginning of a text, in one line. */
export function excerpt(value: string): string {
  // Cut before cleaning too: a result may be long.
  return cut(oneLine(value.slice(0, excerptLength * 4)), excerptLength);
}

export function tokensOf({ input, output, cacheRead, cacheWrite }: Usage): number {
  return input + output + cacheRead + cacheWrite;
}

/** What was spent, behind a space; nothing where that is nothing. */
export function spent(usage: Usage): string {
  const tokens = tokensOf(usage);
  return tokens === 0 && usage.cost === 0 ? "" : ` ${count(tokens)} tok ${money(usage.cost)}`;
}

export function outcomeWord(outcome: StepOutcome | "waiting" | "empty"): string {
  if (outcome === "success") return "ok";
  return outcome === "failure" ? "failed" : outcome;
}
