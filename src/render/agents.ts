import type { Json } from "../model/json.ts";
import { cut, pad } from "./display.ts";
import { oneLine } from "./words.ts";

interface Row {
  readonly name: string;
  readonly file: string;
  readonly description: string | null;
  readonly hidden: boolean;
  readonly disabled: boolean;
  readonly errors: number;
}

/** One line an agent: its name, its file, what it is for. Ends in a newline. */
export function agentTable(rows: readonly Row[]): string {
  const names = widest(rows.map(({ name }) => name));
  const files = widest(rows.map(({ file }) => file));
  const lines = rows.map(({ name, file, description, hidden, disabled, errors }) => {
    const marks = [...(hidden ? ["hidden"] : []), ...(disabled ? ["disabled"] : []), ...(errors > 0 ? ["broken"] : [])];
    const about = `${marks.length > 0 ? `[${marks.join(", ")}] ` : ""}${oneLine(description ?? "")}`;
    return `${pad(name, names)}  ${pad(file, files)}  ${cut(about, 60)}`.trimEnd();
  });
  return `${lines.join("\n")}\n`;
}

const programs: { readonly [dialect: string]: string } = {
  claude: "Claude Code",
  opencode: "OpenCode",
  gemini: "Gemini CLI",
};

interface Explanation {
  readonly name: string;
  readonly description: string | null;
  readonly file: string;
  readonly dialect: string;
  readonly fields: readonly {
    readonly key: string;
    readonly fate: string;
    readonly to?: string;
    readonly note?: string;
    readonly line: number;
  }[];
  readonly effective: readonly {
    readonly key: string;
    readonly value: Json;
    readonly layer: string;
    readonly place?: string;
  }[];
  readonly tools: readonly { readonly name: string; readonly most: string }[];
  readonly rules: readonly {
    readonly rule: string;
    readonly decision: string;
    readonly layer: string;
    readonly place?: string;
  }[];
  readonly servers: readonly { readonly name: string; readonly file: string }[];
}

/** An agent, what its fields became, what holds and who says so. Ends in a newline. */
export function explanation({
  name,
  description,
  file,
  dialect,
  fields,
  effective,
  tools,
  rules,
  servers,
}: Explanation): string {
  const program = Object.hasOwn(programs, dialect) ? `, a file of ${programs[dialect]}` : "";
  const blocks = [
    [`${name} (${file}${program})`, ...(description === null ? [] : [`  ${cut(oneLine(description), 96)}`])],
    table(
      "fields of the file",
      fields.map(({ key, fate, to, note, line }) => [
        `${line}`,
        key,
        fate,
        [to === key ? undefined : to, note].filter((it) => it !== undefined).join(": "),
      ]),
    ),
    table(
      "what holds",
      effective.map(({ key, value, layer, place }) => [
        key,
        cut(text(value), 60),
        place === undefined ? layer : `${layer} ${place}`,
      ]),
    ),
    table(
      "tools, with the most a call can get",
      tools.map((tool) => [tool.name, words[tool.most] ?? tool.most]),
    ),
    table(
      "MCP servers, and where they are defined",
      servers.map((server) => [server.name, server.file]),
    ),
    table(
      "rules that somebody wrote",
      rules.map(({ rule, decision, layer, place }) => [
        decision,
        rule,
        place === undefined ? layer : `${layer} ${place}`,
      ]),
    ),
  ];
  return `${blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

const words: { readonly [decision: string]: string } = { allow: "allow", ask: "ask", deny: "deny (not offered)" };

function text(value: Json): string {
  return oneLine(typeof value === "string" ? value : JSON.stringify(value));
}

function table(title: string, rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const count = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, column) => widest(rows.map((row) => row[column] ?? "")));
  return [
    title,
    ...rows.map((row) => `  ${row.map((cell, column) => pad(cell, widths[column] ?? 0)).join("  ")}`.trimEnd()),
  ];
}

function widest(texts: readonly string[]): number {
  return texts.reduce((width, it) => Math.max(width, it.length), 0);
}
