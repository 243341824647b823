import { err, ok, type Result } from "../model/result.ts";
import { type Launch, namespaceLaunch } from "../process/namespace.ts";

/** What keeps the processes of a run together, so that none outlives it. */
export interface Supervision {
  readonly mode: "group" | "namespace";
  /** Starts every process of the run; only with `namespace`. */
  readonly launch?: Launch;
}

export interface SupervisionProblem {
  readonly kind: "usage" | "unavailable";
  readonly message: string;
}

/** What `FLOW_SUPERVISE` asks for, in `env`; process groups when it says nothing. */
export function supervise(env: {
  readonly [name: string]: string | undefined;
}): Result<Supervision, SupervisionProblem> {
  const wish = env["FLOW_SUPERVISE"] ?? "";
  if (wish === "" || wish === "group") return ok({ mode: "group" });
  if (wish !== "namespace") {
    const message = `FLOW_SUPERVISE is ${JSON.stringify(wish)}; it can be group (which it is when absent) or namespace`;
    return err({ kind: "usage", message });
  }
  const launch = namespaceLaunch(env["PATH"] ?? "");
  if (launch !== undefined) return ok({ mode: "namespace", launch });
  const message =
    "FLOW_SUPERVISE is namespace, and this machine has no bubblewrap (bwrap) that works; install it and allow user namespaces, or leave FLOW_SUPERVISE out";
  return err({ kind: "unavailable", message });
}
