/** What stands around a place in a shell script. */
export type Quoting = "word" | "single" | "double";

/** What makes of a text more than an argument: its values would be code, patterns or sums again. */
const evaluating =
  /(?:^|[\s;&|(){])(?:eval|source|\.|exec|trap|alias|let|declare|typeset|local|export|readonly|unset|read|printf\s+-v|mapfile|readarray|test|\[|\[\[|case|xargs|ssh|env|sudo|sh|bash|dash|zsh|ksh|node|python3?|perl|ruby|php|awk|gawk|sed|jq|find|watch|parallel|su|docker|kubectl|make)(?=\s|$)/;

/**
 * The quotes that are open after `before`; undefined where it takes more than quotes to say what a value would become
 * there: in a here-document, a substitution, an arithmetic or conditional expression, or behind a command such as `eval`.
 */
export function quotingAfter(before: string): Quoting | undefined {
  let state: Quoting = "word";
  let command = 0;
  for (let at = 0; at < before.length; at++) {
    const letter = before[at] ?? "";
    if (state === "single") {
      if (letter === "'") state = "word";
      continue;
    }
    if (letter === "\\") {
      if (at === before.length - 1) return undefined;
      at++;
    } else if (letter === "`" || before.startsWith("$(", at) || before.startsWith("$[", at)) return undefined;
    else if (before.startsWith("${", at)) {
      const name = /^\$\{\w+\}/.exec(before.slice(at, at + 200))?.[0];
      if (name === undefined) return undefined;
      at += name.length - 1;
    } else if (state === "double") {
      if (letter === '"') state = "word";
    } else if (letter === '"' || letter === "'") {
      if (before[at - 1] === "$") return undefined;
      state = letter === '"' ? "double" : "single";
    } else if (before.startsWith("<<", at) || letter === "(" || letter === "[") return undefined;
    else if (letter === "#" && /^$|[\s;&|]/.test(before[at - 1] ?? "")) {
      const end = before.indexOf("\n", at);
      if (end < 0) return undefined;
      at = end - 1;
    } else if (letter === "\n" || letter === ";" || letter === "&" || letter === "|") command = at + 1;
  }
  return evaluating.test(before.slice(command)) ? undefined : state;
}

/** How a variable's value stands between these quotes, as it is and as one word. */
export function writtenIn(quoting: Quoting, name: string): string {
  switch (quoting) {
    case "word":
      return `"$${name}"`;
    case "double":
      return `\${${name}}`;
    case "single":
      return `'"$${name}"'`;
  }
}
