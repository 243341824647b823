import type { Stats } from "node:fs";

/** Changes when a file is written, replaced or cut, whoever does it. */
export function markOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(":");
}
