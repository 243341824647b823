import type { Span } from "../model/diagnostic.ts";
import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Plan, Scope, Server, Step, Template, Undo } from "../model/plan.ts";

/** An MCP server that some step of a plan is given. */
export interface PlannedServer extends Server {
  readonly definition: Template;
  /** Key of the workflow whose step it is. */
  readonly workflow: string;
  /** The first step that is given it. */
  readonly at: Span;
}

/** Every server of a plan, by what defines it and its name, once. */
export function serversOfPlan(plan: Plan): readonly PlannedServer[] {
  const found = new Map<string, PlannedServer>();
  for (const [workflow, { scope }] of Object.entries(plan.workflows)) {
    for (const { at, ...step } of stepsIn(scope)) {
      for (const server of serversOfStep(step)) {
        const key = `${server.file}#${server.name}`;
        if (!found.has(key)) found.set(key, { ...server, workflow, at });
      }
    }
  }
  return [...found.values()];
}

/** Variables of flow's own environment that definitions read as credentials: what they hold is for no log. */
export function serverSecrets(plan: Plan): readonly string[] {
  return serversOfPlan(plan).flatMap(({ expands, definition }) =>
    expands && definition.type === "data" ? secretVariables(definition.json) : [],
  );
}

function* stepsIn({ steps }: Scope): Generator<Pick<Step | Undo, "body" | "inputs"> & { readonly at: Span }> {
  for (const step of steps) {
    const { at } = step;
    yield step;
    if (step.undo) yield { ...step.undo, at };
    if (step.scope && "inline" in step.scope) yield* stepsIn(step.scope.inline);
  }
}

function serversOfStep({
  body,
  inputs,
}: Pick<Step, "body" | "inputs">): (Server & { readonly definition: Template })[] {
  if ((body.kind !== "agent" && body.kind !== "tool") || body.mcp === undefined || inputs.type !== "map") return [];
  const definitions = inputs.entries.find(({ name }) => name === "mcp")?.value;
  if (definitions?.type !== "map") return [];
  return body.mcp.servers.flatMap((server) => {
    const definition = definitions.entries.find(({ name }) => name === server.name)?.value;
    return definition === undefined ? [] : [{ ...server, definition }];
  });
}

/** Names of the variables a definition reads where credentials are written: what they hold is not for any log. */
export function secretVariables(definition: Json): string[] {
  const parts = isJsonObject(definition)
    ? ["env", "headers", "args", "url"].map((key) => JSON.stringify(own(definition, key) ?? ""))
    : [];
  const names = parts.flatMap((part) =>
    [...part.matchAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name = ""]) => name),
  );
  return [...new Set(names)].filter((name) => /key|token|secret|passw|credential|auth/i.test(name));
}
