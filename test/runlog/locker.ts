import { existsSync, writeFileSync } from "node:fs";
import { lockRun } from "../../src/runlog/lock.ts";

/** Run by the tests as one of many processes: waits for the gate, asks for the lock, and holds it until all have asked. */
const [folder = "", gate = ""] = process.argv.slice(2);
process.stdout.write("ready\n");
while (!existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 1));
const lock = lockRun(folder);
process.stdout.write(lock.ok ? "won\n" : `${lock.error.kind}\n`);
if (lock.ok) {
  writeFileSync(`${gate}.won`, String(process.pid));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  lock.value.release();
}
