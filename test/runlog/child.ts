import { createMask } from "../../src/runlog/redact.ts";
import { readLog } from "../../src/runlog/read.ts";
import { openLog } from "../../src/runlog/write.ts";

/** Run by the tests as a process of its own: `write FOLDER` until it is stopped or fails, or `read FOLDER`. */
const [mode, folder = ""] = process.argv.slice(2);
if (mode === "write") write();
else await read();

/** Prints the number of each event after `emit` returned. */
function write(): void {
  const clock = { now: Date.now, monotonic: () => performance.now(), after: () => () => undefined };
  const opened = openLog({ folder, clock, mask: createMask([]), fsync: false });
  if (!opened.ok) throw new Error(opened.error.message);
  for (let count = 1; opened.value.failure() === undefined; count++) {
    opened.value.emit({ type: "step.ready", step: `step-${count}-${"x".repeat(count % 97)}` });
    if (opened.value.failure() === undefined) process.stdout.write(`${count}\n`);
  }
  opened.value.close();
  process.stdout.write(`${opened.value.failure()}\n`);
}

async function read(): Promise<void> {
  let lines = 0;
  let peak = 0;
  for await (const record of readLog(folder)) {
    if (record.kind === "line") lines++;
    if (lines % 10_000 === 0) peak = Math.max(peak, process.memoryUsage.rss());
  }
  process.stdout.write(JSON.stringify({ lines, peak }));
}
