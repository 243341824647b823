import type { Again, Fingerprint, LogLine, SetOutput } from "../model/event.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Step } from "../model/plan.ts";
import { unreachable } from "../model/result.ts";

/** What the run before this resume left of one execution. */
export interface PastExecution {
  readonly fingerprint: Fingerprint | undefined;
  /** The `seq` of its end; of its beginning while it has none. */
  seq: number;
  end: PastEnd;
}

export type PastEnd =
  | { readonly kind: "running" }
  /** It had asked somebody, and had no end. */
  | { readonly kind: "waiting" }
  | { readonly kind: "success"; outputs?: Json; result?: Json }
  /** `forgiven`: it concluded `success` by `continue-on-error`. */
  | { readonly kind: "failure"; error?: Failure; outputs?: Json; readonly forgiven: boolean }
  | { readonly kind: "cancelled" };

export type RecordedEnd = Extract<PastEnd, { kind: "success" | "failure" }>;

/** `item` is null outside a `foreach`. */
export type FingerprintOf = (step: Step, inputs: JsonObject, item: Json) => Fingerprint;

/** What the past says to an execution that is about to begin. */
export type Recall =
  /** Nothing is known of it. */
  | { readonly kind: "new" }
  /** Its end still holds; `seq` is the line of it. */
  | { readonly kind: "reuse"; readonly end: RecordedEnd; readonly seq: number }
  /** `resumes`: it was cut off and nothing about it has changed. */
  | { readonly kind: "again"; readonly why: Again; readonly resumes: boolean }
  /** It was running when the run died, and may not start again by itself. */
  | { readonly kind: "lost" };

export interface Asked {
  readonly path: string;
  readonly step: Step;
  readonly fingerprint: Fingerprint;
}

/** What the past says to an execution whose outputs may be in the cache. */
export type CachedRecall =
  /** They were taken from there before this resume, and still would be. */
  | Extract<Recall, { kind: "reuse" }>
  /** The past has more to say: it ran and succeeded, or somebody asked for it to run. */
  | { readonly kind: "pass" }
  | { readonly kind: "ask" };

/** The past of a run as its executions ask for it. */
export interface Past {
  recallCached(asked: Omit<Asked, "fingerprint"> & { readonly key: string }): CachedRecall;
  /** Whether something at that path or in it came to its end, and was not taken back. */
  holds(path: string): boolean;
  /** Whether the step, item or iteration of that path ever began. */
  began(path: string): boolean;
  /** How an execution that was given the same as now ended, whatever was asked for since; each is told once. */
  ended(asked: Asked): Extract<Recall, { kind: "reuse" }> | undefined;
  /** Says what an execution whose end is not in the log has come to all the same. */
  finish(path: string, end: { readonly outputs: Json; readonly result: Json }): void;
  /** Says that what the execution gives now is not what it gave before. */
  ran(path: string): void;
  /** What is known of an execution; each is told once, so that a later try in the same run starts afresh. */
  recall(asked: Asked): Recall;
  /** The outputs with those that a person replaced. */
  replaced(path: string, outputs: Json): Json;
  /** Says, before `path` begins, which steps its `needs` and `edges` name: when one of them ran again, so does all in it. */
  follow(path: string, sources: readonly string[]): void;
}

/** Which executions run again because somebody asked for it. */
export type Matches = (path: string) => boolean;

/**
 * Folds the lines of a log, in order, into what its executions left. Pure: the same lines give the same past, and every
 * prefix of a log is a past. Memory goes with the number of executions, not with the length of the log.
 */
export class History {
  readonly #executions = new Map<string, PastExecution>();
  /** By path: the key under which its outputs were found in the cache, until its end. */
  readonly #cached = new Map<string, string>();
  /** Paths of all steps, items and iterations that ever began, with the line of their last success if they had one. */
  readonly #steps = new Map<string, number>();
  /** By path: the line in which its `undo` began last. */
  readonly #undone = new Map<string, number>();
  /** Those whose `undo` began and which have not begun again. */
  readonly #undoing = new Set<string>();
  readonly #froms: { readonly seq: number; readonly from: string }[] = [];
  readonly #sets: { readonly seq: number; readonly set: SetOutput }[] = [];

