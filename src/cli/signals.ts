import { say } from "./output.ts";

export interface Signals {
  /** Aborted by the first signal, with its name as reason. */
  readonly cancel: AbortSignal;
  /** Aborted by the second. */
  readonly kill: AbortSignal;
  /** Gives the signals back to the system. */
  stop(): void;
}

/** The first SIGINT, SIGTERM or SIGHUP cancels, the second ends everything at once. */
export function onSignals(): Signals {
  const cancel = new AbortController();
  const kill = new AbortController();
  const listener = (signal: NodeJS.Signals): void => {
    if (cancel.signal.aborted) {
      kill.abort(signal);
      return;
    }
    say(`\nflow: ${signal}: cancelling; once more ends everything at once\n`);
    cancel.abort(signal === "SIGINT" ? "SIGINT" : "SIGTERM");
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.on(name, listener);
  return {
    cancel: cancel.signal,
    kill: kill.signal,
    stop: () => {
      for (const name of names) process.off(name, listener);
    },
  };
}
