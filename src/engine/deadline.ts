import { whenAborted } from "../model/abort.ts";
import type { Clock } from "../model/ports.ts";
import type { Around } from "./rest.ts";

/** A signal of one's own; whoever made it closes it, so that no timer and no listener outlives its use. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Whether time was up before anything else aborted it. */
  readonly passed: () => boolean;
  /** Its time stands still while all that is under it waits. */
  readonly around: (outer: Around | undefined) => Around | undefined;
  readonly close: () => void;
}

/** Aborted after `ms` with the reason `duration`, or together with `parent`. */
export function deadline(clock: Clock, ms: number, parent: AbortSignal): Deadline {
  return bounded({ clock, ms, parent, why: "duration" });
}

/** The same of a step's own timeout: the reason tells whoever is aborted which of the two it was. */
export function timeoutOf(clock: Clock, ms: number, parent: AbortSignal): Deadline {
  return bounded({ clock, ms, parent, why: "timeout" });
}

interface Bound {
  readonly clock: Clock;
  readonly ms: number;
  readonly parent: AbortSignal;
  readonly why: "duration" | "timeout";
}

function bounded({ clock, ms, parent, why }: Bound): Deadline {
  const own = new AbortController();
  let passed = false;
  const unlink = whenAborted(parent, () => own.abort(parent.reason));
  const pass = (): void => {
    passed = !own.signal.aborted;
    own.abort(why);
  };
  let left = ms;
  let since = clock.monotonic();
  let stop = clock.after(left, pass);
  const close = (): void => {
    unlink();
    stop();
  };
  const around = (outer: Around | undefined): Around | undefined =>
    outer && {
      rest: (waiting) => {
        stop();
        left -= clock.monotonic() - since;
        outer.rest(waiting);
      },
      wake: (then) =>
        outer.wake(() => {
          since = clock.monotonic();
          stop = clock.after(Math.max(left, 0), pass);
          then();
        }),
    };
  return { signal: own.signal, passed: () => passed, around, close };
}
