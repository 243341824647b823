import { isJsonObject, own } from "../model/json.ts";
import type { Attempt, Execute, Judge } from "../model/ports.ts";

type Call = Parameters<Judge>[0];

/** What the author of a workflow wrote runs unless the rules of this machine forbid it. */
export function withinManaged(execute: Execute, judge: Judge | undefined): Execute {
  if (judge === undefined) return execute;
  return async (attempt) => {
    const call = callOf(attempt);
    const verdict = call && (await judge(call));
    if (verdict === undefined || verdict.decision === "allow") return execute(attempt);
    const { text, file } = verdict.rule;
    const message = `the rule \`${text}\`${file === undefined ? "" : ` of ${file}`} does not let this step run here`;
    return { outcome: "failure", error: { kind: "denied", message } };
  };
}

/** A step in the words of the rules; undefined for kinds that do nothing themselves. */
function callOf({ step: { body }, inputs }: Attempt): Call | undefined {
  if (body.kind === "tool") {
    const args = own(inputs, "with");
    return { tool: body.tool, args: isJsonObject(args) ? args : {} };
  }
  if (body.kind !== "run") return undefined;
  if ("script" in body.command) return { tool: "Bash", args: { command: body.command.script } };
  const argv = own(inputs, "argv");
  const words = Array.isArray(argv) ? argv.map((word) => (typeof word === "string" ? word : JSON.stringify(word))) : [];
  return { tool: "Bash", args: { command: words.map(quoted).join(" ") } };
}

function quoted(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
