import { exitCodes } from "../model/outcome.ts";
import { say } from "./output.ts";

/**
 * Waits for a run. A process that has nothing left to wait for ends by itself with exit code 0, also in the middle of a
 * run: that is a bug, and is said.
 */
export async function untilEnd<Ended>(run: PromiseLike<Ended>): Promise<Ended> {
  const stopped = (): void => {
    say(
      "flow: this is a bug of flow: it stopped in the middle of the run; please report it. `flow resume latest` goes on\n",
    );
    process.exitCode = exitCodes.internal;
  };
  process.once("beforeExit", stopped);
  try {
    return await run;
  } finally {
    process.off("beforeExit", stopped);
  }
}
