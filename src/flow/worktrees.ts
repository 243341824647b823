import { rmSync } from "node:fs";
import { join } from "node:path";
import { graceOfWorktree } from "../model/grace.ts";
import type { Json } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import { elapsed, type Wait } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { applyChange } from "../worktree/apply.ts";
import type { Files } from "../worktree/repository.ts";
import { Turns } from "../worktree/turns.ts";
import {
  commitOfWorktree,
  dropRecord,
  isGone,
  keepForPeople,
  removeWorktree,
  type Worktree,
} from "../worktree/worktree.ts";
import { systemClock } from "./clock.ts";
import { type Closed, type Finished, lost, outcomeOf, shownFiles } from "./worktree-closed.ts";
import { type Asked, makeWorktree, noWorktree, type Target, type WorktreesOptions } from "./worktree-make.ts";
import { recoverWorktrees } from "./worktree-recovery.ts";
import { type Kept, openWorktreeStore, type WorktreeStore } from "./worktree-store.ts";

/** A worktree in use. Whoever opened it closes it, once, however it went. */
export interface OpenWorktree {
  /** Absolute: stands for the run's workspace. */
  readonly folder: string;
  /** Whoever works in it may go on where it was cut off: what it had done until then is there. */
  readonly goesOn: boolean;
  readonly close: (end: WorktreeEnd) => Promise<Closed>;
}

/** Whether its changes are wanted. */
export type WorktreeEnd =
  | { readonly apply: false }
  | {
      readonly apply: true;
      /** What the execution gave: kept in the log, so that a resume has it without running it again. */
      readonly result?: Json;
      readonly outputs?: Json;
      /** Gives away what it holds while it waits for its turn. */
      readonly wait?: Wait | undefined;
    };

/** The worktrees of one run. */
export interface Worktrees {
  /** The error is a machine or a repository that does not let us. */
  open(asked: Asked): Promise<Result<OpenWorktree, Failure>>;
  /** What an execution had given whose changes are in the workspace, though the run died before its end was in the log. */
  finished(owner: string): Finished | undefined;
  /** Finishes what a run that died has left half done, of this run and of others in the repository. */
  recover(): Promise<ReadonlyMap<string, Finished>>;
  /** Waits for those that are being closed, not for long. */
  end(): Promise<void>;
}

export function createWorktrees(options: WorktreesOptions): Worktrees {
  return new RunWorktrees(options);
}

/** Milliseconds for those that are still being closed when the run has ended, and when it was killed. */
const patience = 30_000;
const shortPatience = 500;

class RunWorktrees implements Worktrees {
  readonly #options: WorktreesOptions;
  #store: Promise<Result<WorktreeStore, string>> | undefined;
  #workspace: Target | undefined;
  /** Those in use, by the folder that was given out. */
  readonly #targets = new Map<string, Target>();
  readonly #inUse = new Set<Promise<unknown>>();
  readonly #finished = new Map<string, Finished>();
  /** From now on nothing is touched any more. */
  #isOver = false;

  constructor(options: WorktreesOptions) {
    this.#options = options;
  }

  finished(owner: string): Finished | undefined {
    const end = this.#finished.get(owner);
    this.#finished.delete(owner);
    return end;
  }

  async recover(): Promise<ReadonlyMap<string, Finished>> {
    const { before, emit, run, workspace } = this.#options;
    const store = await this.#open();
    if (!store.ok) return this.#finished;
    const finished = await recoverWorktrees({ store: store.value, before, emit, run, workspace });
    for (const [owner, end] of finished) this.#finished.set(owner, end);
    return finished;
  }

