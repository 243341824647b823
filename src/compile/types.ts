import { type Reference, references, type StaticType, staticType } from "../expr/inspect.ts";
import { parseExpression } from "../expr/parse.ts";
import { type FollowResult, followSchema, schemaType } from "../jsonschema/follow.ts";
import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import type { Data, Input, Named, Template } from "../model/plan.ts";
import { type LinkedScope, resolve } from "./link.ts";
import type { LinkedWorkflow } from "./linked.ts";
import type { StepShape } from "./shape.ts";

/** Where a reference stands: its scope, and the step whose `result`, `item` and `previous` it sees. */
export interface Viewpoint {
  readonly scope: LinkedScope;
  readonly step: StepShape | undefined;
}

/** What is known at compile time about the values references name, as JSON Schemas; `true` says nothing. */
export interface Types {
  /** Follows a reference as far as schemas reach. */
  follow(reference: Reference, from: Viewpoint): FollowResult;
  typeOf(reference: Reference, from: Viewpoint): StaticType;
  /** Schema of a whole template's value. */
  ofTemplate(template: Template, from: Viewpoint): Json;
  /** Schema of a workflow's outputs. */
  outputs(): Json;
}

const text: JsonObject = { type: "string" };
const unknown: Json = true;

/** Types of one workflow; `subTypes` gives those of its sub-workflows. */
export function createTypes(workflow: LinkedWorkflow, subTypes: (workflow: LinkedWorkflow) => Types): Types {
  const known = new Map<StepShape, Json>();
  const { shape } = workflow;
  const root: Viewpoint = { scope: workflow.scope, step: undefined };
  const types: Types = {
    follow: (reference, from) => {
      if (reference.context === "steps") return followStep(reference, from);
      return followSchema(contextSchema(reference.context, from), reference.path.map(segment));
    },
    typeOf: (reference, from) => {
      const followed = types.follow(reference, from);
      return followed.kind === "found" ? schemaType(followed.schema) : "unknown";
    },
    ofTemplate,
    outputs: () => namedSchema(shape.scope.outputs, root),
  };
  return types;

  function followStep(reference: Reference, from: Viewpoint): FollowResult {
    const [id, ...rest] = reference.path;
    const found = id?.kind === "name" ? resolve(from.scope, id.name) : undefined;
    if (!found) return { kind: "unchecked" };
    const followed = followSchema(stepSchema(found.step, found.scope), rest.map(segment));
    return followed.kind === "unknown_property" ? { ...followed, at: followed.at + 1 } : followed;
  }

  function contextSchema(context: string, from: Viewpoint): Json {
    switch (context) {
      case "inputs":
        return inputsSchema(shape.inputs);
      case "vars":
        return namedSchema(shape.vars, root);
      case "env":
        return closed(Object.fromEntries(shape.env.map((it) => [it.name, text])));
      case "secrets":
        return closed(Object.fromEntries(shape.secrets.map((it) => [it.text, text])));
      case "run":
        return closed({ id: text, workflow: text, started: text });
      case "index":
      case "iteration":
        return { type: "integer" };
      case "result":
        return from.step ? resultSchema(from.step, from.scope) : unknown;
      default:
        return unknown;
    }
  }

  /** Schema of `steps.x`. Guarded against steps that refer to each other: those say nothing about each other. */
  function stepSchema(step: StepShape, scope: LinkedScope): Json {
    const ready = known.get(step);
    if (ready !== undefined) return ready;
    known.set(step, unknown);
    const once = step.step.outputs ? namedSchema(step.step.outputs, { scope, step }) : defaultOutputs(step, scope);
    const failure = closed({ kind: text, message: text, position: unknown, cause: text, step: text });
    const outputs = step.step.foreach
      ? closed({
          items: { type: "array", items: once },
          failed: { type: "array", items: closed({ index: { type: "integer" }, item: unknown, error: failure }) },
        })
      : once;
    const schema = closed({ outcome: text, conclusion: text, outputs, error: failure, skipReason: text });
    known.set(step, schema);
    return schema;
  }

  function defaultOutputs(step: StepShape, scope: LinkedScope): Json {
    const { body } = step.step;
    switch (body.kind) {
      case "agent": {
        const output = body.output ?? workflow.agents.get(step)?.agent.output;
        return output ? output.json : closed({ text });
      }
      case "run":
        return {
          type: "object",
          properties: { stdout: text, stderr: text, "exit-code": { type: "integer" }, ...propertiesOf(body.output) },
          additionalProperties: true,
        };
      case "tool":
        return body.output ? body.output.json : unknown;
      default:
        return resultSchema(step, scope);
    }
  }

  function resultSchema(step: StepShape, scope: LinkedScope): Json {
    const { body, inputs } = step.step;
    switch (body.kind) {
      case "agent": {
        const output = body.output ?? workflow.agents.get(step)?.agent.output;
        return closed({
          text,
          output: output ? output.json : { type: "null" },
          turns: { type: "integer" },
          usage: unknown,
          cost: unknown,
        });
      }
      case "run":
        return closed({ stdout: text, stderr: text, "exit-code": { type: "integer" } });
      case "tool":
        return closed({ text, content: unknown });
      case "workflow": {
        const sub = workflow.workflows.get(step);
        return sub ? subTypes(sub).outputs() : unknown;
      }
      case "steps": {
        const inside = scope.inner.get(step.id);
        return inside ? namedSchema(inside.shape.outputs, { scope: inside, step }) : closed({});
      }
      case "approve":
        return closed({ by: text, comment: text, ...propertiesOf(body.form) });
      case "set": {
        const values = inputs.type === "map" ? inputs.entries.find((it) => it.name === "set")?.value : undefined;
        return values ? ofTemplate(values, { scope, step }) : unknown;
      }
    }
  }

  function namedSchema(entries: readonly Named<Template>[], from: Viewpoint): Json {
    return closed(Object.fromEntries(entries.map((it) => [it.name, ofTemplate(it.value, from)])));
  }

  function ofTemplate(template: Template, from: Viewpoint): Json {
    switch (template.type) {
      case "data":
        return dataSchema(template.json);
      case "text":
        return text;
      case "list":
        return { type: "array" };
      case "map":
        return namedSchema(template.entries, from);
      case "expression":
        return expressionSchema(template.source, from);
    }
  }

  function expressionSchema(source: string, from: Viewpoint): Json {
    const parsed = parseExpression(source);
    if (!parsed.ok) return unknown;
    const [only, second] = references(parsed.value);
    if (only && !second && only.length === source.length) {
      const followed = types.follow(only, from);
      return followed.kind === "found" ? followed.schema : unknown;
    }
    const type = staticType(parsed.value, (reference) => types.typeOf(reference, from));
    return type === "unknown" ? unknown : { type };
  }
}

function segment(part: Reference["path"][number]): string | number | "*" {
  if (part.kind === "name") return part.name;
  return part.kind === "index" ? (part.value ?? "*") : "*";
}

/** Declared inputs as one object schema. */
export function inputsSchema(inputs: readonly Input[]): Json {
  return closed(Object.fromEntries(inputs.map((it) => [it.name, it.schema.json])));
}

function propertiesOf(schema: Data | undefined): JsonObject {
  const properties = schema && isJsonObject(schema.json) ? schema.json["properties"] : undefined;
  return isJsonObject(properties) ? properties : {};
}

function closed(properties: JsonObject): Json {
  return { type: "object", properties, additionalProperties: false };
}

/** The schema of a constant: exact about names, plain about values. */
function dataSchema(value: Json): Json {
  if (Array.isArray(value)) return { type: "array" };
  if (isJsonObject(value))
    return closed(Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, dataSchema(inner)])));
  return { type: value === null ? "null" : typeof value };
}
