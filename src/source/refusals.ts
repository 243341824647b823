import { quoted } from "./swallowed.ts";
import type { Problem } from "./text.ts";

export function tooDeep(text: string, at: number, max: number): Problem {
  return {
    code: "FLOW1010",
    message: `maps and lists are nested more than ${max} deep here`,
    from: at,
    to: Math.min(at + 1, text.length),
  };
}

export function directiveRefused(lexeme: string, at: number): Problem {
  const name = lexeme.split(/\s/, 1)[0] ?? "%";
  return {
    code: "FLOW1007",
    message: `the YAML directive ${shown(name)} is not allowed: every file is read as YAML 1.2`,
    from: at,
    to: at + lexeme.length,
    suggestion: "Remove the line.",
  };
}

/** A tag has no use in a workflow; most are a condition that begins with "not". */
export function tagRefused(text: string, at: number, tag: string): Problem {
  const line = (text.slice(at, at + maxShown).split("\n", 1)[0] ?? "").trimEnd();
  const condition = /(?:if|until):\s*$/.test(text.slice(Math.max(0, at - 12), at)) || tag.includes("(");
  const base = { code: "FLOW1013", from: at, to: at + tag.length, hides: at + tag.length } as const;
  if (condition && !tag.startsWith("!!"))
    return {
      ...base,
      message: `YAML reads ${shown(tag)} as a tag, and the condition would be empty`,
      suggestion: `Write \`\${{ ${line} }}\`, or put the condition in quotes: ${quoted(line)}.`,
    };
  return {
    ...base,
    message: `the YAML tag ${shown(tag)} is not allowed`,
    suggestion: "Remove it, or put the value in quotes if the `!` belongs to the text.",
  };
}

/** YAML ends a plain value at ` #`; when an expression is still open there, its rest has become a comment. */
export function cutExpression(
  text: string,
  plain: { readonly source: string; readonly at: number },
  at: number,
): Problem[] {
  const open = openExpression(plain.source);
  if (open === undefined) return [];
  const line = text.slice(plain.at, plain.at + maxShown).split("\n", 1)[0] ?? "";
  const close = line.indexOf("}}", at - plain.at);
  const whole = close === -1 ? undefined : line.slice(0, close + 2);
  return [
    {
      code: "FLOW1014",
      message: "` #` begins a comment in YAML, so this expression ends in the middle",
      from: plain.at + open,
      to: at + 1,
      hides: at,
      suggestion: whole === undefined ? "Put the whole value in quotes." : `Put the value in quotes: ${quoted(whole)}.`,
    },
  ];
}

/** Where a `${{` begins that has no `}}`, not counting what stands in the expression's own quotes. */
function openExpression(source: string): number | undefined {
  let start = source.indexOf("${{");
  while (start !== -1) {
    let end = start + 3;
    let inQuotes = false;
    while (end < source.length && (inQuotes || !source.startsWith("}}", end))) {
      if (source[end] === "'") inQuotes = !inQuotes;
      end++;
    }
    if (end >= source.length) return start;
    start = source.indexOf("${{", end);
  }
  return undefined;
}

/** The library takes a quote that the end of the file closes by accident (`"a\"`, `'a''`) for a closed one. */
export function unclosedQuote(lexeme: string, at: number): Problem[] {
  if (isClosed(lexeme)) return [];
  return [
    {
      code: "FLOW1006",
      message: `this ${lexeme[0] === "'" ? "single" : "double"} quote is never closed`,
      from: at,
      to: at + 1,
      hides: at + lexeme.length,
      loses: true,
      suggestion: "Close the quote; lines of a quoted text must be indented deeper than its key.",
    },
  ];
}

function isClosed(lexeme: string): boolean {
  const last = lexeme.length - 1;
  if (last < 1 || lexeme[last] !== lexeme[0]) return false;
  let repeated = 0;
  if (lexeme[0] === "'") {
    for (let i = 1; i < last; i++) if (lexeme[i] === "'") repeated++;
  } else {
    for (let i = last - 1; i > 0 && lexeme[i] === "\\"; i--) repeated++;
  }
  return repeated % 2 === 0;
}

const maxShown = 200;

/** Text of the file inside a message: short, in backquotes. */
export function shown(text: string): string {
  return `\`${text.length > 60 ? `${text.slice(0, 60)}…` : text}\``;
}
