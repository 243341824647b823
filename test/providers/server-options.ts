import type { ModelFacts } from "../../src/model/ports.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { type ServerModel, parseModel } from "../../src/providers/catalog.ts";
import { plainQuirks } from "../../src/providers/endpoints.ts";
import type { ServerOptions } from "../../src/providers/server.ts";

/** A plain server of nobody's in particular. */
export function serverOptions(baseUrl: string, more: Partial<ServerOptions> = {}): ServerOptions {
  return { provider: "custom", model: "m", baseUrl, quirks: plainQuirks, facts: unknownFacts, ...more };
}

/** The catalog's row for a model, as if its provider were at `baseUrl`. */
export function rowAt(id: string, baseUrl: string, facts: ModelFacts = unknownFacts): ServerOptions {
  const { provider, name, quirks, known } = serverModel(id);
  return {
    provider,
    model: name,
    baseUrl,
    apiKey: "sk-secret",
    quirks,
    facts,
    ...(known.thinking !== undefined && { thinking: known.thinking }),
  };
}

export function serverModel(id: string): ServerModel {
  const choice = parseModel(id);
  if (!choice.ok || choice.value.kind !== "server") throw new Error(`${id} is no server's model`);
  return choice.value;
}
