import { type Reference, references } from "../../expr/inspect.ts";
import { parseExpression } from "../../expr/parse.ts";
import { scanTemplate } from "../../expr/template.ts";
import type { Span } from "../../model/diagnostic.ts";
import { entry, type MapNode, type SourceNode } from "../../source/document.ts";
import { type LinkedWorkflow, stepsOf } from "../linked.ts";
import { asMap, asText, entriesOf } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

const protectedName = /^(PATH|LD_.*|NODE_OPTIONS|BASH_ENV|ENV|IFS|GIT_.*)$/;
const fromOutside: ReadonlySet<string> = new Set(["steps", "item", "matrix", "previous", "result"]);

/** Variables that decide what a process executes are set by the author, never from what a step or a model gave. */
export const checkEnvironment: Check = ({ workflow, report }) => {
  for (const env of commonBlocks(workflow)) checkNamesOf(env, report);
  for (const { owner } of ownersOf(workflow)) {
    const env = entry(owner, "env")?.value;
    checkNamesOf(env, report);
    for (const { key, keyAt, value } of entriesOf(env)) {
      if (!protectedName.test(key) || !readsAny(value, fromOutside)) continue;
      report(
        "FLOW8003",
        keyAt,
        `\`${key}\` decides what a process executes, so it cannot be set from a step's output`,
        {
          suggestion: "use a name of your own, and set this one in the script from values you check",
        },
      );
    }
  }
  checkTools(workflow, report);
  checkCalls(workflow, report);
};

/** The arguments of a tool are a model's words. */
function checkTools({ shape: { node } }: LinkedWorkflow, report: Report): void {
  for (const { value } of entriesOf(entry(node, "tools")?.value)) {
    const tool = asMap(value);
    for (const { key, keyAt, value: text } of entriesOf(tool && entry(tool, "env")?.value)) {
      if (!protectedName.test(key) || !readsAny(text, new Set(["inputs"]))) continue;
      report(
        "FLOW8003",
        keyAt,
        `\`${key}\` decides what a process executes, so it cannot be set from a tool's argument`,
        {
          suggestion: "use a name of your own, and set this one in the program from values you check",
        },
      );
    }
  }
}

function checkCalls(workflow: LinkedWorkflow, report: Report): void {
  const known = new Map<LinkedWorkflow, Sinks>();
  for (const { owner, called } of ownersOf(workflow)) {
    if (called === undefined) continue;
    const sinks = sinksOf(called, known);
    for (const { key, value, at } of argumentsOf(owner)) {
      const sink = key === undefined ? sinks.values().next().value : sinks.get(key);
      if (sink === undefined || !readsAny(value, fromOutside)) continue;
      const input = key === undefined ? "an input" : `the input \`${key}\``;
      report(
        "FLOW8003",
        at,
        `${input} becomes \`${sink.variable}\` in there, which decides what a process executes, so it cannot be set from a step's output`,
        {
          suggestion: `pass a value you wrote, or let the workflow use a variable of another name`,
          related: [{ message: `\`${sink.variable}\` is set here`, at: sink.at }],
        },
      );
    }
  }
}

interface Sink {
  readonly variable: string;
  readonly at: Span;
}
type Sinks = ReadonlyMap<string, Sink>;

/** The inputs of a workflow that end up in such a variable, there or in a workflow it calls. */
function sinksOf(workflow: LinkedWorkflow, known: Map<LinkedWorkflow, Sinks>): Sinks {
  const before = known.get(workflow);
  if (before !== undefined) return before;
  const sinks = new Map<string, Sink>();
  known.set(workflow, sinks);
  const add = (value: SourceNode, sink: Sink): void => {
    for (const name of inputsIn(value, workflow)) if (!sinks.has(name)) sinks.set(name, sink);
  };
  const owners = [...ownersOf(workflow)];
  for (const env of [...commonBlocks(workflow), ...owners.map(({ owner }) => entry(owner, "env")?.value)])
    for (const { key, keyAt, value } of entriesOf(env))
      if (protectedName.test(key)) add(value, { variable: key, at: keyAt });
  for (const { owner, called } of owners) {
    const inner = called === undefined ? new Map<string, Sink>() : sinksOf(called, known);
    for (const { key, value } of inner.size === 0 ? [] : argumentsOf(owner)) {
      const sink = key === undefined ? inner.values().next().value : inner.get(key);
      if (sink !== undefined) add(value, sink);
    }
  }
  return sinks;
}

/** The inputs an expression reads, by way of `vars` and `env` as well, where it counts that one may. */
function inputsIn(value: SourceNode, { shape }: LinkedWorkflow): readonly string[] {
  const all = shape.inputs.map(({ name }) => name);
  const namesOf = (found: readonly Reference[]): readonly string[] =>
    found.flatMap(({ context, path: [first] }) => {
      if (context !== "inputs") return [];
      return first?.kind === "name" ? all.filter((name) => name.toLowerCase() === first.name.toLowerCase()) : all;
    });
  const found = referencesIn(value);
  const isIndirect = found.some(({ context }) => context === "vars" || context === "env");
  return [...namesOf(found), ...(isIndirect ? namesOf(shape.uses.flatMap((use) => use.references)) : [])];
}

/** The `with` of a step, entry by entry, or all of it where it is one expression. */
function argumentsOf(
  owner: MapNode,
): readonly { readonly key?: string; readonly value: SourceNode; readonly at: Span }[] {
  const given = entry(owner, "with")?.value;
  if (given === undefined) return [];
  return asMap(given)
    ? entriesOf(given).map(({ key, value, keyAt }) => ({ key, value, at: keyAt }))
    : [{ value: given, at: given.at }];
}

function commonBlocks({ shape: { node } }: LinkedWorkflow): readonly (SourceNode | undefined)[] {
  const defaults = asMap(entry(node, "defaults")?.value);
  return [entry(node, "env")?.value, defaults && entry(defaults, "env")?.value];
}

/** What starts processes or workflows: every step, and what undoes it. */
function* ownersOf(
  workflow: LinkedWorkflow,
): Generator<{ readonly owner: MapNode; readonly called: LinkedWorkflow | undefined }> {
  for (const { step } of stepsOf(workflow.scope)) {
    yield { owner: step.node, called: workflow.workflows.get(step) };
    const undo = asMap(entry(step.node, "undo")?.value);
    if (undo) yield { owner: undo, called: workflow.undoWorkflows.get(step) };
  }
}

function checkNamesOf(env: SourceNode | undefined, report: Report): void {
  for (const { key, keyAt } of entriesOf(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
      report("FLOW3001", keyAt, `\`${key}\` cannot be the name of an environment variable`, {
        suggestion: "use letters, digits and `_`",
      });
  }
}

function readsAny(node: SourceNode, contexts: ReadonlySet<string>): boolean {
  return referencesIn(node).some(({ context }) => contexts.has(context));
}

/** Also of texts deeper in a list or a map. */
function referencesIn(node: SourceNode): readonly Reference[] {
  if (node.kind === "map") return node.entries.flatMap(({ value }) => referencesIn(value));
  if (node.kind === "list") return node.items.flatMap(referencesIn);
  const parts = scanTemplate(asText(node)?.value ?? "");
  return (parts.ok ? parts.value : []).flatMap((part) => {
    const parsed = "source" in part ? parseExpression(part.source) : undefined;
    return parsed?.ok === true ? references(parsed.value) : [];
  });
}
