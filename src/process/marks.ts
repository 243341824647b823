import { randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { processIds, readProc, send } from "./proc.ts";
import { until } from "./until.ts";

/** A variable in the environment of a process and, by inheritance, of everything it starts. */
export interface Mark {
  readonly name: string;
  readonly value: string;
}

/**
 * The marks of one run's processes, by which those that left their process group are found. A process that cleared its
 * own environment (`env -i setsid …`) cannot be found, and elsewhere than on Linux none can.
 */
export class Marks {
  readonly #name: string;
  readonly #prefix: string = randomBytes(6).toString("hex");
  #given = 0;
  #scan: Promise<ReadonlyMap<string, readonly number[]>> | undefined;

  /** `run` is the run's id. The variable's name holds it: a run inside a run's step carries both marks. */
  constructor(run: string) {
    this.#name = `${markPrefix}${run.replaceAll(/[^A-Za-z0-9]/g, "_")}`;
  }

  /** A mark no other process has. */
  next(): Mark {
    this.#given += 1;
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

  /** Looks again until it finds nothing: a process may fork between being seen and being killed. */
  async #killWhere(choose: (found: ReadonlyMap<string, readonly number[]>) => readonly number[]): Promise<number> {
    const killed = new Set<number>();
    await until(async () => {
      const pids = choose(await this.#look());
      for (const pid of pids) if (send(pid, "SIGKILL")) killed.add(pid);
      return pids.length === 0;
    }, 1000);
    return killed.size;
  }

  /** One look serves all who ask in the same turn: to end a thousand steps is not to read /proc a thousand times. */
  #look(): Promise<ReadonlyMap<string, readonly number[]>> {
    this.#scan ??= turn().then(() => {
      this.#scan = undefined;
      return scan(this.#name);
    });
    return this.#scan;
  }
}

export const markPrefix = "FLOW_MARK_";

/** Process ids by the value of their mark. */
function scan(name: string): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const pid of processIds()) {
    const environ = `\0${readProc(pid, "environ")}`;
    const at = environ.indexOf(`\0${name}=`);
    if (at === -1 || pid === process.pid) continue;
    const start = at + name.length + 2;
    const value = environ.slice(start, environ.indexOf("\0", start));
    const pids = found.get(value);
    if (pids === undefined) found.set(value, [pid]);
    else pids.push(pid);
  }
  return found;
}