  async end(): Promise<void> {
    const { kill } = this.#options;
    const late = Promise.withResolvers<void>();
    const timers = [setTimeout(late.resolve, patience)];
    const hurry = (): void => void timers.push(setTimeout(late.resolve, shortPatience));
    if (kill.aborted) hurry();
    kill.addEventListener("abort", hurry, { once: true });
    await Promise.race([Promise.allSettled(this.#inUse), late.promise]);
    this.#isOver = true;
    const store = await this.#open();
    if (store.ok) store.value.leave();
    kill.removeEventListener("abort", hurry);
    timers.forEach(clearTimeout);
  }

  async open(asked: Asked): Promise<Result<OpenWorktree, Failure>> {
    const store = await this.#open();
    if (!store.ok) return err(noWorktree(store.error));
    const target = this.#targetOf(store.value, asked.into);
    // From now on those behind it wait for it: it may start from what they have not changed yet.
    const turn = target.turns.open(asked.order);
    const opened = asked.signal.aborted
      ? err(noWorktree("it was cancelled"))
      : await makeWorktree({ store: store.value, target, asked, options: this.#options });
    if (!opened.ok) {
      turn.close();
      return opened;
    }
    const { worktree, goesOn } = opened.value;
    const folder = join(worktree.folder, store.value.repository.inside);
    const files: Files = {
      repository: store.value.repository,
      folder: worktree.folder,
      admin: worktree.admin,
      index: store.value.indexOf(`${worktree.name}.inner`),
      without: [],
    };
    this.#targets.set(folder, { files, turns: new Turns(), head: worktree.base, name: worktree.name });
    // Who was told to end and does not is not waited for by others.
    const unlink = whenLate(asked.signal, () => turn.close());
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    this.#inUse.add(closed);
    const close = (end: WorktreeEnd): Promise<Closed> =>
      this.#close(store.value, { asked, worktree, target, turn, end }).finally(() => {
        unlink();
        turn.close();
        this.#targets.delete(folder);
        this.#inUse.delete(closed);
        resolve();
      });
    return ok({ folder, goesOn, close });
  }

  #open(): Promise<Result<WorktreeStore, string>> {
    return (this.#store ??= openWorktreeStore(this.#options));
  }

  #targetOf({ files }: WorktreeStore, into: string | undefined): Target {
    const inner = into === undefined ? undefined : this.#targets.get(into);
    return inner ?? (this.#workspace ??= { files, turns: new Turns(), head: "HEAD" });
  }

  async #close(store: WorktreeStore, closing: Closing): Promise<Closed> {
    const started = systemClock.monotonic();
    const { asked, worktree } = closing;
    const { name, folder, admin } = worktree;
    const kept = await this.#keep(store, worktree);
    const isSafe = kept.ok || isGone(folder);
    if (this.#isOver) return { status: "lost", files: [], why: "the run is over" };
    if (isSafe) await removeWorktree(folder, admin);
    else keepForPeople(folder, worktree.base);
    for (const index of [name, `${name}.inner`]) rmSync(store.indexOf(index), { force: true });
    const closed = kept.ok
      ? await this.#settle(store, closing, kept.value)
      : lost(kept.error, isSafe ? undefined : folder);
    const left = kept.ok && kept.value.patch !== undefined && { left: kept.value.left };
    const files = closed.files.slice(0, shownFiles);
    const duration = elapsed(systemClock, started);
    this.#options.emit({
      type: "worktree.closed",
      step: asked.step,
      worktree: name,
      ...closed,
      files,
      ...left,
      duration,
    });
    if (isSafe) dropRecord(folder);
    return closed;
  }

  /** What was done is safe in the repository and in a file before anything else is tried with it. */
  async #keep(store: WorktreeStore, worktree: Worktree): Promise<Result<Left, string>> {
    const left = await commitOfWorktree(store.repository, worktree, store.indexOf(worktree.name));
    if (!left.ok) return left;
    const kept = await store.keep(store.patchOf(worktree.name), worktree.base, left.value);
    return kept.ok ? ok({ ...kept.value, left: left.value }) : kept;
  }

  async #settle(store: WorktreeStore, closing: Closing, { patch, files, left }: Left): Promise<Closed> {
    if (patch === undefined) return { status: "empty", files };
    if (!closing.end.apply) return { status: "kept", patch, files };
    return this.#bringIn(store, closing, { patch, files, left });
  }

  async #bringIn(store: WorktreeStore, closing: Closing, change: ChangeToApply): Promise<Closed> {
    const { asked, turn, end } = closing;
    const { signal } = asked;
    const work = turn.mine(signal).then((isMine) => (isMine ? this.#apply(store, closing, change) : undefined));
    // Whoever waits may be given up by what is around it, and be given its slot back late: the work goes on regardless.
    if (turn.waits && end.apply) await end.wait?.(work, true);
    const done = await work;
    const { patch, files } = change;
    return done ?? { status: "kept", patch, files, why: "the run was cancelled before it was its turn" };
  }

  async #apply(store: WorktreeStore, { asked, worktree, target, end }: Closing, done: ChangeToApply): Promise<Closed> {
    const { patch, files, left } = done;
    const { emit } = this.#options;
    const gave = end.apply ? gaveOf(end) : {};
    const about = { step: asked.step, worktree: worktree.name, patch };
    const announce = (from: string, to: string): void =>
      emit({ type: "worktree.applying", ...about, from, to, ...gave });
    const change = { base: worktree.base, tree: `${left}^{tree}` };
    const applied = await store.inTurn(() => applyChange(target.files, change, announce));
    return { patch, files, ...outcomeOf(applied) };
  }
}

function gaveOf({ result, outputs }: Extract<WorktreeEnd, { apply: true }>): { result?: Json; outputs?: Json } {
  return { ...(result !== undefined && { result }), ...(outputs !== undefined && { outputs }) };
}

/** Calls back when a signal was aborted a while ago; the returned function takes that back. */
function whenLate(signal: AbortSignal, callback: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => void (timer = setTimeout(callback, graceOfWorktree));
  if (signal.aborted) start();
  else signal.addEventListener("abort", start, { once: true });
  return () => {
    signal.removeEventListener("abort", start);
    clearTimeout(timer);
  };
}

interface Closing {
  readonly asked: Asked;
  readonly worktree: Worktree;
  readonly target: Target;
  readonly turn: ReturnType<Turns["open"]>;
  readonly end: WorktreeEnd;
}

interface Left extends Kept {
  /** A commit of it. */
  readonly left: string;
}

interface ChangeToApply extends Left {
  readonly patch: string;
}
