/**
 * Agents that work together: how soon 200 sub-agents of one agent are gone after a cancel, how long a team takes beside
 * what its critical path and its members allow, and whether the memory of an agent grows with its turns. The replies come
 * from scripts, each after a time of its own. Build first: `npm run build`. `node bench/crowd.ts [ROUNDS]`
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as Library from "../src/index.ts";
import type { Run, RunResult } from "../src/index.ts";

const { run } = (await import(new URL("../dist/index.js", import.meta.url).href)) as typeof Library;
const rounds = Number(process.argv[2] ?? 5);
const folder = mkdtempSync(join(tmpdir(), "flow-crowd-"));
mkdirSync(join(folder, ".git"));

/** 20 tasks: a chain of six, and others beside it; four members. */
const chain = 6;
const tasks = Array.from({ length: 20 }, (_, index) => ({
  id: String(index + 1),
  ms: index < chain ? 500 : 400,
  dependsOn: index < chain ? (index === 0 ? [] : [String(index)]) : index % 3 === 0 ? ["1"] : [],
}));
const members = 4;

try {
  if (process.env["PART"] === "memory") await memory();
  else {
    console.log(`Node ${process.version}, medians of ${rounds} rounds`);
    await cancel(200);
    await makespan();
    // A process of its own: what came before would be in its memory.
    const env = { ...process.env, PART: "memory" };
    execFileSync(process.execPath, ["--expose-gc", import.meta.filename], { env, stdio: "inherit" });
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Starts a workflow with a script for its models. */
function start(workflow: object, script: object): Run<RunResult> {
  writeFileSync(join(folder, "w.yaml"), JSON.stringify(workflow));
  writeFileSync(join(folder, "s.yaml"), JSON.stringify(script));
  return run({ file: "w.yaml", script: "s.yaml", cwd: folder });
}

/** From the cancel to the end of the run, with all children in a model call. */
async function cancel(count: number): Promise<void> {
  const children = Array.from({ length: count }, (_, index) => ({
    name: "Task",
    args: { description: `part ${index}`, prompt: "Wait.", subagent_type: "child" },
  }));
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const going = start(
      {
        agents: {
          parent: { prompt: "Go.", subagents: ["child"], limits: { parallel: count, children: count } },
          child: { prompt: "Wait." },
        },
        steps: { all: { agent: "parent" } },
      },
      { agents: { parent: [{ calls: children }], child: [{ text: "late", delay: "60s" }] } },
    );
    let waiting = 0;
    let cancelled = 0;
    for await (const line of going) {
      if (line.type === "turn.started" && line.parent !== null) waiting++;
      if (waiting === count && cancelled === 0) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        cancelled = performance.now();
        going.cancel();
      }
    }
    await going;
    took.push(performance.now() - cancelled);
  }
  console.log(`cancel of ${count} children: ${median(took).toFixed(0)} ms`);
}

async function makespan(): Promise<void> {
  const path = tasks.slice(0, chain).reduce((sum, { ms }) => sum + ms, 0);
  const work = tasks.reduce((sum, { ms }) => sum + ms, 0);
  const bound = Math.max(path, work / members);
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const names = ["a", "b", "c", "d"].map((name) => ({ agent: "member", name }));
    const going = start(
      {
        agents: {
          lead: { prompt: "Go.", team: { members: names, parallel: members } },
          member: { instructions: "Work." },
        },
        steps: { all: { agent: "lead" } },
      },
      {
        agents: {
          lead: [
            {
              calls: [
                { name: "TeamCreate", args: { name: "crew" } },
                ...tasks.map(({ id, dependsOn }) => ({
                  name: "TaskCreate",
                  args: { subject: `task ${id}`, description: "Do it.", dependsOn },
                })),
              ],
            },
            ...Array.from({ length: 11 }, (_, index) => ({ text: `heard ${index}` })),
          ],
          member: tasks.map(({ id, ms }) => ({
            when: `contains(prompt, 'Your task is ${id}:')`,
            text: `did ${id}`,
            delay: `${ms}ms`,
          })),
        },
      },
    );
    let first = 0;
    let last = 0;
    for await (const line of going) {
      if (line.type !== "team.task.updated") continue;
      if (line.change.status === "in_progress") first ||= Date.parse(line.time);
      if (line.change.status === "completed") last = Date.parse(line.time);
    }
    await going;
    took.push(last - first);
  }
  const ratio = median(took) / bound;
  console.log(`a team of ${tasks.length} tasks: ${median(took)} ms, the bound is ${bound} ms: ${ratio.toFixed(3)} x`);
}

/** MiB of the heap after a collection, at turn 1,000 and at the last. */
async function memory(): Promise<void> {
  const turns = 10_000;
  const { gc } = globalThis as { readonly gc?: () => void };
  writeFileSync(join(folder, "a.txt"), "a line that is read again and again\n".repeat(20));
  const read = (turn: number): object => ({
    calls: [{ name: "Read", args: { file_path: "a.txt", offset: (turn % 20) + 1, limit: 1 + (turn % 7) } }],
  });
  const going = start(
    {
      agents: { reader: { prompt: "Read.", tools: ["Read"], limits: { turns: 0 }, guards: false } },
      steps: { all: { agent: "reader" } },
    },
    {
      window: 32_000,
      agents: {
        reader: [...Array.from({ length: turns }, (_, turn) => read(turn)), { text: "done" }],
        compact: [{ text: "It has read a file." }],
      },
    },
  );
  const heaps: number[] = [];
  const began = performance.now();
  for await (const line of going) {
    if (line.type !== "turn.finished" || (line.turn !== 1_000 && line.turn !== turns)) continue;
    gc?.();
    heaps.push(process.memoryUsage().heapUsed / 2 ** 20);
  }
  await going;
  const [early = 0, late = 0] = heaps;
  const seconds = (performance.now() - began) / 1000;
  console.log(
    `heap at turn 1,000: ${early.toFixed(1)} MiB, at turn ${turns}: ${late.toFixed(1)} MiB (${seconds.toFixed(0)} s)`,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
