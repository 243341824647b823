import { randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { Launch } from "./namespace.ts";
import { type Living, Processes, readProc, send } from "./proc.ts";
import { until } from "./until.ts";

/** A variable in the environment of a process and, by inheritance, of everything it starts. */
export interface Mark {
  readonly name: string;
  readonly value: string;
}

export interface MarksOptions {
  /** Called before the first process starts: what it returns is called by `end`. */
  readonly watch?: (mark: string) => () => void;
  /** What starts every process of the run. */
  readonly launch?: Launch;
}

/**
 * The marks of one run's processes, by which those that left their process group are found. A daemon that cleared its
 * own environment and whose parents are gone cannot be found, and elsewhere than on Linux nothing can.
 */
export class Marks {
  /** Absent: processes are started as they are. */
  readonly launch: Launch | undefined;
  readonly #name: string;
  readonly #watch: MarksOptions["watch"];
  #unwatch: (() => void) | undefined;
  readonly #prefix: string = randomBytes(6).toString("hex");
  #given = 0;
  #processes: Promise<Processes> | undefined;
  #scan: Promise<ReadonlyMap<string, readonly Living[]>> | undefined;

  /** `run` is the run's id. The variable's name holds it: a run inside a run's step carries both marks. */
  constructor(run: string, { watch, launch }: MarksOptions = {}) {
    this.#name = `${markPrefix}${run.replaceAll(/[^A-Za-z0-9]/g, "_")}`;
    this.#watch = watch;
    this.launch = launch;
  }

  /** A mark no other process has. */
  next(): Mark {
    this.#given += 1;
    this.#unwatch ??= this.#watch?.(this.#name);
    return { name: this.#name, value: `${this.#prefix}-${this.#given}` };
  }

  /** Kills what carries `mark`. Resolves when nothing does any more, or after a second. */
  async kill(mark: Mark): Promise<void> {
    await this.#killWhere((found) => found.get(mark.value) ?? []);
  }

  /**
   * Kills every process of the run that is still there, also what an earlier flow process with this run id left.
   *
   * @returns how many there were.
   */
  reap(): Promise<number> {
    return this.#killWhere((found) => [...found.values()].flat());
  }

  /** Reaps, then sends the watchdog away; where the machine does not let us look, it stays and does it for us. */
  async end(): Promise<void> {
    await this.reap();
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  /** One look serves all who ask in the same turn: to end a thousand steps is not to read /proc a thousand times. */
  processes(): Promise<Processes> {
    this.#processes ??= turn().then(() => {
      this.#processes = undefined;
      return new Processes();
    });
    return this.#processes;
  }

  /** Looks again until it finds nothing: a process may fork between being seen and being killed. */
  async #killWhere(choose: (found: ReadonlyMap<string, readonly Living[]>) => readonly Living[]): Promise<number> {
    const killed = new Set<number>();
    await until(async () => {
      const chosen = choose(await this.#marked());
      for (const { pid } of chosen) if (send(pid, "SIGKILL")) killed.add(pid);
      return chosen.length === 0;
    }, 1000);
    return killed.size;
  }

  #marked(): Promise<ReadonlyMap<string, readonly Living[]>> {
    this.#scan ??= this.processes().then((processes) => {
      this.#scan = undefined;
      return scan(this.#name, processes);
    });
    return this.#scan;
  }
}

export const markPrefix = "FLOW_MARK_";

/** Processes by the value of the mark that they, or those they descend from, carry. */
function scan(name: string, processes: Processes): ReadonlyMap<string, readonly Living[]> {
  const found = Map.groupBy(processes.all, ({ pid }) => markOf(pid, name));
  const marked = [...found].flatMap(([value, these]) => (value === undefined ? [] : [[value, these] as const]));
  return new Map(marked.map(([value, these]) => [value, processes.withDescendants(these)]));
}

function markOf(pid: number, name: string): string | undefined {
  const environ = `\0${readProc(pid, "environ")}`;
  const at = environ.indexOf(`\0${name}=`);
  if (at === -1) return undefined;
  const start = at + name.length + 2;
  return environ.slice(start, environ.indexOf("\0", start));
}
