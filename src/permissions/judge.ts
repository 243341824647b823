import { type JsonObject, own } from "../model/json.ts";
import type { Judge, Verdict } from "../model/ports.ts";
import { decide } from "./decide.ts";
import { gap, secretMark, spelledMark, type Symbols, symbolsOf, unknown } from "./pattern.ts";
import { type Place, type Resolved, resolvePath } from "./place.ts";
import { commandSymbols, readingsOf } from "./readings.ts";
import { compareDecisions, type Decision, type Request, type Rule } from "./rule.ts";
import { type Deed, readScript, type Unbash } from "./script.ts";
import { pathText, subjectKind, urlSymbols } from "./subjects.ts";
import { commandText, isHarmless, type IsSecret } from "./words.ts";

export interface JudgeOptions {
  /** From the lowest layer to the highest, beginning with one that holds for everything. */
  readonly rules: readonly Rule[];
  readonly place: Place;
  readonly isSecret: IsSecret;
  /** Told of the rule behind every verdict. */
  readonly onHit?: (rule: Rule) => void;
}

/** One thing a call does: what decides about it, and the rule that would permit it. */
interface Finding {
  readonly decision: Decision;
  readonly rule: Rule;
  /** Absent where no rule permits it. */
  readonly toAllow?: string;
}

/** Judges calls by rules. Of a command everything it does is judged, and the strictest finding is the verdict. */
export function createJudge(options: JudgeOptions): Judge {
  return async ({ tool, args, counts = true }) => {
    const findings = await findingsOf(tool, args, options);
    const worst = findings.reduce((a, b) => (compareDecisions(a.decision, b.decision) >= 0 ? a : b));
    // A command of several is allowed by the rules of all of them, and stopped by one.
    const deciding = findings.filter(({ decision }) => decision === worst.decision).map(({ rule }) => rule);
    if (counts) for (const rule of new Set(worst.decision === "allow" ? deciding : [worst.rule])) options.onHit?.(rule);
    const wanting = findings.filter(({ decision }) => decision !== "allow");
    const needed = wanting.length > 0 ? wanting : [worst];
    const { text, layer, file, line } = worst.rule;
    return {
      decision: worst.decision,
      rule: { text, layer, ...(file !== undefined && { file }), ...(line !== undefined && { line }) },
      toAllow: needed.every(({ toAllow }) => toAllow !== undefined)
        ? [...new Set(needed.flatMap(({ toAllow }) => toAllow ?? []))]
        : [],
    };
  };
}

async function findingsOf(tool: string, args: JsonObject, options: JudgeOptions): Promise<Finding[]> {
  switch (subjectKind(tool)) {
    case "path":
      return [await judgeFile(tool, textOf(args, ["file_path", "path"]) ?? ".", options)];
    case "command":
      return judgeCommand(tool, textOf(args, ["command"]) ?? "", options);
    case "url":
      return [judgeUrl(tool, textOf(args, ["url"]) ?? "", options)];
    case "name":
      return [judgeName(tool, textOf(args, ["subagent_type", "skill", "command", "name"]) ?? "", options)];
    default:
      return [found({ tool, readings: [] }, tool, options)];
  }
}

function textOf(args: JsonObject, names: readonly string[]): string | undefined {
  return names.map((name) => own(args, name)).find((value) => typeof value === "string");
}

function found(request: Request, toAllow: string, { rules }: JudgeOptions): Finding {
  const rule = decide(rules, request);
  const { decision } = rule;
  // No rule outweighs one of a `deny` list, or of the machine.
  const isFixed = decision === "deny" && (rule.final || rule.layer === "managed");
  return { decision, rule, ...(!isFixed && { toAllow }) };
}

/** The tools for files reach the workspace alone, whatever the rules say. */
async function judgeFile(tool: string, path: string, options: JudgeOptions): Promise<Finding> {
  const resolved = await resolvePath(path, options.place);
  const { real, asked } = resolved;
  const { workspace } = options.place;
  const isInside = [asked, real ?? asked].every((it) => it === workspace || it.startsWith(`${workspace}/`));
  return isInside ? findPath(tool, resolved, options) : byBuiltIn("outside the workspace");
}

/** The file itself decides; the way it was spelled can only make it stricter. */
async function judgePath(tool: string, path: string, options: JudgeOptions): Promise<Finding> {
  return findPath(tool, await resolvePath(path, options.place), options);
}

