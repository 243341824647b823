import { isJsonObject, own } from "../model/json.ts";
import type { ModelFailure } from "../model/ports.ts";
import { failureText, kindOfStatus } from "./failure.ts";

export interface ErrorSetting {
  readonly model: string;
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly keyName?: string;
}

/** Addresses nobody answers at: trying again in the same run does not help. */
const unreachableCodes: readonly string[] = ["ENOTFOUND", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"];

/**
 * What went wrong in a call, from whatever the SDK threw. It is read by its fields: the SDK throws its own classes for
 * statuses, a bare SyntaxError for a chunk that is not JSON and a TypeError for a broken connection.
 */
export function failureOf(error: unknown, setting: ErrorSetting): ModelFailure {
  const text = failureText(messageOf(error), setting.apiKey);
  const status = field(error, "status");
  if (typeof status === "number") return statusFailure(error, { status, text, setting });
  const network = networkCode(error);
  if (network !== undefined && unreachableCodes.includes(network))
    return { kind: "unavailable", message: `the server at ${setting.baseUrl} cannot be reached (${network})` };
  if (network !== undefined) return { kind: "provider_error", message: `the connection broke (${network}): ${text}` };
  if (error instanceof SyntaxError)
    return { kind: "provider_error", message: `the server sent a piece that is not JSON: ${text}` };
  const code = field(error, "code");
  if (code === 429 || code === "rate_limit_exceeded") return { kind: "rate_limit", message: text };
  return { kind: "provider_error", message: text };
}

interface StatusError {
  readonly status: number;
  readonly text: string;
  readonly setting: ErrorSetting;
}

function statusFailure(error: unknown, { status, text, setting }: StatusError): ModelFailure {
  const retryAfter = retryAfterOf(field(error, "headers"));
  const wait = retryAfter === undefined ? {} : { retryAfter };
  const code = field(error, "code");
  if (code === "insufficient_quota") return { kind: "unavailable", message: `no quota left: ${text}`, status };
  if (code === "context_length_exceeded" || status === 413) return { kind: "overflow", message: text, status };
  const kind = kindOfStatus(status);
  return { kind, message: explain(text, status, setting), status, ...wait };
}

function explain(text: string, status: number, { model, baseUrl, apiKey, keyName }: ErrorSetting): string {
  switch (status) {
    case 401:
    case 403:
      if (apiKey === undefined) return `the server asks for a key and none is named (\`model.key\`): ${text}`;
      return `the key in ${keyName ?? "the key variable"} was refused: ${text}`;
    case 404:
      return `the model \`${model}\` or the address ${baseUrl} does not exist: ${text}`;
    case 407:
      return `a proxy asks for a password: ${text}`;
    default:
      return text;
  }
}

/** Milliseconds, from `retry-after-ms`, or `retry-after` in seconds or as a date. */
function retryAfterOf(headers: unknown): number | undefined {
  if (!(headers instanceof Headers)) return undefined;
  const milliseconds = headers.get("retry-after-ms");
  if (milliseconds !== null && /^\d{1,12}$/.test(milliseconds)) return Number(milliseconds);
  const after = headers.get("retry-after");
  if (after === null) return undefined;
  if (/^\d{1,9}(\.\d{1,3})?$/.test(after)) return Math.ceil(Number(after) * 1000);
  const until = Date.parse(after) - Date.now();
  return Number.isNaN(until) ? undefined : Math.max(0, until);
}

/** The code of a network error, which Node hides up to three causes deep. */
function networkCode(error: unknown): string | undefined {
  let inner = error;
  for (let depth = 0; depth < 4; depth++) {
    const code = field(inner, "code");
    if (
      typeof code === "string" &&
      /^(E[A-Z]+|UND_ERR_[A-Z_]+|CERT_[A-Z_]+|DEPTH_ZERO[A-Z_]*|SELF_SIGNED[A-Z_]*)$/.test(code)
    )
      return code;
    inner = field(inner, "cause");
  }
  return undefined;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = field(error, "cause");
  return cause instanceof Error ? `${error.message} (${messageOf(cause)})` : error.message;
}

function field(value: unknown, name: string): unknown {
  if (value instanceof Error) return Reflect.get(value, name);
  return isJsonObject(value) ? own(value, name) : undefined;
}
