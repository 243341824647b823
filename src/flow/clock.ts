import { performance } from "node:perf_hooks";
import { longestDuration } from "../model/duration.ts";
import type { Clock } from "../model/ports.ts";

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    let timer: NodeJS.Timeout;
    // A timer that is asked for more than it takes fires at once.
    const wait = (left: number): void => {
      if (left > longestDuration) timer = setTimeout(() => wait(left - longestDuration), longestDuration);
      else timer = setTimeout(callback, left);
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};
