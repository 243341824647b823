import type { ModelFailure } from "../model/ports.ts";

const maxMessage = 2_048;

/** A server's words in a failure: one line, cut to 2 KB, without the key. */
export function failureText(text: string, secret?: string): string {
  const masked = secret === undefined || secret === "" ? text : text.replaceAll(secret, "***");
  const line = masked.replaceAll(/\s+/g, " ").trim();
  return line.length > maxMessage ? `${line.slice(0, maxMessage)}…` : line;
}

/** What an HTTP status means for a run, whoever reports it. */
export function kindOfStatus(status: number): ModelFailure["kind"] {
  if (status === 429) return "rate_limit";
  if (status === 401 || status === 403 || status === 407) return "unavailable";
  return "provider_error";
}
