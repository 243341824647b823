import type { Failure, FailureKind, RunOutcome } from "../model/outcome.ts";
import { exitCodes } from "../model/outcome.ts";
import { unreachable } from "../model/result.ts";

/** The worst first; every other kind is a plain `failure`. */
const ranks: readonly { readonly code: number; readonly kinds: readonly FailureKind[] }[] = [
  { code: exitCodes.internal, kinds: ["internal"] },
  { code: exitCodes.unavailable, kinds: ["provider_error", "rate_limit", "unavailable", "log"] },
  { code: exitCodes.denied, kinds: ["denied"] },
  { code: exitCodes.limit, kinds: ["budget", "max_turns"] },
];

/** The exit code of a run that ended; of several failures the worst kind counts. `signal` is what cancelled it. */
export function exitCode(run: {
  readonly outcome: RunOutcome;
  readonly failures: readonly Failure[];
  readonly signal?: "SIGINT" | "SIGTERM";
}): number {
  switch (run.outcome) {
    case "cancelled":
      return run.signal === "SIGTERM" ? exitCodes.terminated : exitCodes.interrupted;
    case "waiting":
      return exitCodes.waiting;
    case "success":
      return exitCodes.success;
    case "empty":
      return exitCodes.failure;
    case "failure": {
      const found = new Set(run.failures.map(({ kind }) => kind));
      return ranks.find(({ kinds }) => kinds.some((kind) => found.has(kind)))?.code ?? exitCodes.failure;
    }
    default:
      return unreachable(run.outcome);
  }
}
