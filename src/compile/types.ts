import { type Reference, references, type StaticType, staticType } from "../expr/inspect.ts";
import { parseExpression } from "../expr/parse.ts";
import { isJsonObject, type Json } from "../model/json.ts";
import type { Data, Input, Named, Template } from "../model/plan.ts";
import { unreachable } from "../model/result.ts";
import { orderOf } from "./graph.ts";
import {
  anyOf,
  follow,
  type Followed,
  type Known,
  nothing,
  objectOf,
  ofData,
  ofSchema,
  type Path,
  typeOfKnown,
} from "./known.ts";
import { type LinkedScope, resolve } from "./link.ts";
import type { LinkedWorkflow } from "./linked.ts";
import type { StepShape } from "./shape.ts";

/** Where a reference stands: its scope, and the step whose `result`, `item` and `previous` it sees. */
export interface Viewpoint {
  readonly scope: LinkedScope;
  readonly step: StepShape | undefined;
  /** In a step's `undo`, where the step's own outputs are those of the one execution that is undone. */
  readonly undoing?: true;
}

/** What is known at compile time about the values that references name. */
export interface Types {
  /** Follows a reference as far as anything is known. */
  follow(reference: Reference, from: Viewpoint): Followed;
  typeOf(reference: Reference, from: Viewpoint): StaticType;
  /** The workflow's outputs. */
  outputs(): Known;
}

const text = ofSchema({ type: "string" });
const integer = ofSchema({ type: "integer" });
const failure = objectOf([
  ["kind", text],
  ["message", text],
  ["position", nothing],
  ["cause", text],
  ["step", text],
]);

