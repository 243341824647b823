import { scanTemplate } from "../../expr/template.ts";
import type { Span, TextEdit } from "../../model/diagnostic.ts";
import { entry, locate, type MapNode, type ScalarNode, type SourceDocument } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap, asText, itemsOf } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/** Text that becomes code holds no expression: scripts get values by `env`, programs by arguments that are data. */
export const checkScripts: Check = ({ workflow, report }) => {
  const { document } = workflow.shape.file;
  for (const { step } of stepsOf(workflow.scope)) {
    const undo = asMap(entry(step.node, "undo")?.value);
    for (const owner of [step.node, ...(undo ? [undo] : [])]) {
      const run = entry(owner, "run")?.value;
      const script = asText(run);
      if (script) checkScript({ document, owner, script, report });
      else checkArguments(document, itemsOf(run), report);
    }
    const check = asMap(entry(step.node, "check")?.value);
    const script = asText(check && entry(check, "run")?.value);
    if (script) checkScript({ document, owner: step.node, script, report });
  }
};

interface ScriptSource {
  readonly document: SourceDocument;
  /** The map that holds the script, and `env` beside it. */
  readonly owner: MapNode;
  readonly script: ScalarNode & { readonly value: string };
  readonly report: Report;
}

function checkScript({ document, owner, script, report }: ScriptSource): void {
  if (!script.value.includes("${{")) return;
  const parts = scanTemplate(script.value);
  if (!parts.ok) {
    const at = locate(document, script, script.value.indexOf("${{"), 3);
    report("FLOW8002", at, "a script cannot hold `${{`: values reach it as environment variables");
    return;
  }
  for (const part of parts.value) {
    if ("text" in part) continue;
    const name = variableName(part.source);
    const start = script.value.lastIndexOf("${{", part.offset);
    const end = script.value.indexOf("}}", part.offset + part.source.length) + 2;
    const at = locate(document, script, start, end - start);
    const before = script.value.slice(0, start);
    report(
      "FLOW8002",
      at,
      "an expression in a script would turn a value into code; give it to the script as an environment variable",
      {
        suggestion: `write \`env: { ${name}: "\${{ ${part.source} }}" }\` and \`${inPlace(before, name) ?? `"$${name}"`}\` here`,
        ...fix({ before, name, source: part.source, at, owner, script }),
      },
    );
  }
}

/** How the variable is written at a place in a script: it depends on the quotes around. Undefined inside a here-document. */
function inPlace(before: string, name: string): string | undefined {
  if (/<<-?\s*\S/.test(before)) return undefined;
  switch (openQuote(before)) {
    case "'":
      return `'"$${name}"'`;
    case '"':
      return `\${${name}}`;
    default:
      return `"$${name}"`;
  }
}

function openQuote(text: string): string {
  let open = "";
  for (let index = 0; index < text.length; index++) {
    const letter = text[index] ?? "";
    if (letter === "\\" && open !== "'") index++;
    else if (open === "" && (letter === "'" || letter === '"')) open = letter;
    else if (letter === open) open = "";
  }
  return open;
}

interface FixSource {
  readonly before: string;
  readonly name: string;
  readonly source: string;
  readonly at: Span;
  readonly owner: MapNode;
  readonly script: ScalarNode;
}

/** The rewrite for `--fix`: the variable in the script, and its line in `env`. */
function fix({ before, name, source, at, owner, script }: FixSource): { fix?: TextEdit[] } {
  const written = inPlace(before, name);
  const run = owner.entries.find((it) => it.value === script);
  const rewritable = script.style === "plain" || script.style === "literal";
  if (written === undefined || !run || !rewritable || source.includes("\n")) return {};
  const line = `${name}: "\${{ ${source.replaceAll("\\", "\\\\").replaceAll('"', '\\"')} }}"`;
  const env = entry(owner, "env");
  const envMap = asMap(env?.value);
  const first = envMap?.entries[0];
  if (env && (!first || first.keyAt.line === env.keyAt.line)) return {};
  const target = first ? first.keyAt : run.keyAt;
  if (first && envMap?.entries.some((it) => it.key === name)) return {};
  const start: Span = { ...target, endLine: target.line, endColumn: target.column };
  const indent = " ".repeat(target.column - 1);
  const insert = first ? `${line}\n${indent}` : `env:\n${indent}  ${line}\n${indent}`;
  return {
    fix: [
      { at, text: written },
      { at: start, text: insert },
    ],
  };
}

/** `inputs.base` → `BASE`, `steps.diff.outputs.stdout` → `DIFF_STDOUT`. */
function variableName(source: string): string {
  const words = source.match(/[A-Za-z_][\w-]*/g) ?? [];
  const telling = words.filter(
    (word) => !["inputs", "steps", "outputs", "vars", "env", "run", "default", "toJSON"].includes(word),
  );
  const name = telling.slice(-2).join("_").replaceAll("-", "_").toUpperCase();
  return name === "" ? "VALUE" : name;
}

const codeFlags = ["-c", "-e", "--eval", "-ec", "-lc", "-ce"];

/** A program's name and the argument that follows `-c` or `-e` are code; every other argument is data. */
function checkArguments(
  document: SourceDocument,
  items: readonly ReturnType<typeof itemsOf>[number][],
  report: Report,
): void {
  items.forEach((item, index) => {
    const text = asText(item);
    const at = text?.value.indexOf("${{") ?? -1;
    if (!text || at < 0) return;
    const span = locate(document, text, at, 3);
    const flag = asText(items[index - 1])?.value ?? "";
    if (index === 0)
      report("FLOW8006", span, "the program a step starts is fixed; an expression would choose it at run time");
    else if (codeFlags.includes(flag))
      report("FLOW8006", span, `what follows \`${flag}\` is code, so it cannot hold an expression`, {
        suggestion: "pass the value as a further argument, or in `env`",
      });
  });
}
