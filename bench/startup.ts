/**
 * Start-up of the built command against `node -e 0` of the same Node, in turn, so that a slow moment of the machine hits
 * all alike. Prints for each the median wall time, the processor time of one run (Linux), and both over bare Node. The first round, which is not counted, makes the
 * code cache. `node bench/startup.ts [ROUNDS]`
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const rounds = Number(process.argv[2] ?? 15);
const flow = fileURLToPath(new URL("../dist/flow.cjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "flow-bench-"));
mkdirSync(join(folder, ".git"));
const ten = Array.from({ length: 10 }, (_, index) => {
  const before = index === 0 ? "" : `\n    env: { BEFORE: "\${{ steps.s${index - 1}.outputs.stdout }}" }`;
  return `  s${index}:\n    name: Step ${index}\n    run: echo "$BEFORE ${index}"${before}`;
});
writeFileSync(join(folder, "ten.yaml"), `name: ten\nsteps:\n${ten.join("\n")}\n`);
writeFileSync(join(folder, "one.yaml"), 'steps:\n  one: { run: ["true"] }\n');
const agent = "{ agent: { name: x, instructions: You., tools: [Read] }, prompt: go }";
writeFileSync(join(folder, "agent.yaml"), `model: scripted/r.yaml\nsteps:\n  a: ${agent}\n`);
writeFileSync(join(folder, "r.yaml"), "agents: { x: [{ text: hi }] }\n");

const cases: readonly (readonly [name: string, target: number | undefined, argv: readonly string[]])[] = [
  ["node -e 0", undefined, ["-e", "0"]],
  ["flow --version", 1.2, [flow, "--version"]],
  ["flow validate, 10 steps", 2, [flow, "validate", "ten.yaml"]],
  ['flow run, one run: ["true"]', 2.2, [flow, "run", "one.yaml"]],
  ["flow run --dry-run", undefined, [flow, "run", "ten.yaml", "--dry-run"]],
  ["flow run, one scripted agent", undefined, [flow, "run", "agent.yaml"]],
  ["flow resume, nothing left", undefined, [flow, "resume", "latest"]],
  ["flow show", undefined, [flow, "show", "latest"]],
  ["flow logs", undefined, [flow, "logs", "latest"]],
  ["flow why", undefined, [flow, "why", "latest", "a"]],
  ["flow agents", undefined, [flow, "agents", "list"]],
  ["flow permit", undefined, [flow, "permit", "agent.yaml", "Read(a.txt)"]],
  ["flow mcp list, no server", undefined, [flow, "mcp", "list"]],
  ["flow graph", undefined, [flow, "graph", "ten.yaml"]],
  ["flow schema", undefined, [flow, "schema", "workflow"]],
  ["flow eval", undefined, [flow, "eval", "1 == 1"]],
  ["flow doctor", undefined, [flow, "doctor"]],
];
const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache") };
const times = cases.map((): number[] => []);
/** Milliseconds of the processor, of all rounds together: one alone is a few ticks of 10 ms. */
const spent = cases.map(() => 0);
for (let round = 0; round <= rounds; round++) {
  for (const [index, [name, , argv]] of cases.entries()) {
    const [start, before] = [performance.now(), ofChildren()];
    const { status } = spawnSync(process.execPath, argv, { cwd: folder, env, stdio: "ignore" });
    const time = performance.now() - start;
    if (status !== 0) throw new Error(`${name} exited with ${status}`);
    if (round === 0) continue;
    times[index]?.push(time);
    spent[index] = (spent[index] ?? 0) + ofChildren() - before;
  }
}
rmSync(folder, { recursive: true });

const bare = { wall: median(times[0] ?? []), cpu: spent[0] ?? 0 };
console.log(
  `Node ${process.version}, ${rounds} rounds, ms of the wall (x bare Node), ms of the processor (x bare Node)`,
);
for (const [index, [name, target]] of cases.entries()) {
  const [wall, cpu] = [median(times[index] ?? []), spent[index] ?? 0];
  const verdict = target === undefined ? "" : `  target ${target}  ${wall / bare.wall <= target ? "met" : "MISSED"}`;
  const wallText = `${wall.toFixed(1).padStart(7)}  x${(wall / bare.wall).toFixed(2)}`;
  const cpuText = `${(cpu / rounds).toFixed(1).padStart(7)}  x${(cpu / bare.cpu).toFixed(2)}`;
  console.log(`${name.padEnd(30)} ${wallText}  ${cpuText}${verdict}`);
}

/** Milliseconds of the processor that children which have ended took. */
function ofChildren(): number {
  if (process.platform !== "linux") return Number.NaN;
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