/** Types of one workflow; `subTypes` gives those of its sub-workflows. */
export function createTypes(workflow: LinkedWorkflow, subTypes: (workflow: LinkedWorkflow) => Types): Types {
  const { shape } = workflow;
  const root: Viewpoint = { scope: workflow.scope, step: undefined };
  const steps = new Map<StepShape, Known>();
  const bodies = new Map<StepShape, Known>();
  const contexts = new Map<string, Known>();
  let walked = false;
  return {
    follow: (reference, from) => {
      walkOnce();
      return followReference(reference, from);
    },
    typeOf,
    outputs: () => {
      walkOnce();
      return remembered(contexts, "outputs", () => named(shape.scope.outputs, root));
    },
  };

  /** Looks at every step after those it refers to, so that a long chain of them is no deep recursion. */
  function walkOnce(): void {
    if (walked) return;
    walked = true;
    walk(workflow.scope);
  }

  function walk(scope: LinkedScope): void {
    const all = scope.shape.steps;
    const order = orderOf(all.length, scope.edges);
    // Steps that wait for each other say nothing about each other.
    if (order.length < all.length) {
      const ordered = new Set(order);
      all.forEach((step, index) => void (ordered.has(index) || steps.set(step, nothing)));
    }
    for (const index of order) {
      const step = all[index];
      const inner = step && scope.inner.get(step.id);
      if (inner) walk(inner);
      if (step) ofStep(step, scope);
    }
  }

  function followReference(reference: Reference, from: Viewpoint): Followed {
    const path = pathOf(reference);
    if (reference.context !== "steps") return follow(ofContext(reference.context, from), path);
    const [id] = reference.path;
    const found = id?.kind === "name" ? resolve(from.scope, id.name) : undefined;
    if (!found) return { kind: "unchecked" };
    const own = from.undoing && found.step === from.step;
    const known = own ? stepOf(ofBody(found.step, found.scope)) : ofStep(found.step, found.scope);
    const followed = follow(known, path.slice(1));
    return followed.kind === "unknown_property" ? { ...followed, at: followed.at + 1 } : followed;
  }

  /** `previous` and all in it are null at first. */
  function typeOf(reference: Reference, from: Viewpoint): StaticType {
    const followed = followReference(reference, from);
    return followed.kind === "found" && reference.context !== "previous" ? typeOfKnown(followed.known) : "unknown";
  }

  function ofContext(context: string, from: Viewpoint): Known {
    switch (context) {
      case "inputs":
        return remembered(contexts, context, () => ofInputs(shape.inputs));
      case "vars":
        return remembered(contexts, context, () => named(shape.vars, root));
      case "env":
        return remembered(contexts, context, () => objectOf(shape.env.map((it) => [it.name, text])));
      case "secrets":
        return remembered(contexts, context, () => objectOf(shape.secrets.map((it) => [it.text, text])));
      case "run":
        return objectOf(["id", "workflow", "started"].map((name) => [name, text]));
      case "index":
      case "iteration":
        return integer;
      case "item":
        return ofItem(around(from, (step) => step.step.foreach !== undefined));
      case "matrix":
        return ofItem(around(from, (step) => step.step.foreach?.matrix === true));
      case "previous": {
        const repeated = around(from, (step) => step.step.repeat !== undefined);
        return repeated?.step ? ofBody(repeated.step, repeated.scope) : nothing;
      }
      case "result":
        return from.step ? ofResult(from.step, from.scope) : nothing;
      default:
        return nothing;
    }
  }

  /** An item of the loop that `owner` is; its list is written outside of the loop. */
  function ofItem(owner: Viewpoint | undefined): Known {
    const foreach = owner?.step?.step.foreach;
    if (!owner || !foreach) return nothing;
    const outside: Viewpoint = { scope: owner.scope, step: undefined };
    if (foreach.matrix && foreach.items.type === "map") return ofAxes(foreach.items.entries, outside);
    const list = follow(ofTemplate(foreach.items, outside), ["*"]);
    return list.kind === "found" ? list.known : nothing;
  }

  function ofAxes(entries: readonly Named<Template>[], from: Viewpoint): Known {
    const axes = entries.filter((it) => it.name !== "include" && it.name !== "exclude");
    const isWider = entries.some((it) => it.name === "include");
    const values = axes.map(({ name, value }) => {
      const item = follow(ofTemplate(value, from), ["*"]);
      return [name, item.kind === "found" ? item.known : nothing] as const;
    });
    return objectOf(values, isWider ? nothing : undefined);
  }

  /** `steps.x`. */
  function ofStep(step: StepShape, scope: LinkedScope): Known {
    return remembered(steps, step, () => {
      const once = ofBody(step, scope);
      const failed = objectOf([
        ["index", integer],
        ["item", nothing],
        ["error", failure],
      ]);
      const outputs = step.step.foreach
        ? objectOf([
            ["items", { kind: "list", items: once }],
            ["failed", { kind: "list", items: failed }],
          ])
        : once;
      return stepOf(outputs);
    });
  }

  /** The outputs of one item and iteration. */
  function ofBody(step: StepShape, scope: LinkedScope): Known {
    return remembered(bodies, step, () =>
      step.step.outputs ? named(step.step.outputs, { scope, step }) : defaultOutputs(step, scope),
    );
  }

  function defaultOutputs(step: StepShape, scope: LinkedScope): Known {
    const { body } = step.step;
    switch (body.kind) {
      case "agent": {
        const output = body.output ?? workflow.agents.get(step)?.agent.output;
        if (!output) return objectOf([["text", text], ...changesOf(step)]);
        const own = ofSchema(output.json);
        return step.step.isolation === undefined ? own : objectOf([...changesOf(step), ...propertiesOf(output)], own);
      }
      case "run":
        // A script may write any output.
        return objectOf([...streams, ...changesOf(step), ...propertiesOf(body.output)], nothing);
      case "tool":
        return body.output ? ofSchema(body.output.json) : nothing;
      case "workflow":
      case "steps":
      case "approve":
      case "set":
        return ofResult(step, scope);
      default:
        return unreachable(body);
    }
  }

  function ofResult(step: StepShape, scope: LinkedScope): Known {
    const { body, inputs } = step.step;
    switch (body.kind) {
      case "agent": {
        const output = body.output ?? workflow.agents.get(step)?.agent.output;
        return objectOf([
          ["text", text],
          ["output", ofSchema(output ? output.json : { type: "null" })],
          ["turns", integer],
          ["usage", nothing],
          ["cost", nothing],
          ...changesOf(step),
        ]);
      }
      case "run":
        return objectOf([...streams, ...changesOf(step)]);
      case "tool":
        return objectOf([
          ["text", text],
          ["content", nothing],
        ]);
      case "workflow": {
        const sub = workflow.workflows.get(step);
        return sub ? subTypes(sub).outputs() : nothing;
      }
      case "steps": {
        const inside = scope.shape === step.inner ? scope : scope.inner.get(step.id);
        return inside ? named(inside.shape.outputs, { scope: inside, step }) : nothing;
      }
      case "approve":
        return objectOf(
          [
            ["by", text],
            ["comment", text],
          ],
          body.form && ofSchema(body.form.json),
        );
      case "set": {
        const values = inputs.type === "map" ? inputs.entries.find((it) => it.name === "set")?.value : undefined;
        return values ? ofTemplate(values, { scope, step }) : nothing;
      }
      default:
        return unreachable(body);
    }
  }

  function named(entries: readonly Named<Template>[], from: Viewpoint): Known {
    return objectOf(entries.map((it) => [it.name, ofTemplate(it.value, from)]));
  }

  function ofTemplate(template: Template, from: Viewpoint): Known {
    switch (template.type) {
      case "data":
        return ofData(template.json);
      case "text":
        return text;
      case "list":
        return { kind: "list", items: anyOf(template.items.map((item) => ofTemplate(item, from))) };
      case "map":
        return named(template.entries, from);
      case "expression":
        return ofExpression(template.source, from);
      default:
        return unreachable(template);
    }
  }

  function ofExpression(source: string, from: Viewpoint): Known {
    const parsed = parseExpression(source);
    if (!parsed.ok) return nothing;
    const [only, second] = references(parsed.value);
    if (only && !second && only.length === source.length) {
      const followed = followReference(only, from);
      return followed.kind === "found" && only.context !== "previous" ? followed.known : nothing;
    }
    const type = staticType(parsed.value, (reference) => typeOf(reference, from));
    return type === "unknown" || type === "object" || type === "array" ? nothing : ofSchema({ type });
  }
}

