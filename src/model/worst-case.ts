/** The most that something can take: a number, or why nobody can say it. */
export type Most = { readonly most: number } | { readonly unbounded: string };

/** What a run could take, calls that fail and are made again left out. */
export interface WorstCase {
  /** By step path, without items and iterations; in the order of the file. */
  readonly steps: readonly StepWorst[];
  readonly run: Spendings;
}

/** Of a run that asks no model. */
export const noWorst: WorstCase = { steps: [], run: { tokens: { most: 0 }, cost: { most: 0 } } };

export interface Spendings {
  readonly tokens: Most;
  /** US dollars at list price. */
  readonly cost: Most;
}

export interface StepWorst extends Spendings {
  readonly path: string;
  /** Model calls of one agent run. */
  readonly calls: Most;
  /** Agent runs that may be spawned below one; absent where none may. */
  readonly children?: Most;
  /** Agent runs of the step: its items, iterations and tries, and those of what it lies in. */
  readonly runs: Most;
}
