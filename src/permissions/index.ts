import { realpathSync } from "node:fs";
import { isJsonObject, type Json } from "../model/json.ts";
import type { Judge, Rights } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { createJudge, createReadable, intersect } from "./judge.ts";
import { type Block, readRules, type RuleProblem, splitRule, type Vocabulary } from "./notation.ts";
import { decide } from "./decide.ts";
import { symbolsOf, unknown } from "./pattern.ts";
import type { Place } from "./place.ts";
import { defaultRules, type Profile, profileRules } from "./presets.ts";
import { compareDecisions, type Decision, type Layer, layers, type Request, type Rule } from "./rule.ts";

export { intersect } from "./judge.ts";
export type { Block, RuleProblem, Vocabulary } from "./notation.ts";
export type { Profile } from "./presets.ts";

export interface PermissionOptions {
  readonly vocabulary: Vocabulary;
  /** Tools the workflow defines itself. */
  readonly ownTools: readonly string[];
  readonly workspace: string;
  readonly home: string;
  readonly profile?: Profile;
  /** Rules given for one run, as `Tool` or `Tool(pattern)`. */
  readonly allowed: readonly string[];
  /** Above all others: what nobody in the run may widen. */
  readonly managed?: readonly Block[];
}

/** The rules of a run. */
export interface Permissions {
  /**
   * Those of one agent: `blocks` are what is written for it, in any order. `workspace` is the folder it works in, where
   * that is another than the run's: absolute, without symbolic links.
   */
  forAgent(blocks: readonly Block[], parent?: AgentRights, workspace?: string): AgentRights;
  /** Judges what the author of a workflow wrote: by the managed rules alone. Undefined when there are none. */
  readonly managed: Judge | undefined;
  /** Every rule somebody wrote, with the verdicts it has decided so far. */
  hits(): readonly RuleHits[];
}

export interface RuleHits {
  readonly rule: Rule;
  readonly hits: number;
}

export interface AgentRights extends Rights {
  /** Whether the rules let the agent reach any address: then its commands may too. */
  readonly network: boolean;
  /** Permits these rules from now on. */
  approve(rules: readonly string[]): void;
  narrow(rules: readonly string[]): void;
  /** The same in another folder; in the run's workspace when undefined. */
  in(workspace: string | undefined): AgentRights;
}

/** Puts the layers of a run in order. The error is a rule of the command line that is none. */
export function createPermissions(options: PermissionOptions): Result<Permissions, string> {
  const { vocabulary } = options;
  const place: Place = { workspace: realpathSync(options.workspace), home: options.home };
  const wrong = options.allowed.find((text) => splitRule(text) === undefined);
  if (wrong !== undefined)
    return err(`${JSON.stringify(wrong)} is not a rule; write \`Tool\` or \`Tool(pattern)\`, such as \`Bash(git *)\``);
  const allowed: Block = { layer: "command line", permissions: { allow: [...options.allowed] } };
  const given = readRules(allowed, vocabulary, place);
  const useless = given.problems[0];
  if (useless !== undefined) return err(useless.message);
  const presets = [defaultRules(options.ownTools), ...(options.profile ? [profileRules(options.profile)] : [])];
  const read = (blocks: readonly Block[], where: Place): readonly Rule[] =>
    blocks.flatMap((block) => readRules(block, vocabulary, where).rules);
  const everywhere = [...presets, allowed];
  const managed = options.managed ?? [];
  const counted = new Map<string, RuleHits>();
  const know = (rules: readonly Rule[]): void => {
    for (const rule of rules) if (!counted.has(keyOf(rule))) counted.set(keyOf(rule), { rule, hits: 0 });
  };
  const onHit = (rule: Rule): void => {
    counted.set(keyOf(rule), { rule, hits: (counted.get(keyOf(rule))?.hits ?? 0) + 1 });
  };
  const everything: Rule = { decision: "allow", text: "*", layer: "default", concerns: () => true, final: false };
  const { isSecret } = vocabulary;
  know([...given.rules, ...read(managed, place)]);
  return ok({
    forAgent(blocks, parent, workspace) {
      know(read(blocks, place));
      // What was allowed and taken away since, wherever the agent works.
      const since: Block[] = [];
      const inFolder = (folder: string | undefined): AgentRights => {
        const where = folder === undefined ? place : { ...place, workspace: folder, standsFor: place.workspace };
        const outer = parent?.in(folder);
        let rules: readonly Rule[] = [];
        let known = -1;
        const rulesNow = (): readonly Rule[] => {
          if (known < since.length) rules = inOrder(read([...everywhere, ...blocks, ...managed, ...since], where));
          known = since.length;
          return rules;
        };
        const judge: Judge = (call) => createJudge({ rules: rulesNow(), place: where, isSecret, onHit })(call);
        return {
          judge: outer === undefined ? judge : intersect(outer.judge, judge),
          reach: (tool, name) =>
            strictestDecision(
              outer?.reach(tool, name) ?? "allow",
              name === undefined ? reachOf(rulesNow(), tool) : decide(rulesNow(), named(tool, name)).decision,
            ),
          mayRead: (path) =>
            (outer?.mayRead(path) ?? true) && createReadable({ rules: rulesNow(), place: where, isSecret })(path),
          get network() {
            const anywhere = { tool: "WebFetch", text: [unknown], readings: [] };
            return (outer?.network ?? true) && decide(rulesNow(), anywhere).decision === "allow";
          },
          approve(texts) {
            outer?.approve(texts);
            since.push({ layer: "approved", permissions: { allow: [...texts] } });
          },
          narrow(texts) {
            since.push(narrowingBlock(texts));
          },
          in: inFolder,
        };
      };
      return inFolder(workspace);
    },
    managed:
      managed.length === 0
        ? undefined
        : createJudge({ rules: [everything, ...read(managed, place)], place, isSecret, onHit }),
    hits: () => [...counted.values()].filter((it) => it.hits > 0 || isWritten(it.rule)).filter(isOfSomebody),
  });
}

