import type { FailureKind } from "../model/outcome.ts";
import type { Retry } from "../model/plan.ts";
import type { BodyResult } from "./engine.ts";

/** Whether a result is worth another try. `attempt` is the one that gave it, from 1; `max` counts tries beyond the first. */
export function mayRetry(retry: Retry, attempt: number, result: BodyResult): result is Failed {
  return result.outcome === "failure" && attempt <= retry.max && retry.on.includes(result.error.kind);
}
type Failed = BodyResult & { readonly outcome: "failure"; readonly error: { readonly kind: FailureKind } };

/** Milliseconds before the attempt after `attempt`; with jitter between half and the whole of it. `random` is in [0, 1). */
export function retryDelay({ backoff, factor, cap, jitter }: Retry, attempt: number, random: number): number {
  // Zero times a factor that has grown to infinity is no number.
  const delay = backoff === 0 ? 0 : Math.min(cap, backoff * factor ** (attempt - 1));
  return Math.round(jitter ? delay * (0.5 + random / 2) : delay);
}
