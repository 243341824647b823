import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fork } from "node:child_process";
import { runPlan } from "../src/engine/run.ts";
import { createMask } from "../src/runlog/redact.ts";
import { openLog } from "../src/runlog/write.ts";
import { Schedule } from "../src/engine/schedule.ts";
import type { Edge, Plan, Step } from "../src/model/plan.ts";
import type { Clock } from "../src/model/ports.ts";

/**
 * What the engine itself costs: `set` steps, wide or chained (each reads the output of the one before it), two or three
 * events a step, written to a log as in a run. Every measurement is a process of its own, so that the peak of memory is
 * its own too; the median of five is printed. A plan of few steps is run again until 20,000 steps are over, for a process
 * that has just begun runs its code slowly: `first` is the first run, the rest is about the last.
 *
 *     npx node bench/kernel.ts [ROUNDS]
 */

const rounds = Number(process.argv[2] ?? 5);
const at = { file: "bench.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };

if (process.argv[2] === "one") await measureOne(process.argv[3] ?? "wide", Number(process.argv[4]));
else await measureAll();

async function measureAll(): Promise<void> {
  console.log("shape    steps   first µs/step   µs/step   cpu µs/step   of it lines   peak MB   lines/step");
  for (const steps of [1000, 10_000, 100_000]) {
    for (const shape of ["wide", "chain"]) {
      const runs: Measured[] = [];
      for (let round = 0; round < rounds; round++) runs.push(await inOwnProcess(shape, steps));
      const first = median(runs.map((run) => run.first)).toFixed(1);
      const perStep = median(runs.map((run) => run.perStep)).toFixed(1);
      const cpu = median(runs.map((run) => run.cpu)).toFixed(1);
      const floor = median(runs.map((run) => run.floor)).toFixed(1);
      const peak = median(runs.map((run) => run.peak)).toFixed(0);
      const lines = median(runs.map((run) => run.lines)).toFixed(2);
      const columns = [
        String(steps).padStart(7),
        first.padStart(15),
        perStep.padStart(9),
        cpu.padStart(13),
        floor.padStart(13),
        peak.padStart(9),
        lines.padStart(12),
      ];
      console.log(`${shape.padEnd(6)} ${columns.join(" ")}`);
    }
  }
  const times = Array.from({ length: rounds }, () => scheduleAlone(10_000, 100_000));
  console.log(`schedule alone, 10,000 steps and 100,000 edges: ${median(times).toFixed(1)} ms to build and settle`);
}

interface Measured {
  /** Microseconds. */
  readonly first: number;
  readonly perStep: number;
  /** Time of the processor: what a busy machine does not change much. */
  readonly cpu: number;
  /** The same for writing as many lines and doing nothing else. */
  readonly floor: number;
  readonly peak: number;
  readonly lines: number;
}

function inOwnProcess(shape: string, steps: number): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const child = fork(import.meta.filename, ["one", shape, String(steps)]);
    child.once("message", (message) => resolve(message as Measured));
    child.once("exit", (code) => (code === 0 ? undefined : reject(new Error(`the measurement ended with ${code}`))));
  });
}

async function measureOne(shape: string, steps: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "flow-bench-"));
  const plan = planOf(shape, steps);
  const first = await runOnce(plan, join(folder, "0"));
  let last = first;
  for (let done = steps; done < 20_000; done += steps) last = await runOnce(plan, join(folder, String(done)));
  const measured = {
    first: (first.took * 1000) / steps,
    perStep: (last.took * 1000) / steps,
    cpu: last.cpu / steps,
    floor: linesAlone(join(folder, "floor.jsonl"), last.lines) / steps,
    peak: process.resourceUsage().maxRSS / 1024,
    lines: last.lines / steps,
  };
  rmSync(folder, { recursive: true });
  process.send?.(measured satisfies Measured);
}

/** `took` in milliseconds, `cpu` in microseconds. */
async function runOnce(
  plan: Plan,
  folder: string,
): Promise<{ readonly took: number; readonly cpu: number; readonly lines: number }> {
  const clock = realClock();
  const opened = openLog({ folder, clock, mask: createMask([]) });
  if (!opened.ok) throw new Error(opened.error.message);
  const log = opened.value;
  let lines = 0;
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  const result = await runPlan({
    plan,
    inputs: { n: 42 },
    secrets: {},
    run: { id: "bench", started: "" },
    execute: ({ inputs }) => ({ outcome: "success", result: inputs, outputs: inputs }),
    retriable: () => false,
    emit: (event) => {
      lines += 1;
      log.emit(event);
    },
    clock,
    signal: new AbortController().signal,
    parallel: 8,
  });
  log.close();
  const took = performance.now() - started;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (result.outcome !== "success" || result.outputs["last"] !== 42) throw new Error(JSON.stringify(result));
  return { took, cpu: user + system, lines };
}

/** Microseconds of processor time. */
function linesAlone(path: string, count: number): number {
  const file = openSync(path, "a");
  const before = process.cpuUsage();
  const event = { type: "step.finished", step: "s1", outcome: "success", conclusion: "success", outputs: { n: 42 } };
  for (let seq = 0; seq < count; seq++)
    writeSync(file, `${JSON.stringify({ seq, time: new Date().toISOString(), ...event, duration: seq })}\n`);
  const { user, system } = process.cpuUsage(before);
  closeSync(file);
  return user + system;
}

function realClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms);
      return () => clearTimeout(timer);
    },
  };
}

function planOf(shape: string, count: number): Plan {
  const steps: Step[] = [];
  const edges: Edge[] = [];
  for (let index = 0; index < count; index++) {
    const chained = shape === "chain" && index > 0;
    if (chained) edges.push({ from: index - 1, to: index, hard: true, origin: "reference", at });
    const source = chained ? `steps.s${index - 1}.outputs.n` : "inputs.n";
    steps.push(stepOf(`s${index}`, source));
  }
  const last = { name: "last", value: { type: "expression" as const, source: `steps.s${count - 1}.outputs.n`, at } };
  const workflow = {
    path: "bench.yaml",
    name: "bench",
    inputs: [{ name: "n", schema: { json: { type: "number" } }, at }],
    vars: [],
    env: [],
    secrets: [],
    limits: {},
    expect: { steps: [], outputs: [] },
    scope: { steps, edges, outputs: [last] },
  };
  return { version: 1, digest: "", root: "bench.yaml", workflows: { "bench.yaml": workflow }, agents: {}, files: [] };
}

function stepOf(id: string, source: string): Step {
  const entries = [{ name: "n", value: { type: "expression" as const, source, at } }];
  const inputs = { type: "map" as const, entries };
  return { id, kind: "set", at, join: "all", inputs, body: { kind: "set" }, continueOnError: false, limits: {} };
}

function scheduleAlone(steps: number, count: number): number {
  const edges = Array.from({ length: count }, (_, edge) => {
    const to = 1 + (edge % (steps - 1));
    return { from: (edge * 7919) % to, to, hard: true };
  });
  const started = performance.now();
  const schedule = new Schedule({ steps, edges, joinAny: () => false });
  const ready = schedule.initial();
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) ready.push(...schedule.settle(next, "success"));
  if (!schedule.finished) throw new Error("not every step settled");
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
