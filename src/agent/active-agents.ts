import { mostSpawned } from "../model/spawning.ts";

/** All agent runs of a workflow run that are under way. */
export class ActiveAgents {
  readonly #running = new Map<string, Handle>();
  #spawned: number;

  /** `spawned`: how many sub-agents there were before this resume. */
  constructor(spawned = 0) {
    this.#spawned = spawned;
  }

  /** Counts one sub-agent more; false when the run has had as many as it may. */
  admit(): boolean {
    if (this.#spawned >= mostSpawned) return false;
    this.#spawned++;
    return true;
  }

  enter(id: string, handle: Handle): void {
    this.#running.set(id, handle);
  }

  leave(id: string): void {
    this.#running.delete(id);
  }

  /** Cancels one agent run, with all that it spawned or alone. False where none of that id is under way. */
  cancel(id: string, { children }: { readonly children: boolean }): boolean {
    const handle = this.#running.get(id);
    if (children) handle?.cancelAll();
    else handle?.cancelAlone();
    return handle !== undefined;
  }
}

interface Handle {
  cancelAll(): void;
  /** What it spawned goes on, and reports to whoever spawned it. */
  cancelAlone(): void;
}
