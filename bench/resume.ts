/**
 * Resume of a run of 10,000 steps by the built library (`npm run build` first), and what reading a log of 100 MB to resume
 * it takes: time and memory.
 */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Conversations } from "../src/agent/conversations.ts";
import { runPlan } from "../src/engine/run.ts";
import { History } from "../src/engine/resume.ts";
import { check, type resume as resumeFlow } from "../src/flow.ts";
import { systemClock } from "../src/flow/clock.ts";
import { createFingerprint } from "../src/flow/fingerprint.ts";
import { createMask } from "../src/runlog/redact.ts";
import { readForResume } from "../src/runlog/reopen.ts";
import { openLog } from "../src/runlog/write.ts";

const [mode, folder = ""] = process.argv.slice(2);
const run = "20260101-000000-bench";
if (mode === "resume") await resumeIt(folder);
else if (mode === "read") await readIt(folder);
else await measure();

async function measure(): Promise<void> {
  const workspace = mkdtempSync(path.join(tmpdir(), "flow-bench-"));
  try {
    const steps = Number(process.env["STEPS"] ?? 10_000);
    await writeRun(workspace, steps);
    const log = path.join(workspace, ".flow/runs", run, "log.jsonl");
    const before = readFileSync(log);
    const took = [1, 2, 3, 4, 5].map(() => {
      const result = child("resume", workspace);
      writeFileSync(log, before);
      return result;
    });
    const best = took.toSorted((a, b) => a.ms - b.ms)[2];
    print(`resume of ${steps} steps`, best?.ms ?? 0, "ms", 1000);
    print("  of it processor time", best?.cpu ?? 0, "ms");
    print("  peak memory", (best?.peak ?? 0) / 1e6, "MB", 400);
    const bytes = writeLongLog(path.join(workspace, "long"));
    const read = child("read", path.join(workspace, "long"));
    print(`reading a log of ${Math.round(bytes / 1e6)} MB, peak memory`, read.peak / 1e6, "MB", 200);
    print("  time", read.ms, "ms", 5000);
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}

interface Measured {
  readonly ms: number;
  /** Milliseconds of the processor, which a busy machine changes less. */
  readonly cpu: number;
  readonly peak: number;
}

function child(what: string, where: string): Measured {
  const text = execFileSync(process.execPath, [import.meta.filename, what, where], { encoding: "utf8" });
  return JSON.parse(text) as Measured;
}

function print(what: string, value: number, unit: string, target?: number): void {
  const verdict = target === undefined ? "" : ` target ${target} ${value <= target ? "ok" : "MISSED"}`;
  console.log(`${what.padEnd(48)} ${value.toFixed(0).padStart(7)} ${unit.padEnd(3)}${verdict}`);
}

/** With another version in its log the run's plan would be made again. */
function builtVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** A run whose commands are not started: only its log counts. The last step has no end, as after a crash. */
async function writeRun(workspace: string, steps: number): Promise<void> {
  mkdirSync(path.join(workspace, ".git"));
  const lines = Array.from({ length: steps }, (_, index) => {
    const before = index === 0 ? "" : `, env: { T: "\${{ steps.s${index - 1}.outputs.stdout }}" }`;
    return `  s${index}: { run: ["true"]${before} }`;
  });
  writeFileSync(path.join(workspace, "w.yaml"), `name: bench\nsteps:\n${lines.join("\n")}\n`);
  const { plan } = await check({ file: "w.yaml", cwd: workspace });
  if (plan === undefined) throw new Error("the workflow of the bench is not valid");
  const own = path.join(workspace, ".flow/runs", run);
  const opened = openLog({ folder: own, clock: systemClock, mask: createMask([]) });
  if (!opened.ok) throw new Error(opened.error.message);
  const writer = opened.value;
  const first = { workflow: "w.yaml", name: "bench", workspace, commit: null, digest: plan.digest, inputs: {}, plan };
  writer.emit({ type: "run.started", log: 1, flow: builtVersion(), run, ...first });
  const outputs = { stdout: "a line of moderate length", stderr: "", "exit-code": 0 };
  await runPlan({
    plan,
    inputs: {},
    secrets: {},
    run: { id: run, started: opened.value.time() },
    execute: () => ({ outcome: "success", result: outputs, outputs }),
    retriable: () => true,
    fingerprint: createFingerprint(plan, undefined),
    emit: writer.emit,
    clock: systemClock,
    signal: new AbortController().signal,
    parallel: 8,
  });
  writer.close();
  const log = path.join(own, "log.jsonl");
  const text = readFileSync(log, "utf8").trimEnd().split("\n");
  writeFileSync(log, `${text.slice(0, -2).join("\n")}\n`);
}

async function resumeIt(workspace: string): Promise<void> {
  const { resume } = (await import(new URL("../dist/index.js", import.meta.url).href)) as {
    readonly resume: typeof resumeFlow;
  };
  const start = performance.now();
  const cpuBefore = process.cpuUsage();
  const result = await resume({ run: "latest", cwd: workspace });
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (!("started" in result) || !result.started || result.end.outcome !== "success")
    throw new Error(JSON.stringify(result));
  process.stdout.write(
    JSON.stringify({ ms, cpu: (user + system) / 1000, peak: process.resourceUsage().maxRSS * 1024 }),
  );
}

/** Mostly what agents say, as in real runs. */
function writeLongLog(where: string): number {
  mkdirSync(where);
  const file = path.join(where, "log.jsonl");
  const fd = openSync(file, "w");
  let seq = 0;
  const line = (event: object): string =>
    `${JSON.stringify({ seq: ++seq, time: "2026-01-01T00:00:00.000Z", ...event })}\n`;
  const digest = "0".repeat(64);
  const plan = { root: "w.yaml", workflows: {} };
  const start = {
    log: 1,
    flow: "bench",
    run,
    workflow: "w.yaml",
    name: "w",
    workspace: "/",
    commit: null,
    digest,
    inputs: {},
    plan,
  };
  writeSync(fd, line({ type: "run.started", ...start }));
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: false, cost: 0 };
  for (let step = 0; statSync(file).size < 100e6; step++) {
    const ids = { step: `a[${step}]`, agent: `a[${step}]@1`, parent: null };
    let text = line({ type: "step.started", step: ids.step, kind: "agent" });
    text += line({
      type: "step.attempt.started",
      step: ids.step,
      attempt: 1,
      fingerprint: { definition: "0".repeat(16), given: "0".repeat(16) },
    });
    text += line({ type: "agent.started", ...ids, name: "a", model: "m", provider: "p", tools: [] });
    for (let turn = 1; turn <= 10; turn++) {
      const message = { role: "assistant", blocks: [{ type: "text", text: "word ".repeat(600) }] };
      text += line({ type: "message", ...ids, turn, message, stop: "end", usage });
    }
    text += line({
      type: "agent.finished",
      ...ids,
      outcome: "done",
      reason: "",
      turns: 10,
      usage,
      text: "done",
      duration: 1,
    });
    text += line({
      type: "step.attempt.finished",
      step: ids.step,
      attempt: 1,
      outcome: "success",
      outputs: { text: "word ".repeat(100) },
      duration: 1,
    });
    writeSync(fd, text);
  }
  closeSync(fd);
  return statSync(file).size;
}

async function readIt(where: string): Promise<void> {
  const history = new History();
  const agents = new Conversations();
  const start = performance.now();
  const read = await readForResume(where, (line) => {
    history.add(line);
    agents.add(line);
  });
  if (!read.ok) throw new Error(read.error);
  const cpu = process.cpuUsage().user / 1000;
  process.stdout.write(
    JSON.stringify({ ms: performance.now() - start, cpu, peak: process.resourceUsage().maxRSS * 1024 }),
  );
}
