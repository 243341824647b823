import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { priceOf } from "../providers/catalog.ts";
import { type Endpoint, plainQuirks, type Quirks } from "../providers/endpoints.ts";
import type { KnownModel } from "../providers/known-models.ts";

/** Undefined when nobody says where the server is. */
export function endpointOf(value: JsonObject, before: Endpoint | undefined): Endpoint | undefined {
  const ownUrl = textAt(value, "base-url");
  const baseUrl = ownUrl ?? before?.baseUrl;
  if (baseUrl === undefined) return undefined;
  // An ambient key is not for a server that somebody put in the place of its own.
  const key = textAt(value, "key") ?? (ownUrl === undefined ? before?.key : undefined);
  const protocol = textAt(value, "protocol") === "anthropic" ? "anthropic" : undefined;
  const isOpenai = textAt(value, "protocol") === "openai";
  return {
    protocol: protocol ?? (isOpenai ? "openai" : (before?.protocol ?? "openai")),
    baseUrl,
    ...(key !== undefined && { key }),
    ...(before?.keyOptional !== undefined && { keyOptional: before.keyOptional }),
    local: flagAt(value, "local") ?? (ownUrl === undefined ? (before?.local ?? false) : false),
    parallel: numberAt(value, "parallel") ?? before?.parallel ?? 64,
    quirks: quirksOf(value, before?.quirks ?? plainQuirks),
  };
}

function quirksOf(value: JsonObject, before: Quirks): Quirks {
  const given = own(value, "quirks");
  const quirks = isJsonObject(given) ? given : {};
  const toolStream = flagAt(quirks, "tool-stream") ?? before.toolStream;
  return {
    maxTokens: oneOf(maxTokensFields, own(quirks, "max-tokens")) ?? before.maxTokens,
    system: oneOf(systemRoles, own(quirks, "system")) ?? before.system,
    usageOption: flagAt(quirks, "usage-option") ?? before.usageOption,
    requiredCalls: flagAt(quirks, "required-calls") ?? before.requiredCalls,
    jsonSchema: flagAt(quirks, "json-schema") ?? before.jsonSchema,
    effort: oneOf(effortFields, own(quirks, "effort")) ?? before.effort,
    images: flagAt(quirks, "images") ?? before.images,
    ...(toolStream !== undefined && { toolStream }),
  };
}

const maxTokensFields = ["max_tokens", "max_completion_tokens"] as const;
const systemRoles = ["system", "developer"] as const;
const effortFields = [
  "reasoning_effort",
  "reasoning",
  "thinking",
  "thinking+effort",
  "enable_thinking",
  "none",
] as const satisfies readonly Quirks["effort"][];

/** What a configuration says of a model. */
export function knownModelOf(value: JsonObject): KnownModel {
  const window = numberAt(value, "window");
  const maxOutput = numberAt(value, "max-output");
  const jsonSchema = flagAt(value, "json-schema");
  const thinking = oneOf(["adaptive", "budget"] as const, own(value, "thinking"));
  const price = priceOf(own(value, "price"));
  return {
    ...(window !== undefined && { window }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(jsonSchema !== undefined && { jsonSchema }),
    ...(thinking !== undefined && { thinking }),
    ...(price !== undefined && { price }),
  };
}

function oneOf<T extends string>(words: readonly T[], value: Json | undefined): T | undefined {
  return words.find((word) => word === value);
}

function textAt(object: JsonObject, key: string): string | undefined {
  const value = own(object, key);
  return typeof value === "string" ? value : undefined;
}

function numberAt(object: JsonObject, key: string): number | undefined {
  const value = own(object, key);
  return typeof value === "number" ? value : undefined;
}

function flagAt(object: JsonObject, key: string): boolean | undefined {
  const value = own(object, key);
  return typeof value === "boolean" ? value : undefined;
}
