import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll } from "vitest";
import type { Clock } from "../../src/model/ports.ts";
import { createMask, type Secret } from "../../src/runlog/redact.ts";
import { type LogWriter, openLog } from "../../src/runlog/write.ts";

/** Stands still until the test moves it. */
export function stillClock(): Clock & { move(ms: number): void } {
  let ms = 0;
  return {
    now: () => Date.UTC(2026, 10, 21) + ms,
    monotonic: () => ms,
    after: () => () => undefined,
    move: (by) => {
      ms += by;
    },
  };
}

const made: string[] = [];
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** Removed when the test file is done. */
export function emptyFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "flow-log-"));
  made.push(folder);
  return folder;
}

interface Choices {
  readonly secrets?: readonly Secret[];
  readonly deltas?: boolean;
  readonly clock?: Clock;
  readonly onLine?: (line: string) => void;
  readonly onGrowth?: () => void;
}

export function newLog(folder: string, { secrets = [], clock = stillClock(), ...rest }: Choices = {}): LogWriter {
  const opened = openLog({ folder, clock, mask: createMask(secrets), ...rest });
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}
