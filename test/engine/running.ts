import type { RunOptions, RunResult } from "../../src/engine/run.ts";
import { runPlan } from "../../src/engine/run.ts";
import type { StepEvent } from "../../src/model/event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { StepResult } from "../../src/model/outcome.ts";
import type { Plan } from "../../src/model/plan.ts";
import type { Attempt } from "../../src/model/ports.ts";
import { FakeClock } from "./fake-clock.ts";

/** What a step does in a test; its values by default. */
export type Does = (attempt: Attempt) => StepResult | Promise<StepResult>;

export interface Running {
  readonly clock: FakeClock;
  readonly events: StepEvent[];
  readonly ended: Promise<RunResult>;
  readonly cancel: () => void;
  readonly kill: () => void;
  /** Waits until nothing happens any more without time passing. */
  readonly idle: () => Promise<void>;
}

export interface Given {
  readonly inputs?: JsonObject;
  readonly secrets?: { readonly [name: string]: string };
  readonly parallel?: number;
  /** By step id. */
  readonly does?: { readonly [id: string]: Does };
  readonly otherwise?: Does;
  readonly retriable?: boolean;
  readonly spent?: NonNullable<RunOptions["spent"]>;
  /** One of its own when absent; what runs at once needs it before there is a {@link Running}. */
  readonly clock?: FakeClock;
  /** Cancelled before it starts. */
  readonly cancelled?: boolean;
}

export const succeed: Does = ({ inputs }) => ({ outcome: "success", result: inputs, outputs: inputs });
export const fail: Does = () => ({ outcome: "failure", error: { kind: "exit", message: "exit code 1" } });

export function start(plan: Plan, given: Given = {}): Running {
  const clock = given.clock ?? new FakeClock();
  const events: StepEvent[] = [];
  const cancel = new AbortController();
  const kill = new AbortController();
  if (given.cancelled === true) cancel.abort();
  let ended = false;
  let activity = 0;
  const run = runPlan({
    plan,
    inputs: given.inputs ?? {},
    secrets: given.secrets ?? {},
    run: { id: "run-1", started: "2026-01-01T00:00:00.000Z" },
    execute: (attempt) => {
      activity += 1;
      const does = given.does ?? {};
      const own = Object.hasOwn(does, attempt.step.id) ? does[attempt.step.id] : undefined;
      return (own ?? given.otherwise ?? succeed)(attempt);
    },
    retriable: () => given.retriable ?? false,
    emit: (event) => {
      activity += 1;
      events.push(event as StepEvent);
    },
    clock,
    signal: cancel.signal,
    kill: kill.signal,
    parallel: given.parallel ?? 8,
    ...(given.spent && { spent: given.spent }),
  }).finally(() => {
    ended = true;
  });
  const idle = async (): Promise<void> => {
    for (let before = -1; before !== activity && !ended;) {
      before = activity;
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { clock, events, ended: run, cancel: () => cancel.abort(), kill: () => kill.abort(), idle };
}

/** Runs a plan to its end, moving the clock whenever nothing else happens. */
export async function finish(running: Running): Promise<RunResult> {
  let result: RunResult | undefined;
  const ended = running.ended.then((value) => (result = value));
  for (;;) {
    await running.idle();
    if (result !== undefined || !running.clock.fireNext()) break;
  }
  if (result === undefined) {
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 1000))]);
    if (result === undefined) throw new Error("the run stands still, and no timer is left");
  }
  return result;
}

export async function run(plan: Plan, given: Given = {}): Promise<{ result: RunResult; events: StepEvent[] }> {
  const running = start(plan, given);
  return { result: await finish(running), events: running.events };
}

/** Ends after `ms` of the test's clock, or as cancelled when told to. */
export function lasting(clock: FakeClock, ms: number): Does {
  return ({ signal, inputs }) =>
    new Promise((resolve) => {
      const stop = clock.after(ms, () => resolve({ outcome: "success", result: inputs, outputs: inputs }));
      signal.addEventListener("abort", () => {
        stop();
        resolve({ outcome: "cancelled" });
      });
    });
}

/** What a reader of the log sees of each step, in short: `a success`, `b skipped needs`, `c failure exit`. */
export function brief(events: readonly StepEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type === "step.skipped") return [`${event.step} skipped ${event.reason.kind}`];
    if (event.type !== "step.finished") return [];
    const tolerated = event.outcome === event.conclusion ? "" : " tolerated";
    return [`${event.step} ${event.outcome}${event.error === undefined ? "" : ` ${event.error.kind}`}${tolerated}`];
  });
}
