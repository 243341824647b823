import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Event } from "../src/model/event.ts";
import type { Clock } from "../src/model/ports.ts";
import { openLog } from "../src/runlog/write.ts";
import { createMask, type Mask } from "../src/runlog/redact.ts";

/** Events a second of the log writer, against JSON.stringify alone: medians of rounds that take turns. */
const events = Number(process.argv[2] ?? 200_000);
const rounds = Number(process.argv[3] ?? 7);

const clock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};
const secrets = createMask([
  { name: "API_KEY", value: "sk-live-5dQ2vN8xLr0ZtW7yBk3JmC6hPf1GaUe9" },
  { name: "PASSWORD", value: 'correct "horse" & battery/staple' },
  { name: "TOKEN", value: "ghs_9aK2mXw4Rz7Tq1VbY8nLc5Jd3Hf6Ps0Eu2Gi" },
]);

/** About 200 bytes a line, as a `set` step's end. */
function eventAt(index: number): Event {
  return {
    type: "step.finished",
    step: `research[${index % 50}]`,
    outcome: "success",
    conclusion: "success",
    outputs: { text: "a sentence of moderate length", n: index },
    duration: 1234.5,
  };
}

function stringifyOnly(): number {
  let bytes = 0;
  const start = performance.now();
  for (let index = 0; index < events; index++) bytes += JSON.stringify(eventAt(index)).length;
  const seconds = (performance.now() - start) / 1000;
  if (bytes === 0) throw new Error("nothing was written");
  return events / seconds;
}

/** What no writer of one line at a time can beat. */
function stringifyAndWrite(): number {
  const folder = mkdtempSync(path.join(tmpdir(), "flow-bench-"));
  const fd = openSync(path.join(folder, "floor.jsonl"), "ax");
  try {
    const start = performance.now();
    for (let index = 0; index < events; index++) writeSync(fd, `${JSON.stringify(eventAt(index))}\n`);
    return events / ((performance.now() - start) / 1000);
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
}

function logged(mask: Mask): number {
  const folder = mkdtempSync(path.join(tmpdir(), "flow-bench-"));
  try {
    const opened = openLog({ folder, clock, mask });
    if (!opened.ok) throw new Error(opened.error.message);
    const start = performance.now();
    for (let index = 0; index < events; index++) opened.value.emit(eventAt(index));
    opened.value.close();
    const seconds = (performance.now() - start) / 1000;
    const failure = opened.value.failure();
    if (failure !== undefined) throw new Error(failure);
    return events / seconds;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const contenders: { readonly [name: string]: () => number } = {
  "JSON.stringify alone": stringifyOnly,
  "stringify + writeSync": stringifyAndWrite,
  "log, no secrets": () => logged(createMask([])),
  "log, three secrets": () => logged(secrets),
};
const figures = new Map(Object.keys(contenders).map((name): [string, number[]] => [name, []]));
for (let round = 0; round < rounds; round++)
  for (const [name, run] of Object.entries(contenders)) figures.get(name)?.push(run());
for (const [name, all] of figures) {
  const median = all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;
  console.log(`${name.padEnd(22)} ${Math.round(median).toLocaleString("en").padStart(10)} events/s`);
}
