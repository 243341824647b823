import type { Span } from "../../model/diagnostic.ts";
import { entry, type MapNode, type SourceNode } from "../../source/document.ts";
import type { Report } from "../report.ts";
import { asText, itemsOf, textOf } from "./nodes.ts";

const runners: ReadonlySet<string> = new Set(["npx", "bunx", "pnpx", "uvx", "pipx"]);

/** A command is one program; one that fetches a package fetches the version that somebody has looked at. */
export function checkCommand(server: MapNode, report: Report): void {
  const command = asText(entry(server, "command")?.value);
  if (!command) return;
  const [program = "", ...words] = command.value.trim().split(/\s+/);
  if (words.length > 0 && !program.includes("/")) {
    const args = words.map((word) => JSON.stringify(word)).join(", ");
    report("FLOW2004", command.at, "`command` is one program, started without a shell; its arguments go into `args`", {
      suggestion: `write \`command: ${program}\` and \`args: [${args}]\` before the others`,
    });
  }
  const name = program.split("/").at(-1) ?? "";
  if (runners.has(name)) checkVersion(name, itemsOf(entry(server, "args")?.value), { at: command.at, report });
}

const ofStarted = ["args", "env", "cwd", "sandbox"];
const ofReached = ["headers"];

/** What belongs to a server of the other kind would be accepted and ignored. */
export function checkKind(server: MapNode, report: Report, severity: "error" | "warning"): void {
  const [command, url] = [entry(server, "command"), entry(server, "url")];
  if ((command === undefined) === (url === undefined)) return;
  const [has, foreign] = command ? ["command", ofReached] : ["url", ofStarted];
  for (const { key, keyAt } of server.entries)
    if (foreign.includes(key)) report("FLOW2009", keyAt, `\`${key}\` means nothing beside \`${has}\``, { severity });
  const type = asText(entry(server, "type")?.value);
  if (type && (type.value === "stdio") !== (has === "command") && severity === "error")
    report("FLOW2009", type.at, `\`type: ${type.value}\` does not go with \`${has}\``);
}

/** Words that stand before the package's own name, or are followed by it. */
const namesPackage: ReadonlySet<string> = new Set(["-p", "--package", "--from", "--spec"]);

function checkVersion(
  runner: string,
  args: readonly SourceNode[],
  { at, report }: { readonly at: Span; readonly report: Report },
): void {
  const words = args.map((arg) => ({ text: textOf(arg) ?? "", at: arg.at }));
  const named = words.findIndex(({ text }) => namesPackage.has(text));
  const found = named >= 0 ? words[named + 1] : words.find(({ text }) => !text.startsWith("-") && text !== "run");
  if (found === undefined || isExact(found.text)) return;
  const name = found.text.replace(/(?<=.)[@=].*$/, "");
  const version = runner === "uvx" || runner === "pipx" ? `${name}==1.2.3` : `${name}@1.2.3`;
  report("FLOW8009", found.at ?? at, `\`${runner}\` fetches whatever \`${found.text}\` is on the day of the run`, {
    severity: "warning",
    suggestion: `name the exact version: \`${version}\``,
  });
}

/** A path, or a package with a whole version. */
function isExact(text: string): boolean {
  if (/^(?:[./~]|[a-z+]+:)/.test(text) || text.includes("${{")) return true;
  return /(?<=.)(?:@|==)v?\d+\.\d+\.\d+(?:[-+.\w]*)$/.test(text);
}
