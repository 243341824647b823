import type { Event, LogLine } from "../model/event.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { cut, pad } from "./display.ts";
import { plainProgress } from "./progress.ts";
import { oneLine, tidy } from "./words.ts";

export interface LogLinesOptions {
  /** 1: turns and tool calls, 2: messages too. */
  readonly verbose: 1 | 2;
  /** Lines of what a command wrote that are shown: all of them, or the last few of one that failed. */
  readonly output: "all" | "failed";
  /** Every event has a line, also those that a reader rarely wants. */
  readonly everyEvent: boolean;
  readonly width?: number;
}

/** Lines of one event, which may be of a type nobody here knows. */
export interface LogLines {
  event(line: LogLine): string[];
  unknown(line: JsonObject & { readonly time: string }): string[];
}

const lastLines = 20;
const longestLine = 2000;

/** The log in words: the lines a run prints while it goes on, and what its commands wrote. */
export function logLines({ verbose, output, everyEvent, width }: LogLinesOptions): LogLines {
  const progress = plainProgress({ verbose, ...(width !== undefined && { width }) });
  const fits = (text: string): string => (width === undefined ? text : cut(text, width));
  return {
    event(line) {
      const said = progress(line);
      const wrote = line.type === "step.finished" ? written(line, output) : [];
      const lines = said.length === 0 && everyEvent ? [fields(line as unknown as JsonObject)] : said;
      return [...wrote, ...lines].map(fits);
    },
    unknown: (line) => [fits(fields(line))],
  };
}

/** Whether an event belongs to a step or to anything inside it. */
export function isInside(path: string, step: unknown): boolean {
  if (typeof step !== "string" || !step.startsWith(path)) return false;
  return step.length === path.length || "/[#".includes(step[path.length] ?? "");
}

/** The streams of a command, without its colours, marked so that nobody takes them for ours. */
function written(
  { outputs, outcome, step }: Extract<Event, { type: "step.finished" }>,
  output: "all" | "failed",
): string[] {
  if (!isJsonObject(outputs) || (output === "failed" && outcome !== "failure")) return [];
  return ["stdout", "stderr"].flatMap((stream) => {
    const text = own(outputs, stream);
    if (typeof text !== "string" || text === "") return [];
    const all = text.replace(/\n$/, "").split("\n");
    const shown = output === "all" ? all : all.slice(-lastLines);
    return shown.map((line) => `        ${pad(oneLine(step), 10)} | ${tidy(line.slice(0, longestLine))}`);
  });
}

const notTold = new Set(["seq", "time", "type", "step"]);

/** `21:55:46 build      step.attempt.started attempt=1`. */
function fields(line: JsonObject): string {
  const { time, type, step } = line;
  const told = Object.entries(line).filter(([name]) => !notTold.has(name));
  const words = [textOf(type), ...told.map(([name, value]) => `${oneLine(name)}=${brief(value)}`)].join(" ");
  return `${textOf(time).slice(11, 19)} ${pad(textOf(step), 10)} ${words}`;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? oneLine(value.slice(0, longestLine)) : "";
}

function brief(value: Json): string {
  return cut(oneLine(JSON.stringify(value).slice(0, 400)), 100);
}
