import { isJsonObject, own } from "../model/json.ts";
import type { ModelFailure } from "../model/ports.ts";
import { failureText, kindOfStatus } from "./failure.ts";

export interface ErrorSetting {
  readonly model: string;
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly keyName?: string;
}

/** Trouble that is there tomorrow too: a name nobody has, a certificate nobody trusts. */
const lastingCodes =
  /^(ENOTFOUND|CERT_[A-Z_]+|DEPTH_ZERO[A-Z_]*|SELF_SIGNED[A-Z_]*|UNABLE_TO_[A-Z_]+|ERR_TLS_[A-Z_]+)$/;
/** Nobody listens there, or the way there is closed. */
const closedCodes: readonly string[] = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"];
const networkCodes = /^(E[A-Z]{3,}|UND_ERR_[A-Z_]+)$/;

/** How servers of several makes say that a request is longer than the model's window. */
const overflowWords: readonly string[] = [
  "context_length_exceeded",
  "maximum context length",
  "context length of only",
  "exceeds the context",
  "exceed context",
  "context window",
  "greater than the context length",
  "prompt is too long",
  "input is too long",
  "too many tokens",
  "reduce the length",
  "maximum number of tokens",
  "model's context",
];
/** How they say that nothing is left to pay with. */
const quotaWords: readonly string[] = [
  "insufficient_quota",
  "exceeded your current quota",
  "insufficient balance",
  "credit balance is too low",
  "insufficient credits",
  "billing_not_active",
];

/**
 * What went wrong in a call, from whatever an SDK threw. It is read by its fields: the SDKs throw their own classes for
 * statuses, a bare SyntaxError for a piece that is not JSON and a TypeError for a broken connection.
 */
export function failureOf(error: unknown, setting: ErrorSetting): ModelFailure {
  const text = failureText(messageOf(error), setting.apiKey);
  const status = field(error, "status");
  if (typeof status === "number") return statusFailure(error, { status, text, setting });
  const network = networkCode(error);
  if (network !== undefined) return networkFailure(network, text, setting.baseUrl);
  if (text.includes("bad port"))
    return lasting(
      "unavailable",
      `${setting.baseUrl} cannot be asked: its port belongs to another protocol, and is blocked as in every browser; name the port your server listens on`,
    );
  if (text.includes("unexpected redirect"))
    return lasting("provider_error", `${setting.baseUrl} answered with a redirect, which is not followed: ${text}`);
  if (error instanceof SyntaxError)
    return { kind: "provider_error", message: `the server sent a piece that is not JSON: ${text}`, transient: true };
  return streamedFailure(error, text);
}

function lasting(kind: ModelFailure["kind"], message: string, status?: number): ModelFailure {
  return { kind, message, transient: false, ...(status !== undefined && { status }) };
}

function networkFailure(code: string, text: string, baseUrl: string): ModelFailure {
  const message = `the server at ${baseUrl} cannot be reached (${code})`;
  if (lastingCodes.test(code)) return lasting("unavailable", message);
  // On this machine a server that is not running does not come by waiting.
  if (closedCodes.includes(code)) return { kind: "unavailable", message, transient: !isLoopback(baseUrl) };
  return { kind: "provider_error", message: `the connection broke (${code}): ${text}`, transient: true };
}

function isLoopback(url: string): boolean {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** An error that came inside a stream whose status was good. */
function streamedFailure(error: unknown, text: string): ModelFailure {
  const body = field(error, "error");
  const codes = [field(error, "code"), field(error, "type"), field(body, "type"), field(field(body, "error"), "type")];
  if (codes.some((code) => code === 429 || code === "rate_limit_exceeded" || code === "rate_limit_error"))
    return { kind: "rate_limit", message: text, transient: true };
  const said = `${codes.join(" ")} ${text}`.toLowerCase();
  if (quotaWords.some((word) => said.includes(word))) return lasting("unavailable", `no quota left: ${text}`);
  if (overflowWords.some((word) => said.includes(word))) return lasting("overflow", text);
  const refused = ["invalid_request_error", "authentication_error", "permission_error", "not_found_error"];
  return { kind: "provider_error", message: text, transient: !codes.some((code) => refused.includes(String(code))) };
}

interface StatusError {
  readonly status: number;
  readonly text: string;
  readonly setting: ErrorSetting;
}

function statusFailure(error: unknown, { status, text, setting }: StatusError): ModelFailure {
  const headers = field(error, "headers");
  const said = `${String(field(error, "code"))} ${text}`.toLowerCase();
  const has = (word: string): boolean => said.includes(word);
  if (status === 402 || (status < 500 && quotaWords.some(has)))
    return lasting("unavailable", `no quota left: ${text}`, status);
  if (status === 413 || (status === 400 && overflowWords.some(has))) return lasting("overflow", text, status);
  const retryAfter = retryAfterOf(headers);
  return {
    kind: kindOfStatus(status),
    message: explain(text, status, setting),
    status,
    ...(retryAfter !== undefined && { retryAfter }),
    transient: shouldRetry(headers) ?? isTransientStatus(status),
  };
}

/** Statuses after which the same request may succeed a little later. */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** What the server itself says about another try. */
function shouldRetry(headers: unknown): boolean | undefined {
  const said = headers instanceof Headers ? headers.get("x-should-retry") : null;
  return said === "true" ? true : said === "false" ? false : undefined;
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
  if (milliseconds !== null && /^\d{1,12}(\.\d{1,6})?$/.test(milliseconds)) return Math.ceil(Number(milliseconds));
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
    if (typeof code === "string" && (networkCodes.test(code) || lastingCodes.test(code))) return code;
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
