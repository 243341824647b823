import type { StreamFilter } from "../process/capture.ts";
import type { Marks } from "../process/marks.ts";
import type { Ran } from "../process/run.ts";

/** What tools that start programs are made with; one for each run. */
export interface Programs {
  /** Those of the run: a program that outlives its call is found by them. */
  readonly marks: Marks;
  /** All of it, without providers' keys, secrets and tokens of the CI. */
  readonly environment: Readonly<Record<string, string>>;
  /** Masks a stream before anything of it is kept. */
  readonly filter?: () => StreamFilter;
  /** A folder for output too long to be kept as a value. */
  readonly spillFolder?: string;
}

/** Bytes of one stream a call may give; of a longer one the middle is left out. */
export const keptOutput: number = 4 * 1024 * 1024;

/** Both streams as one text, without the final newlines. */
export function outputOf({ stdout, stderr }: Ran): string {
  return [stdout.text, stderr.text]
    .map((text) => text.replace(/\n+$/, ""))
    .filter((text) => text !== "")
    .join("\n");
}

/** `text` with a line more, which stands alone when there is none. */
export function withLine(text: string, line: string): string {
  return text === "" ? line : `${text}\n${line}`;
}
