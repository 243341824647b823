import type { Fingerprint, LogLine } from "../model/event.ts";
import type { Json } from "../model/json.ts";

/** What the log has of a worktree. */
export interface RecordedWorktree {
  /** What it was made for: the path of a step, or the id of an agent run. */
  readonly owner: string;
  readonly step: string;
  readonly agentRun?: string;
  readonly name: string;
  /** The worktree it goes into; the workspace when absent. */
  readonly into?: string;
  /** The commit it was made from. */
  readonly base: string;
  /** Absent while it was open. */
  readonly closed?: WorktreeEnd;
}

export type WorktreeEnd = Pick<Extract<LogLine, { type: "worktree.closed" }>, "status" | "patch" | "files" | "left">;

/** Changes that were on their way into the workspace, and what the execution gave that made them. */
export interface RecordedApply {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly base: string;
  readonly patch: string;
  readonly fingerprint: Fingerprint | undefined;
  result?: Json;
  outputs?: Json;
  /** Absent while they were being written. */
  closed?: WorktreeEnd;
}

/** Folds the log into what a resume needs of worktrees. The same lines give the same answers. */
export class RecordedWorktrees {
  readonly #byName = new Map<string, RecordedWorktree>();
  readonly #latest = new Map<string, RecordedWorktree>();
  readonly #applies = new Map<string, RecordedApply>();
  readonly #fingerprints = new Map<string, Fingerprint | undefined>();

  add(line: LogLine): void {
    switch (line.type) {
      case "step.attempt.started": {
        const apply = this.#applies.get(line.step);
        // Of another definition or of other inputs, what it gave stands for nothing.
        if (apply && !isSame(apply.fingerprint, line.fingerprint)) this.#applies.delete(line.step);
        this.#fingerprints.set(line.step, line.fingerprint);
        break;
      }
      case "step.attempt.finished":
        this.#applies.delete(line.step);
        break;
      case "worktree.opened": {
        const { step, agentRun, worktree: name, into, base } = line;
        const owner = agentRun ?? step;
        const more = { ...(agentRun !== undefined && { agentRun }), ...(into !== undefined && { into }) };
        this.#keep({ owner, step, name, base, ...more });
        this.#applies.delete(owner);
        break;
      }
      case "worktree.applying": {
        const { worktree: name, from, to, patch, result, outputs } = line;
        const known = this.#byName.get(name);
        if (known === undefined) break;
        const kept = { ...(result !== undefined && { result }), ...(outputs !== undefined && { outputs }) };
        const { owner, base } = known;
        const fingerprint = this.#fingerprints.get(known.step);
        this.#applies.set(owner, { name, from, to, base, patch, fingerprint, ...kept });
        break;
      }
      case "worktree.closed": {
        const known = this.#byName.get(line.worktree);
        if (known === undefined) break;
        const { status, files, left, patch } = line;
        const closed = { status, files, ...(left !== undefined && { left }), ...(patch !== undefined && { patch }) };
        this.#keep({ ...known, closed });
        const apply = this.#applies.get(known.owner);
        if (apply && status === "applied") apply.closed = closed;
        else this.#applies.delete(known.owner);
        break;
      }
      default:
    }
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  /** Those that were open when the run died, in the order in which they were opened. */
  get open(): readonly RecordedWorktree[] {
    return [...this.#byName.values()].filter(({ closed }) => closed === undefined);
  }

  /** Changes that were being written or had been, of executions whose end is not in the log; by their owner. */
  get applies(): ReadonlyMap<string, RecordedApply> {
    return this.#applies;
  }

  /** The last worktree of an owner. */
  last(owner: string): RecordedWorktree | undefined {
    return this.#latest.get(owner);
  }

  named(name: string): RecordedWorktree | undefined {
    return this.#byName.get(name);
  }

  #keep(worktree: RecordedWorktree): void {
    this.#byName.set(worktree.name, worktree);
    this.#latest.set(worktree.owner, worktree);
  }
}

function isSame(a: Fingerprint | undefined, b: Fingerprint | undefined): boolean {
  return a?.definition === b?.definition && a?.given === b?.given;
}
