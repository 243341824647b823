import { writeSync } from "node:fs";
import { createMask } from "../../src/runlog/redact.ts";
import { readLog } from "../../src/runlog/read.ts";
import { openLog } from "../../src/runlog/write.ts";

/** Run by the tests as a process of its own: `write FOLDER` until it is stopped or fails, or `read FOLDER`. */
const [mode, folder = ""] = process.argv.slice(2);
if (mode === "write") write();
else await read();

/**
 * As a chain of commands that end at once: where a command would start, the number of events so far is printed, in one
 * system call that is over when it returns.
 */
function write(): void {
  const clock = { now: Date.now, monotonic: () => performance.now(), after: () => () => undefined };
  const opened = openLog({ folder, clock, mask: createMask([]), fsync: false });
  if (!opened.ok) throw new Error(opened.error.message);
  const log = opened.value;
  const done = { outcome: "success", duration: 1 } as const;
  for (let count = 3; log.failure() === undefined; count += 5) {
    const step = `step-${count}-${"x".repeat(count % 97)}`;
    log.emit({ type: "step.ready", step });
    log.emit({ type: "step.started", step, kind: "run" });
    log.emit({ type: "step.attempt.started", step, attempt: 1 });
    if (log.failure() === undefined) writeSync(1, `${count}\n`);
    log.emit({ type: "step.attempt.finished", step, attempt: 1, ...done });
    log.emit({ type: "step.finished", step, conclusion: "success", ...done });
  }
  log.close();
  writeSync(1, `${log.failure()}\n`);
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
