import type { Named, Plan, Step, Template } from "../../model/plan.ts";
import { unreachable } from "../../model/result.ts";
import { visible } from "../display.ts";
import { scopeOf } from "./layers.ts";

/** What a step does, in a few words on one line: its name, then the agent, the command, the tool … */
export function summary(plan: Plan, step: Step): string {
  const own = visible(ownSummary(plan, step).trim());
  if (step.name === undefined) return own;
  return own === "" ? visible(step.name) : `${visible(step.name)} · ${own}`;
}

/** The condition of a step as people write it, on one line. */
export function condition(step: Step): string | undefined {
  return step.if === undefined ? undefined : `when ${oneLine(step.if.source)}`;
}

/** What a step runs over: `× inputs.topics (max 4)`. */
export function items(step: Step): string | undefined {
  const { foreach } = step;
  if (foreach === undefined) return undefined;
  const list = foreach.items;
  const fixed =
    list.type === "list" ? list.items.length : list.type === "data" && Array.isArray(list.json) ? list.json.length : -1;
  const what = fixed < 0 ? templateText(list) : `${fixed} ${foreach.matrix ? "combination" : "item"}${plural(fixed)}`;
  return `× ${what}${foreach.parallel === undefined ? "" : ` (max ${foreach.parallel})`}`;
}

/** `↻ ≤3 until result.output.ok`. */
export function repeat(step: Step): string | undefined {
  if (step.repeat === undefined) return undefined;
  const accept = step.repeat.onMax === "accept" ? ", then accept" : "";
  return `↻ ≤${step.repeat.max} until ${oneLine(step.repeat.until.source)}${accept}`;
}

/** The other policies worth a word in a drawing, each on its own. */
export function policies(step: Step): string[] {
  const { retry, timeout } = step;
  return [
    ...(step.join === "any" ? ["any of its sources"] : []),
    ...(retry === undefined ? [] : [`retry ≤${retry.max} on ${retry.on.join(", ")}`]),
    ...(timeout === undefined
      ? []
      : [`timeout ${typeof timeout === "number" ? duration(timeout) : templateText(timeout)}`]),
    ...(step.limits.cost === undefined ? [] : [`≤ $${step.limits.cost.toFixed(2)}`]),
    ...(step.continueOnError ? ["may fail"] : []),
    ...(step.cache === undefined ? [] : ["cached"]),
    ...(step.undo === undefined ? [] : ["undo"]),
    ...(step.isolation === undefined ? [] : [step.isolation]),
  ];
}

/** An expression or any other text of the file, on one line. */
export function oneLine(text: string): string {
  return visible(text.trim().replace(/\s+/g, " "));
}

function ownSummary(plan: Plan, step: Step): string {
  const { body } = step;
  switch (body.kind) {
    case "agent": {
      const agent = Object.hasOwn(plan.agents, body.agent) ? plan.agents[body.agent] : undefined;
      const spawns = step.limits.depth === 0 ? [] : (agent?.subagents ?? []).map(({ name }) => name);
      const leads = (body.team ?? agent?.team)?.members.map(({ name }) => name) ?? [];
      const others = [["spawns", spawns] as const, ["leads", leads] as const].filter(([, names]) => names.length > 0);
      const told = others.map(([verb, names]) => `${verb} ${names.join(", ")}`).join("; ");
      return `${agent?.name ?? body.agent}${told === "" ? "" : ` (${told})`}`;
    }
    case "run":
      return "script" in body.command ? scriptSummary(body.command.script) : argvSummary(input(step, "argv"));
    case "tool":
      return body.tool;
    case "workflow":
      return step.scope !== undefined && "workflow" in step.scope ? step.scope.workflow : "";
    case "steps": {
      const count = scopeOf(plan, step)?.steps.length ?? 0;
      return `${count} step${plural(count)}`;
    }
    case "approve":
      return templateText(input(step, "approve"));
    case "set":
      return names(input(step, "set")).join(", ");
    default:
      return unreachable(body);
  }
}

/** The first line that does something. */
function scriptSummary(script: string): string {
  const lines = script.split("\n").map((line) => line.trim());
  const said = lines.filter((line) => line !== "" && !line.startsWith("#") && !line.startsWith("set -"));
  const first = said[0] ?? lines.find((line) => line !== "") ?? "";
  return said.length > 1 ? `${first} …` : first;
}

function argvSummary(argv: Template | undefined): string {
  if (argv?.type === "list") return argv.items.map(templateText).join(" ");
  if (argv?.type === "data" && Array.isArray(argv.json)) return argv.json.map(String).join(" ");
  return templateText(argv);
}

function input(step: Step, name: string): Template | undefined {
  if (step.inputs.type === "map") return step.inputs.entries.find((entry) => entry.name === name)?.value;
  if (step.inputs.type !== "data") return undefined;
  const { json } = step.inputs;
  if (typeof json !== "object" || json === null || Array.isArray(json) || !Object.hasOwn(json, name)) return undefined;
  return { type: "data", json: json[name] ?? null };
}

function names(value: Template | undefined): string[] {
  if (value?.type === "map") return value.entries.map((entry: Named<Template>) => entry.name);
  return value?.type === "data" && typeof value.json === "object" && value.json !== null ? Object.keys(value.json) : [];
}

function templateText(value: Template | undefined): string {
  if (value === undefined) return "";
  switch (value.type) {
    case "data":
      return oneLine(typeof value.json === "string" ? value.json : JSON.stringify(value.json));
    case "expression":
      return oneLine(value.source);
    case "text":
      return oneLine(value.parts.map((part) => (typeof part === "string" ? part : `\${{ ${part.source} }}`)).join(""));
    case "list":
      return `[${value.items.map(templateText).join(", ")}]`;
    case "map":
      return `{ ${value.entries.map((entry) => `${visible(entry.name)}: ${templateText(entry.value)}`).join(", ")} }`;
    default:
      return unreachable(value);
  }
}

/** `1h30m`, as it is written in a file. */
function duration(ms: number): string {
  const units: [string, number][] = [
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
    ["ms", 1],
  ];
  let rest = ms;
  let text = "";
  for (const [unit, size] of units) {
    if (rest < size) continue;
    text += `${Math.floor(rest / size)}${unit}`;
    rest %= size;
  }
  return text === "" ? "0s" : text;
}

function plural(count: number): string {
  return count === 1 ? "" : "s";
}