function findPath(tool: string, { asked, real }: Resolved, options: JudgeOptions): Finding {
  const { place, isSecret } = options;
  const toAllow = `${tool}(${pathText(real ?? asked, place)})`;
  if (real === undefined) return byBuiltIn("a link that leads nowhere");
  const inside = [asked, real].map((it) =>
    it.startsWith(`${place.workspace}/`) ? it.slice(place.workspace.length + 1) : it,
  );
  if (inside.some((it) => isSecret(it.replace(/^\//, "")))) return byBuiltIn("files that hold credentials");
  const spellings = [...new Set([asked, asked.toLowerCase(), real.toLowerCase()])].filter((it) => it !== real);
  return found({ tool, text: symbolsOf(real), readings: spellings.map(symbolsOf) }, toAllow, options);
}

/** What no rule permits. */
function byBuiltIn(text: string): Finding {
  return { decision: "deny", rule: { decision: "deny", text, layer: "default", concerns: () => true, final: true } };
}

async function judgeCommand(tool: string, command: string, options: JudgeOptions): Promise<Finding[]> {
  const unbash = await import("unbash");
  const deeds = readScript(command, unbash);
  if (!deeds.ok) return [{ ...byBuiltIn(deeds.error), toAllow: tool }];
  return Promise.all(
    deeds.value.map(async (deed): Promise<Finding> => {
      if (deed.type === "command") return judgeDeed(tool, deed, { ...options, unbash });
      if (deed.type === "construct") {
        const { rule, decision } = found({ tool, text: [unknown], readings: [] }, tool, options);
        const why = decision === "allow" ? rule : { ...rule, text: `${rule.text} (${deed.what})` };
        return { decision, rule: why, toAllow: tool };
      }
      const fileTool = deed.type === "write" ? "Write" : "Read";
      if (deed.path !== undefined) return judgePath(fileTool, deed.path, options);
      return found({ tool: fileTool, text: [unknown], readings: [] }, fileTool, options);
    }),
  );
}

type Shell = JudgeOptions & { readonly unbash: Unbash };

function judgeDeed(tool: string, deed: Extract<Deed, { type: "command" }>, options: Shell): Finding {
  const begin = deed.words.findIndex(({ text }) => text === undefined || !isHarmless(text));
  const words = begin === -1 ? deed.words : deed.words.slice(begin);
  const text = commandSymbols(words, options.isSecret);
  const known = words.every((word) => word.text !== undefined);
  const pattern = known ? commandText(words.map((word) => word.text ?? "")) : patternFor(text);
  const toAllow = pattern === "*" ? tool : `${tool}(${pattern})`;
  const finding = found({ tool, text, readings: readingsOf(words, options.unbash) }, toAllow, options);
  if (finding.decision === "allow" || !text.includes(secretMark)) return finding;
  // No wildcard of a rule stands for such a name, so the word cannot be known by a pattern either.
  return { ...byBuiltIn("files that hold credentials"), ...(known && { toAllow }) };
}

/** A pattern that holds for a command with unknown pieces: they become `*`. */
function patternFor(text: Symbols): string {
  const words: string[] = [""];
  for (const symbol of text) {
    if (symbol === gap) words.push("");
    else if (symbol !== secretMark && symbol !== spelledMark) {
      const piece = symbol === unknown ? "*" : commandText([String.fromCharCode(symbol)]);
      words[words.length - 1] += symbol === 0x20 ? "?" : piece;
    }
  }
  return words.join(" ").replaceAll(/\*[^ ]*\*+/g, "*");
}

function judgeUrl(tool: string, url: string, options: JudgeOptions): Finding {
  const text = urlSymbols(url);
  if (text === undefined) return byBuiltIn("an address that is no URL");
  return found({ tool, text, readings: [] }, `${tool}(domain:${new URL(url).hostname})`, options);
}

function judgeName(tool: string, name: string, options: JudgeOptions): Finding {
  return found({ tool, text: symbolsOf(name), readings: [] }, `${tool}(${name})`, options);
}

/** Whether a file of the workspace may be read; what only a person could permit may not. For lists of many files. */
export function createReadable(options: JudgeOptions): (path: string) => boolean {
  return (path) => {
    const absolute = `${options.place.workspace}/${path}`;
    return findPath("Read", { asked: absolute, real: absolute }, options).decision === "allow";
  };
}

/** Never more than both allow: the rights of a child are its own within its parent's. */
export function intersect(parent: Judge, child: Judge): Judge {
  return async (call) => {
    const unseen = { ...call, counts: false };
    const [outer, inner]: [Verdict, Verdict] = [await parent(unseen), await child(unseen)];
    const isOuter = compareDecisions(outer.decision, inner.decision) >= 0;
    // Only the rule that decides is counted, however many there are above.
    if (call.counts !== false) await (isOuter ? parent : child)(call);
    return isOuter ? outer : inner;
  };
}
