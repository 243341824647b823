import { covers, mayCover, secretMark } from "./pattern.ts";
import { type Request, type Rule, strictest } from "./rule.ts";

/**
 * The rule that decides, of an ordered list from the lowest layer to the highest. The last one that holds wins, with
 * three exceptions that only restrict: a final rule that may hold; what is written below a block that has to stay within
 * it, such as an agent's; and the managed layer, of which only `deny` and `ask` count.
 *
 * The list has to begin with a rule that holds for everything.
 */
export function decide(rules: readonly Rule[], request: Request): Rule {
  const managed = rules.filter(({ layer }) => layer === "managed");
  const ordinary = managed.length === 0 ? rules : rules.filter(({ layer }) => layer !== "managed");
  const final = rules.findLast((rule) => rule.final && matchOf(rule, request) !== "no");
  const found = final ?? lastOf(ordinary, ordinary.length, request);
  const restricting = lastOf(managed, managed.length, request);
  if (found === undefined) throw new Error(`no rule speaks of ${request.tool}`);
  return restricting === undefined || restricting.decision === "allow" ? found : strictest(restricting, found);
}

function lastOf(rules: readonly Rule[], end: number, request: Request): Rule | undefined {
  for (let at = end - 1; at >= 0; at--) {
    const rule = rules[at];
    const match = rule === undefined ? "no" : matchOf(rule, request);
    if (rule === undefined || match === "no") continue;
    if (match === "maybe") return strictestOf(rule, lastOf(rules, at, request));
    const { within } = rule;
    if (within === undefined || rule.decision === "deny") return rule;
    const start = rules.findIndex((other) => other.within === within);
    const below = lastOf(rules, start, request);
    return below === undefined || (isPreset(below) && within.narrows !== true) ? rule : strictest(below, rule);
  }
  return undefined;
}

function strictestOf(rule: Rule, other: Rule | undefined): Rule {
  return other === undefined ? rule : strictest(rule, other);
}

/** Not written by anybody for this run. */
function isPreset({ layer }: Rule): boolean {
  return layer === "default" || layer === "profile";
}

/** What permits must hold for certain; what restricts counts as soon as it may. */
function matchOf(rule: Rule, { tool, text, readings }: Request): "yes" | "maybe" | "no" {
  if (!rule.concerns(tool)) return "no";
  const { patterns } = rule;
  if (rule.decision === "allow") {
    if (patterns === undefined) return text?.includes(secretMark) === true ? "no" : "yes";
    return text !== undefined && patterns.some((pattern) => covers(pattern, text)) ? "yes" : "no";
  }
  if (patterns === undefined) return "yes";
  if (text === undefined) return "no";
  if (patterns.some((pattern) => covers(pattern, text))) return "yes";
  return patterns.some((pattern) => [text, ...readings].some((it) => mayCover(pattern, it))) ? "maybe" : "no";
}
