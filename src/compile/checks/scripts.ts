import { scanTemplate } from "../../expr/template.ts";
import type { Span, TextEdit } from "../../model/diagnostic.ts";
import {
  entry,
  locate,
  type MapNode,
  type ScalarNode,
  type SourceDocument,
  type SourceNode,
} from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap, asText, itemsOf, textOf } from "../read/nodes.ts";
import { quotingAfter, writtenIn } from "./quoting.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/** Text that becomes code holds no expression: scripts get values by `env`, programs by arguments that are data. */
export const checkScripts: Check = ({ workflow, report }) => {
  const { document } = workflow.shape.file;
  const preset = textOf(entryOf(entry(workflow.shape.node, "defaults")?.value, "shell"));
  for (const { step } of stepsOf(workflow.scope)) {
    const undo = asMap(entry(step.node, "undo")?.value);
    for (const owner of [step.node, ...(undo ? [undo] : [])]) {
      const run = entry(owner, "run")?.value;
      const script = asText(run);
      const shell = textOf(entry(owner, "shell")?.value) ?? preset ?? "bash";
      if (script) checkScript({ document, owner, script, shell, report });
      else checkArguments(document, itemsOf(run), report);
    }
    const check = asMap(entry(step.node, "check")?.value);
    const script = asText(check && entry(check, "run")?.value);
    if (script) checkScript({ document, owner: step.node, script, shell: "bash", report });
  }
};

interface ScriptSource {
  readonly document: SourceDocument;
  /** The map that holds the script, and `env` beside it. */
  readonly owner: MapNode;
  readonly script: ScalarNode & { readonly value: string };
  /** What runs the script; only of shells it is known how a variable is written. */
  readonly shell: string;
  readonly report: Report;
}

function checkScript({ document, owner, script, shell, report }: ScriptSource): void {
  if (!script.value.includes("${{")) return;
  const parts = scanTemplate(script.value);
  if (!parts.ok) {
    const at = locate(document, script, script.value.indexOf("${{"), 3);
    report("FLOW8002", at, "a script cannot hold `${{`: values reach it as environment variables");
    return;
  }
  const names = new Map<string, string>();
  let before = "";
  for (const part of parts.value) {
    if ("text" in part) {
      before += part.text;
      continue;
    }
    const name = names.get(part.source) ?? variableName(part.source, { owner, script: script.value, taken: names });
    names.set(part.source, name);
    const start = script.value.lastIndexOf("${{", part.offset);
    const end = script.value.indexOf("}}", part.offset + part.source.length) + 2;
    const at = locate(document, script, start, end - start);
    const quoting = /^(bash|sh|dash)$/.test(shell) ? quotingAfter(before) : undefined;
    before += "x";
    const written = quoting && writtenIn(quoting, name);
    report(
      "FLOW8002",
      at,
      "an expression in a script would turn a value into code; give it to the script as an environment variable",
      {
        suggestion: `write \`env: { ${name}: "\${{ ${part.source} }}" }\` and ${written === undefined ? `read the variable \`${name}\`` : `\`${written}\``} here`,
        ...(written !== undefined && fix({ start, written, name, source: part.source, at, owner, script })),
      },
    );
  }
}

interface FixSource {
  /** Where the expression begins in the script. */
  readonly start: number;
  readonly written: string;
  readonly name: string;
  readonly source: string;
  readonly at: Span;
  readonly owner: MapNode;
  readonly script: ScalarNode;
}

/** The rewrite for `--fix`: the variable in the script, and its entry in `env`; none where the YAML is in the way. */
function fix({ start, written, name, source, at, owner, script }: FixSource): { fix?: TextEdit[] } {
  const run = owner.entries.find((it) => it.value === script);
  // A plain text that began with a quote would be a quoted one.
  const rewritable =
    script.style === "literal" || (script.style === "plain" && start > 0 && at.line === script.at.line);
  if (!run || !rewritable || source.includes("\n")) return {};
  const edit: TextEdit = { at, text: written };
  const env = entry(owner, "env");
  const first = asMap(env?.value)?.entries[0];
  if (env && !first) return {};
  if (asText(entryOf(env?.value, name))?.value === `\${{ ${source} }}`) return { fix: [edit] };
  const line = `${name}: "\${{ ${source.replaceAll("\\", "\\\\").replaceAll('"', '\\"')} }}"`;
  const target = first ? first.keyAt : run.keyAt;
  const place: Span = { ...target, endLine: target.line, endColumn: target.column };
  const indent = " ".repeat(target.column - 1);
  const isFlow = first !== undefined && first.keyAt.line === env?.keyAt.line;
  const insert = first ? (isFlow ? `${line}, ` : `${line}\n${indent}`) : `env:\n${indent}  ${line}\n${indent}`;
  return { fix: [edit, { at: place, text: insert }] };
}

function entryOf(node: SourceNode | undefined, key: string): SourceNode | undefined {
  const map = asMap(node);
  return map && entry(map, key)?.value;
}

interface NameSource {
  readonly owner: MapNode;
  readonly script: string;
  /** Names in use, by the expression they stand for. */
  readonly taken: ReadonlyMap<string, string>;
}

/** `inputs.base` → `BASE`, `steps.diff.outputs.stdout` → `DIFF_STDOUT`; never a name that means something already. */
function variableName(source: string, { owner, script, taken }: NameSource): string {
  const words = source.match(/[A-Za-z_][\w-]*/g) ?? [];
  const telling = words.filter(
    (word) => !["inputs", "steps", "outputs", "vars", "env", "run", "default", "toJSON"].includes(word),
  );
  const short = telling.slice(-2).join("_").replaceAll("-", "_").toUpperCase();
  const name = short === "" || meaningful.test(short) ? `${short}_VALUE`.replace(/^_/, "") : short;
  const used = new Set(taken.values());
  const isFree = (candidate: string): boolean => {
    const given = entryOf(entry(owner, "env")?.value, candidate);
    if (given) return asText(given)?.value === `\${{ ${source} }}`;
    return !used.has(candidate) && !new RegExp(`\\b${candidate}\\b`).test(script);
  };
  let free = name;
  for (let count = 2; !isFree(free); count++) free = `${name}_${count}`;
  return free;
}

/** Variables that shells, programs and flow itself read. */
const meaningful =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|IFS|ENV|TERM|LANG|LANGUAGE|TZ|TMP|TEMP|TMPDIR|EDITOR|PAGER|CI|DISPLAY|HOSTNAME|RANDOM|SECONDS|LINENO|REPLY|UID|EUID|PPID|GROUPS|COLUMNS|LINES|MAIL|PS\d|CDPATH|OPTIND|OPTARG|OPTERR|SHELLOPTS|SHLVL|HISTFILE|FUNCNAME|PIPESTATUS|DIRSTACK|NODE_OPTIONS|(LC|LD|BASH|GIT|FLOW|NODE|NPM|PYTHON|DYLD|XDG|SSH|COMP|EPOCH).*)$/;

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
