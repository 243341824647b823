/**
 * What a `run` step costs over a bare loop that spawns the same program with the same number at once, its output piped and
 * read. Each round starts both sides as processes of their own, in turn. Build first: `npm run build`.
 * `node bench/steps.ts [STEPS] [ROUNDS]`
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { run as runFlow } from "../src/index.ts";

const atOnce = 2;
const shapes: { readonly [name: string]: readonly string[] } = {
  "a program": ["true"],
  "a script": ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", "true"],
};

if (process.argv[2] === "bare") await bare(Number(process.argv[3]), process.argv.slice(4));
else if (process.argv[2] === "flow") await flow(process.argv[3] ?? "");
else measureAll(Number(process.argv[2] ?? 500), Number(process.argv[3] ?? 7));

interface Measured {
  /** Microseconds of the whole, and of the processor for us and the commands. */
  readonly wall: number;
  readonly cpu: number;
}

function measureAll(steps: number, rounds: number): void {
  console.log(
    `${steps} commands, ${atOnce} at once, medians of ${rounds}: ms a step, of it processor time of our process`,
  );
  for (const [name, argv] of Object.entries(shapes)) {
    const file = writeWorkflow(name, steps);
    const loop: Measured[] = [];
    const ours: Measured[] = [];
    for (let round = 0; round < rounds; round++) {
      loop.push(child("bare", String(steps), ...argv));
      ours.push(child("flow", file));
    }
    const wall = median(ours.map((it) => it.wall)) / median(loop.map((it) => it.wall));
    const cpu = median(ours.map((it) => it.cpu)) / median(loop.map((it) => it.cpu));
    const figure = (all: readonly Measured[], of: "wall" | "cpu"): string =>
      (median(all.map((it) => it[of])) / steps / 1000).toFixed(2);
    console.log(
      `${name.padEnd(10)} bare ${figure(loop, "wall")} (${figure(loop, "cpu")})  flow ${figure(ours, "wall")} (${figure(ours, "cpu")})  x${wall.toFixed(2)} (x${cpu.toFixed(2)})  target 1.3`,
    );
    rmSync(join(file, ".."), { recursive: true });
  }
}

function writeWorkflow(name: string, steps: number): string {
  const folder = mkdtempSync(join(tmpdir(), "flow-bench-"));
  mkdirSync(join(folder, ".git"));
  const body = name === "a program" ? '["true"]' : '"true"';
  const lines = Array.from({ length: steps }, (_, index) => `  s${index}: { run: ${body} }`);
  writeFileSync(join(folder, "w.yaml"), `name: bench\nlimits: { parallel: ${atOnce} }\nsteps:\n${lines.join("\n")}\n`);
  return join(folder, "w.yaml");
}

function child(...args: string[]): Measured {
  return JSON.parse(execFileSync(process.execPath, [import.meta.filename, ...args], { encoding: "utf8" })) as Measured;
}

async function bare(steps: number, [program = "", ...args]: readonly string[]): Promise<void> {
  const begin = start();
  let left = steps;
  const one = async (): Promise<void> => {
    while (left-- > 0) {
      const running = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
      running.stdout.resume();
      running.stderr.resume();
      await once(running, "close");
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  process.stdout.write(JSON.stringify(end(begin)));
}

async function flow(file: string): Promise<void> {
  const { run } = (await import(new URL("../dist/index.js", import.meta.url).href)) as { readonly run: typeof runFlow };
  // What compiling takes is measured elsewhere; the first line of the log is written when the run begins.
  const begins: Begin[] = [];
  const result = await run({
    file,
    cwd: join(file, ".."),
    onEvent: () => void (begins.length > 0 || begins.push(start())),
  });
  const [begin] = begins;
  if (!result.started || result.end.outcome !== "success" || !begin) throw new Error(JSON.stringify(result));
  process.stdout.write(JSON.stringify(end(begin)));
}

type Begin = { readonly at: number; readonly cpu: NodeJS.CpuUsage };

function start(): Begin {
  return { at: performance.now(), cpu: process.cpuUsage() };
}

function end({ at, cpu }: Begin): Measured {
  const { user, system } = process.cpuUsage(cpu);
  return { wall: (performance.now() - at) * 1000, cpu: user + system };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