function stepOf(outputs: Known): Known {
  return objectOf([
    ["outcome", text],
    ["conclusion", text],
    ["outputs", outputs],
    ["error", failure],
    ["skipReason", text],
  ]);
}

/** What a step that works in a worktree of its own gives beside. */
function changesOf({ step }: StepShape): readonly (readonly [string, Known])[] {
  if (step.isolation === undefined) return [];
  return [
    ["patch", ofSchema({ type: ["string", "null"] })],
    ["files", { kind: "list", items: text }],
  ];
}

const streams: readonly (readonly [string, Known])[] = [
  ["stdout", text],
  ["stderr", text],
  ["exit-code", integer],
];

/** What is worked out once per key; while that goes on, the key says nothing about itself. */
function remembered<K>(known: Map<K, Known>, key: K, find: () => Known): Known {
  const ready = known.get(key);
  if (ready !== undefined) return ready;
  known.set(key, nothing);
  const found = find();
  known.set(key, found);
  return found;
}

/** The nearest step around a viewpoint, itself included, that `fits`, with the scope it stands in. */
function around(from: Viewpoint, fits: (step: StepShape) => boolean): Viewpoint | undefined {
  let { scope, step } = from;
  for (;;) {
    // What a group's own `outputs` and `until` see is the scope inside it.
    if (step && scope.owner === step && scope.parent) scope = scope.parent;
    if (step && fits(step)) return { scope, step };
    if (!scope.owner || !scope.parent) return undefined;
    step = scope.owner;
    scope = scope.parent;
  }
}

/** The path of a reference below its context. */
export function pathOf(reference: Reference): Path {
  return reference.path.map((part) => {
    if (part.kind === "name") return part.name;
    return part.kind === "index" ? (part.value ?? "*") : "*";
  });
}

/** Declared inputs by name. */
export function ofInputs(inputs: readonly Input[]): Known {
  return objectOf(inputs.map((it) => [it.name, ofSchema(it.schema.json)]));
}

function propertiesOf(schema: Data | undefined): (readonly [string, Known])[] {
  const properties: Json | undefined = schema && isJsonObject(schema.json) ? schema.json["properties"] : undefined;
  if (!schema || !isJsonObject(properties)) return [];
  return Object.keys(properties).map((name) => [name, ofSchema(schema.json, [name])] as const);
}