function isOfSomebody({ rule: { layer } }: RuleHits): boolean {
  return layer !== "default" && layer !== "profile";
}

/** By a person, in a line of a file or in the command: not the terms of a member, nor what a skill narrows. */
function isWritten({ file, line }: Rule): boolean {
  return file === undefined || line !== undefined;
}

/** Only what is named, and what changes nothing; as much of it as was allowed before. */
function narrowingBlock(texts: readonly string[]): Block {
  const permissions: { [tool: string]: Json } = { "*": "deny", Skill: "allow", TodoWrite: "allow" };
  for (const { tool, pattern } of texts.flatMap((text) => splitRule(text) ?? [])) {
    const before = Object.hasOwn(permissions, tool) ? permissions[tool] : undefined;
    const patterns = isJsonObject(before) ? before : { "*": "deny" };
    if (pattern === undefined) permissions[tool] = "allow";
    else if (before !== "allow") permissions[tool] = { ...patterns, [pattern]: "allow" };
  }
  return { layer: "step", permissions, bounded: true, narrows: true, file: "allowed-tools of a skill" };
}

/** What is wrong with a block that was written, without putting it to use. */
export function checkRules(block: Block, vocabulary: Vocabulary): readonly RuleProblem[] {
  return readRules(block, vocabulary, { workspace: "/", home: "/" }).problems;
}

function inOrder(rules: readonly Rule[]): Rule[] {
  const rank = (layer: Layer): number => layers.indexOf(layer);
  return rules.toSorted((a, b) => rank(a.layer) - rank(b.layer));
}

function keyOf({ layer, file, line, decision, text }: Rule): string {
  return JSON.stringify([layer, file, line, decision, text]);
}

function named(tool: string, name: string): Request {
  return { tool, text: symbolsOf(name), readings: [] };
}

/** What the most lenient rule says that no later one takes back for every call. */
function reachOf(rules: readonly Rule[], tool: string): Decision {
  const concerned = rules.filter((rule) => rule.concerns(tool));
  const isWhole = (rule: Rule): boolean => rule.patterns === undefined;
  const bounds = concerned.filter((rule) => isWhole(rule) && (rule.final || rule.layer === "managed"));
  let most: Decision = "deny";
  for (const rule of concerned.toReversed()) {
    if (rule.layer === "managed") continue;
    if (compareDecisions(rule.decision, most) < 0) most = rule.decision;
    if (isWhole(rule)) break;
  }
  return bounds.reduce((found, { decision }) => strictestDecision(found, decision), most);
}

function strictestDecision(a: Decision, b: Decision): Decision {
  return compareDecisions(a, b) >= 0 ? a : b;
}
