import type { Span } from "../model/diagnostic.ts";

/** A word of the file with its place. */
export interface Word {
  readonly text: string;
  readonly at: Span;
}
