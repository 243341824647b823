import { mkdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import type { Json } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import { elapsed, type Emit, type Wait } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { applyChange } from "../worktree/apply.ts";
import type { RecordedWorktrees } from "../worktree/recorded.ts";
import { call, commitOf, type Files, treeOf } from "../worktree/repository.ts";
import { type Order, Turns } from "../worktree/turns.ts";
import {
  addWorktree,
  applyPatch,
  commitOfWorktree,
  dropRecord,
  isWhole,
  removeWorktree,
  type Worktree,
} from "../worktree/worktree.ts";
import { systemClock } from "./clock.ts";
import { type Closed, type Finished, lost, outcomeOf, shownFiles } from "./worktree-closed.ts";
import { recoverWorktrees } from "./worktree-recovery.ts";
import { type Kept, openYard, type Yard, type YardOptions } from "./worktree-yard.ts";

export interface WorktreesOptions extends YardOptions {
  readonly run: string;
  /** Where flow was started. */
  readonly cwd: string;
  readonly emit: Emit;
  /** What the log has of them from before the run was resumed. */
  readonly before: RecordedWorktrees | undefined;
  /** Aborted: there is no time left. */
  readonly kill: AbortSignal;
}

/** Somebody who is to work in a worktree of its own. */
export interface Asked {
  /** The path of the step it belongs to. */
  readonly step: string;
  /** The id of the agent run it is for, where that is not the whole step. */
  readonly agentRun?: string;
  /** Its place among all: the changes of those that are open at the same time are applied in this order. */
  readonly order: Order;
  /** The worktree that its changes go into, by its folder; the workspace when absent. */
  readonly into?: string;
  /** It goes on with what it had done before it was cut off, if anything is left of that. */
  readonly goesOn?: boolean;
  readonly signal: AbortSignal;
}

/** A worktree in use. Whoever opened it closes it, once, however it went. */
export interface OpenWorktree {
  /** Absolute: stands for the run's workspace. */
  readonly folder: string;
  /** Whoever works in it may go on where it was cut off: what it had done until then is there. */
  readonly goesOn: boolean;
  close(end: WorktreeEnd): Promise<Closed>;
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
  recover(): Promise<void>;
  /** Waits for those that are being closed, not for long. */
  end(): Promise<void>;
}

export function createWorktrees(options: WorktreesOptions): Worktrees {
  return new RunWorktrees(options);
}

/** Milliseconds for those that are still being closed when the run has ended, and when it was killed. */
const patience = 30_000;
const shortPatience = 500;
/** Milliseconds; longer than commands and tools have to end. */
const graceAfterAbort = 10_000;

/** A folder whose files are changed by worktrees: the workspace, or a worktree that others are made from. */
interface Target {
  readonly files: Files;
  readonly turns: Turns;
  /** Where a commit of its files begins. */
  readonly head: string;
}

class RunWorktrees implements Worktrees {
  readonly #options: WorktreesOptions;
  #yard: Promise<Result<Yard, string>> | undefined;
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

  async recover(): Promise<void> {
    const { before, emit, run, workspace } = this.#options;
    const yard = await this.#open();
    if (!yard.ok) return;
    const finished = await recoverWorktrees({ yard: yard.value, before, emit, run, workspace });
    for (const [owner, end] of finished) this.#finished.set(owner, end);
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
    const yard = await this.#open();
    if (yard.ok) yard.value.leave();
    kill.removeEventListener("abort", hurry);
    timers.forEach(clearTimeout);
  }

  async open(asked: Asked): Promise<Result<OpenWorktree, Failure>> {
    const yard = await this.#open();
    if (!yard.ok) return err(unavailable(yard.error));
    const target = this.#targetOf(yard.value, asked.into);
    // From now on those behind it wait for it: it may start from what they have not changed yet.
    const turn = target.turns.open(asked.order);
    const opened = asked.signal.aborted
      ? err(unavailable("it was cancelled"))
      : await this.#make(yard.value, target, asked);
    if (!opened.ok) {
      turn.close();
      return opened;
    }
    const { worktree, goesOn } = opened.value;
    const folder = join(worktree.folder, yard.value.repository.inside);
    const files: Files = {
      repository: yard.value.repository,
      folder: worktree.folder,
      admin: worktree.admin,
      index: yard.value.indexOf(`${worktree.name}.inner`),
      without: [],
    };
    this.#targets.set(folder, { files, turns: new Turns(), head: worktree.base });
    // Who was told to end and does not is not waited for by others.
    const unlink = whenLate(asked.signal, () => turn.close());
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    this.#inUse.add(closed);
    const close = (end: WorktreeEnd): Promise<Closed> =>
      this.#close(yard.value, { asked, worktree, target, turn, end }).finally(() => {
        unlink();
        turn.close();
        this.#targets.delete(folder);
        this.#inUse.delete(closed);
        resolve();
      });
    return ok({ folder, goesOn, close });
  }

  #open(): Promise<Result<Yard, string>> {
    return (this.#yard ??= openYard(this.#options));
  }

  #targetOf({ files }: Yard, into: string | undefined): Target {
    const inner = into === undefined ? undefined : this.#targets.get(into);
    return inner ?? (this.#workspace ??= { files, turns: new Turns(), head: "HEAD" });
  }

  async #make(yard: Yard, target: Target, asked: Asked): Promise<Result<Made, Failure>> {
    const started = systemClock.monotonic();
    const { step, agentRun, goesOn } = asked;
    const { run, emit, workspace, cwd } = this.#options;
    const { repository } = yard;
    const name = yard.newName(agentRun ?? step);
    const folder = yard.folderOf(name);
    const last = goesOn === true ? this.#options.before?.last(agentRun ?? step) : undefined;
    const before = last?.closed?.status === "kept" ? last : undefined;
    const left = before?.closed?.left;
    const isThere = left !== undefined && (await call(repository.git, ["cat-file", "-e", left])).ok;
    const base = before && isThere ? ok(before.base) : await yard.inTurn(() => snapshot(yard, target, { run, name }));
    if (!base.ok) return err(unavailable(base.error));
    const added = await addWorktree({ repository, folder, base: base.value, ...(isThere && { left }) });
    if (!added.ok) return err(unavailable(added.error));
    const worktree = added.value;
    const patch = isThere ? undefined : before?.closed?.patch;
    const restored = patch === undefined ? ok("") : await applyPatch(repository, worktree, patch);
    if (!restored.ok) {
      await removeWorktree(folder, worktree.admin);
      dropRecord(folder);
      const message = `what was done before the run was cut off does not fit any more; it is kept in ${patch ?? ""}: ${restored.error}`;
      return err({ kind: "conflict", message });
    }
    // Git has no empty folders, nor those in which it ignores everything.
    mkdirSync(join(folder, repository.inside, relative(workspace, cwd)), { recursive: true });
    const isOld = isThere || patch !== undefined;
    const duration = elapsed(systemClock, started);
    const more = { ...(agentRun !== undefined && { agentRun }), ...(isOld && { restored: true as const }) };
    emit({ type: "worktree.opened", step, ...more, worktree: name, folder, base: base.value, duration });
    const { status } = last?.closed ?? {};
    return ok({
      worktree,
      goesOn: goesOn === true && (status === undefined || status === "kept" || status === "empty"),
    });
  }

  async #close(yard: Yard, closing: Closing): Promise<Closed> {
    const started = systemClock.monotonic();
    const { asked, worktree } = closing;
    const { name, folder, admin } = worktree;
    const kept = await this.#keep(yard, worktree);
    const isSafe = kept.ok || !isWhole(folder);
    if (this.#isOver) return { status: "lost", files: [], why: "the run is over" };
    if (isSafe) await removeWorktree(folder, admin);
    for (const index of [name, `${name}.inner`]) rmSync(yard.indexOf(index), { force: true });
    const closed = kept.ok
      ? await this.#settle(yard, closing, kept.value)
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
  async #keep(yard: Yard, worktree: Worktree): Promise<Result<Left, string>> {
    const left = await commitOfWorktree(yard.repository, worktree, yard.indexOf(worktree.name));
    if (!left.ok) return left;
    const kept = await yard.keep(yard.patchOf(worktree.name), worktree.base, left.value);
    return kept.ok ? ok({ ...kept.value, left: left.value }) : kept;
  }

  async #settle(yard: Yard, closing: Closing, { patch, files, left }: Left): Promise<Closed> {
    if (patch === undefined) return { status: "empty", files };
    if (!closing.end.apply) return { status: "kept", patch, files };
    return this.#bringIn(yard, closing, { patch, files, left });
  }

  async #bringIn(yard: Yard, closing: Closing, change: ChangeToApply): Promise<Closed> {
    const { asked, turn, end } = closing;
    const { signal } = asked;
    const work = turn.mine(signal).then((isMine) => (isMine ? this.#apply(yard, closing, change) : undefined));
    // Whoever waits may be given up by what is around it, and be given its slot back late: the work goes on regardless.
    if (turn.waits && end.apply) await end.wait?.(work, true);
    const done = await work;
    const { patch, files } = change;
    return done ?? { status: "kept", patch, files, why: "the run was cancelled before it was its turn" };
  }

  async #apply(yard: Yard, { asked, worktree, target, end }: Closing, done: ChangeToApply): Promise<Closed> {
    const { patch, files, left } = done;
    const { emit } = this.#options;
    const { result = undefined, outputs = undefined } = end.apply ? end : {};
    const gave = { ...(result !== undefined && { result }), ...(outputs !== undefined && { outputs }) };
    const about = { step: asked.step, worktree: worktree.name, patch };
    const announce = (from: string, to: string): void =>
      emit({ type: "worktree.applying", ...about, from, to, ...gave });
    const change = { base: worktree.base, tree: `${left}^{tree}` };
    const applied = await yard.inTurn(() => applyChange(target.files, change, announce));
    return { patch, files, ...outcomeOf(applied) };
  }
}

/** Calls back when a signal was aborted a while ago; the returned function takes that back. */
function whenLate(signal: AbortSignal, callback: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => void (timer = setTimeout(callback, graceAfterAbort));
  signal.addEventListener("abort", start, { once: true });
  return () => {
    signal.removeEventListener("abort", start);
    clearTimeout(timer);
  };
}

interface Made {
  readonly worktree: Worktree;
  readonly goesOn: boolean;
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

/** A commit of the files as they are: the one that is checked out, where nothing differs from it. */
async function snapshot(
  { repository }: Yard,
  { files, head }: Target,
  { run, name }: { readonly run: string; readonly name: string },
): Promise<Result<string, string>> {
  const tree = await treeOf(files);
  if (!tree.ok) return tree;
  const known = await call(repository.git, ["rev-parse", head, `${head}^{tree}`]);
  if (!known.ok) return known;
  const [commit = "", knownTree = ""] = known.value.split("\n");
  if (tree.value === knownTree) return ok(commit);
  return commitOf(repository, tree.value, {
    on: commit,
    message: `flow: the workspace as ${name} found it in run ${run}`,
  });
}

function unavailable(message: string): Failure {
  return { kind: "unavailable", message: `there can be no worktree: ${message}` };
}
