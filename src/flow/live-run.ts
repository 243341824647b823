import { dirname } from "node:path";
import type { LogLine } from "../model/event.ts";
import { takeOrders } from "../runlog/orders.ts";
import type { CancelAgent, Conditions, LogWatch, Watched } from "./requests.ts";

/**
 * A run that has begun: the promise of how it ends, and its events. Each `for await` reads the log from the first event
 * of this run, or of this resume, at its own pace: the run waits for no reader, nothing is kept in memory for one that is
 * slow, and leaving the loop ends nothing but the loop. The promise rejects, and a loop throws, only by a bug.
 */
export interface Run<Ended> extends Promise<Ended>, AsyncIterable<LogLine> {
  /** Cancels it: what runs is ended, `undo` and `always()` steps run. The second call ends everything at once. */
  cancel(): void;
  /**
   * Cancels one agent run of it by its id (`agent` in the events), with all that it spawned; with `children: false` alone:
   * what it spawned goes on, and reports to whoever spawned it. False when none of that id is under way.
   */
  cancelAgent(agent: string, how?: { readonly children?: boolean }): boolean;
}

/** Begins at once; `begin` gets the request with what joins it to the {@link Run}. */
export function startLive<Request extends Conditions, Ended>(
  request: Request,
  begin: (request: Request & Watched) => Promise<Ended>,
): Run<Ended> {
  const cancel = new AbortController();
  const kill = new AbortController();
  const trail = new Trail((now) => {
    cancel.abort("SIGINT");
    if (now) kill.abort("SIGINT");
  });
  const watched = {
    ...request,
    watch: trail,
    signal: AbortSignal.any([cancel.signal, ...(request.signal ? [request.signal] : [])]),
    kill: AbortSignal.any([kill.signal, ...(request.kill ? [request.kill] : [])]),
  };
  const ended = begin(watched).finally(() => trail.end());
  const events = async function* (): AsyncGenerator<LogLine> {
    yield* trail.events();
    await ended;
  };
  return Object.assign(ended, {
    cancel: () => (cancel.signal.aborted ? kill : cancel).abort("SIGINT"),
    cancelAgent: (agent: string, { children = true }: { readonly children?: boolean } = {}) =>
      trail.cancelAgent(agent, { children }),
    [Symbol.asyncIterator]: () => {
      // The loop itself throws what the promise rejects with.
      ended.catch(() => undefined);
      return events();
    },
  });
}

/** Where a log is, how far it has come, and what others ask of the run through its folder. */
class Trail implements LogWatch {
  readonly #cancel: (now: boolean) => void;
  #cancelAgent: CancelAgent = () => false;
  #stopTaking = (): void => undefined;
  #log: Parameters<LogWatch["opened"]>[0] | undefined;
  #hasEnded = false;
  /** Counts what happened to the log. */
  #news = 0;
  #waiting: (() => void)[] = [];

  constructor(cancel: (now: boolean) => void) {
    this.#cancel = cancel;
  }

  opened(log: Parameters<LogWatch["opened"]>[0]): void {
    this.#log = log;
    this.#stopTaking = takeOrders(dirname(log.file), (order) => {
      if (order.cancel === "run") this.#cancel(order.now);
      else this.#cancelAgent(order.agent, order);
    });
    this.grew();
  }

  agents(cancel: CancelAgent): void {
    this.#cancelAgent = cancel;
  }

  cancelAgent(...what: Parameters<CancelAgent>): boolean {
    return this.#cancelAgent(...what);
  }

  grew(): void {
    this.#news++;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  end(): void {
    this.#stopTaking();
    this.#hasEnded = true;
    this.grew();
  }

  /** Everything that is written from `start` on, until the end; nothing when no log was opened. */
  async *events(): AsyncGenerator<LogLine> {
    while (this.#log === undefined && !this.#hasEnded) await this.#next();
    if (this.#log === undefined) return;
    const { file, start } = this.#log;
    const [{ readLog }, { resolveLine }] = await Promise.all([
      import("../runlog/read.ts"),
      import("../runlog/blobs.ts"),
    ]);
    // As of before the read that found the end of the file: what came since may not have been in it.
    let seen = this.#news;
    let isLastLook = this.#hasEnded;
    const more = async (): Promise<boolean> => {
      if (isLastLook) return false;
      if (seen === this.#news) await this.#next();
      seen = this.#news;
      isLastLook = this.#hasEnded;
      return true;
    };
    for await (const record of readLog(file, more, start)) {
      if (record.kind === "unreadable" || record.kind === "damaged") throw new Error(record.message);
      if (record.kind !== "line") continue;
      const line = await resolveLine(dirname(file), record.line);
      if (!line.ok) throw new Error(line.error.message);
      yield line.value;
    }
  }

  #next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