  add(line: LogLine): void {
    switch (line.type) {
      case "step.started":
        this.#steps.set(line.step, this.#steps.get(line.step) ?? 0);
        this.#undoing.delete(line.step);
        break;
      case "step.attempt.started":
        if (this.#isPartOfUndo(line.step)) break;
        this.#executions.set(line.step, {
          fingerprint: line.fingerprint,
          seq: line.seq,
          end: { kind: line.again === "waiting" ? "waiting" : "running" },
        });
        break;
      case "approval.requested":
        this.#end(line.step, line.seq, { kind: "waiting" });
        break;
      case "step.attempt.finished":
        this.#end(line.step, line.seq, endOf(line));
        break;
      case "step.cached":
        this.#cached.set(line.step, line.key);
        break;
      case "step.finished":
        this.#finish(line);
        break;
      case "step.undo.started":
        this.#undone.set(line.step, line.seq);
        this.#undoing.add(line.step);
        break;
      case "run.resumed":
        if (line.from !== undefined) this.#froms.push({ seq: line.seq, from: line.from });
        for (const set of line.set ?? []) this.#sets.push({ seq: line.seq, set });
        break;
      default:
    }
  }

  /** Everything that was asked for by `--from` so far. */
  get froms(): readonly { readonly seq: number; readonly from: string }[] {
    return this.#froms;
  }

  /** Paths of every step, item and iteration that began. */
  get paths(): Iterable<string> {
    return this.#steps.keys();
  }

  /** Whether the step, item or iteration of that path ever began, and whether it ever ended in success. */
  stateOf(path: string): "unknown" | "begun" | "succeeded" {
    const seq = this.#steps.get(path);
    return seq === undefined ? "unknown" : seq > 0 ? "succeeded" : "begun";
  }

  /** The executions, for whoever has to bring in values that lie outside the log. */
  get executions(): ReadonlyMap<string, PastExecution> {
    return this.#executions;
  }

  /** `froms`: what `--from` names by the plan that runs now, with the line from which on it counts. */
  past(froms: readonly { readonly seq: number; readonly matches: Matches }[]): Past {
    const told = new Set<string>();
    const ranAgain = new Set<string>();
    /** Every path with an execution inside that ran in this resume, and those that follow one. */
    const fresh = new Set<string>();
    const following = new Set<string>();
    const ran = (path: string): void => {
      ranAgain.add(path);
      for (const around of placesAround(path)) fresh.add(around);
    };
    const isAsked = (path: string, since: number): boolean =>
      froms.some(({ seq, matches }) => seq > since && matches(path));
    let held: ReadonlySet<string> | undefined;
    const finished = new Map<string, PastEnd>();
    return {
      finish: (path, end) => void finished.set(path, { kind: "success", ...end }),
      holds: (path) => (held ??= this.#held(finished)).has(path),
      began: (path) => this.#steps.has(path),
      ended: ({ path, fingerprint }) => {
        const execution = this.#executions.get(path);
        if (execution === undefined || told.has(path) || this.#isUndone(path, execution.seq)) return undefined;
        const { seq } = execution;
        const end = finished.get(path) ?? execution.end;
        const hasEnded = end.kind === "success" || end.kind === "failure";
        if (!hasEnded || changeOf(execution.fingerprint, fingerprint) !== undefined) return undefined;
        told.add(path);
        return { kind: "reuse", end, seq };
      },
      ran,
      recallCached: ({ path, step, key }) => {
        const execution = this.#executions.get(path);
        const succeeded = this.#steps.get(path) ?? 0;
        if (told.has(path)) return { kind: "ask" };
        // What was asked for may also lie inside; then the whole cannot be taken from the cache.
        const isInside = this.#froms.some(({ seq, from }) => seq > succeeded && placesAround(from).includes(path));
        if (isInside || isAsked(path, succeeded) || (succeeded > 0 && execution?.fingerprint?.definition !== fromCache))
          return { kind: "pass" };
        if (execution?.fingerprint?.definition !== fromCache) return { kind: "ask" };
        told.add(path);
        const undone = this.#isUndone(path, execution.seq);
        const fingerprint = fingerprintOf(key);
        const recall = judge(execution, { step, fingerprint, asked: false, undone, follows: false });
        return recall.kind === "reuse" ? recall : { kind: "ask" };
      },
      recall: ({ path, step, fingerprint }) => {
        const execution = this.#executions.get(path);
        if (execution === undefined || told.has(path)) {
          ran(path);
          return { kind: "new" };
        }
        told.add(path);
        const asked = isAsked(path, execution.seq);
        const follows = following.size > 0 && placesAround(path).some((around) => following.has(around));
        const undone = this.#isUndone(path, execution.seq);
        const recall = judge(execution, { step, fingerprint, asked, undone, follows });
        if (recall.kind !== "reuse") ran(path);
        return recall;
      },
      follow: (path, sources) => {
        if (!sources.some((source) => fresh.has(source))) return;
        following.add(path);
        fresh.add(path);
      },
      replaced: (path, outputs) => (ranAgain.has(path) ? outputs : this.#replaced(path, outputs)),
    };
  }

  #held(finished: ReadonlyMap<string, PastEnd>): ReadonlySet<string> {
    const ended = [...this.#executions].flatMap(([path, { seq, end }]): [string, number][] =>
      finished.has(path) || end.kind === "success" || end.kind === "failure" ? [[path, seq]] : [],
    );
    // What does nothing but give values is no execution, and others have used them.
    const succeeded = [...this.#steps].filter(([, seq]) => seq > 0);
    const held = [...ended, ...succeeded].filter(([path, seq]) => !this.#isUndone(path, seq));
    return new Set(held.flatMap(([path]) => placesAround(path)));
  }

  #end(path: string, seq: number, end: PastEnd): void {
    const execution = this.#executions.get(path);
    if (execution === undefined) return;
    execution.seq = seq;
    execution.end = end;
  }

  #finish(line: Extract<LogLine, { type: "step.finished" }>): void {
    const key = this.#cached.get(line.step);
    this.#cached.delete(line.step);
    if (line.conclusion !== "success") return;
    this.#steps.set(line.step, line.seq);
    if (key !== undefined) {
      const kept = line.outputs === undefined ? {} : { outputs: line.outputs };
      const end = { kind: "success", ...kept } as const;
      this.#executions.set(line.step, { fingerprint: fingerprintOf(key), seq: line.seq, end });
    }
    if (line.outcome !== "failure") return;
    const { error, outputs } = line;
    const kept = { ...(error && { error }), ...(outputs !== undefined && { outputs }) };
    this.#end(line.step, line.seq, { kind: "failure", ...kept, forgiven: true });
  }

  /** What lies inside a step that was taken back was taken back with it. */
  #isUndone(path: string, end: number): boolean {
    if (this.#undone.size === 0) return false;
    return scopesOf(path).some((around) => (this.#undone.get(around) ?? 0) > end);
  }

  /** What an `undo` does is no execution of a step: the next one does it all again. */
  #isPartOfUndo(path: string): boolean {
    if (this.#undoing.size === 0) return false;
    return scopesOf(path).some((around) => around.endsWith("/undo") && this.#undoing.has(around.slice(0, -5)));
  }

  #replaced(path: string, outputs: Json): Json {
    const since = this.#executions.get(path)?.seq ?? 0;
    const sets = this.#sets.filter(({ seq, set }) => set.step === path && seq > since);
    if (sets.length === 0 || typeof outputs !== "object" || outputs === null || Array.isArray(outputs)) return outputs;
    const replaced: JsonObject = { ...outputs };
    for (const { set } of sets) replaced[set.output] = set.value;
    return replaced;
  }
}

/** Stands where an execution whose outputs came from the cache has no definition of its own. */
const fromCache = "cache";

function fingerprintOf(key: string): Fingerprint {
  return { definition: fromCache, given: key };
}

/** The path itself and those of the steps it lies in. */
function scopesOf(path: string): string[] {
  const paths = [path];
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) paths.push(path.slice(0, at));
  return paths;
}

/** A path and everything it lies in: the item of an iteration, the loop of an item, the group of a step. */
function placesAround(path: string): string[] {
  const places = [path];
  for (let place = path; place !== "";) {
    const mark = /[[#][^[#/]*$/.exec(place);
    place = place.slice(0, mark === null ? Math.max(place.lastIndexOf("/"), 0) : mark.index);
    if (place !== "") places.push(place);
  }
  return places;
}

function endOf(line: Extract<LogLine, { type: "step.attempt.finished" }>): PastEnd {
  const { outcome, outputs, result, error } = line;
  if (outcome === "cancelled") return { kind: "cancelled" };
  const kept = outputs === undefined ? {} : { outputs };
  if (outcome === "failure") return { kind: "failure", ...kept, ...(error && { error }), forgiven: false };
  return { kind: "success", ...kept, ...(result !== undefined && { result }) };
}

interface Now {
  readonly step: Step;
  readonly fingerprint: Fingerprint;
  readonly asked: boolean;
  readonly undone: boolean;
  /** A step that it needs ran again. */
  readonly follows: boolean;
}

function judge({ fingerprint, end, seq }: PastExecution, now: Now): Recall {
  const changed = changeOf(fingerprint, now.fingerprint);
  const again = (why: Again): Recall => ({ kind: "again", why, resumes: false });
  if (now.asked) return again("from");
  if (now.undone) return again("undone");
  switch (end.kind) {
    case "running":
      if (now.step.rerun === "never") return { kind: "lost" };
      return { kind: "again", why: "uncertain", resumes: changed === undefined };
    case "waiting":
      return changed === undefined ? { kind: "again", why: "waiting", resumes: true } : again(changed);
    case "cancelled":
      return { kind: "again", why: "cancelled", resumes: changed === undefined };
    case "failure":
      if (!end.forgiven) return { kind: "again", why: "failed", resumes: changed === undefined };
      break;
    case "success":
      break;
    default:
      return unreachable(end);
  }
  if (changed !== undefined) return again(changed);
  return now.follows ? again("needs") : { kind: "reuse", end, seq };
}

function changeOf(before: Fingerprint | undefined, now: Fingerprint): "definition" | "given" | undefined {
  if (before?.definition !== now.definition) return "definition";
  return before.given === now.given ? undefined : "given";
}
