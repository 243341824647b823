import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Conditions, resume, run } from "../../src/flow.ts";
import type { LogLine } from "../../src/model/event.ts";
import type { JsonObject } from "../../src/model/json.ts";

export interface Went {
  readonly exitCode: number;
  readonly outputs: JsonObject;
  readonly events: readonly LogLine[];
  /** Paths of what came from the cache, and of what had to run with its reason. */
  readonly cached: readonly string[];
  readonly missed: readonly string[];
}

/** A workspace in which workflows run in this process, as the library runs them. */
export class Folder {
  readonly path: string = realpathSync(mkdtempSync(join(tmpdir(), "flow-cache-")));

  constructor(files: Readonly<Record<string, string>> = {}) {
    mkdirSync(join(this.path, ".git"));
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.path, name)), { recursive: true });
    writeFileSync(join(this.path, name), text);
  }

  /** Empty where there is no such file. */
  read(name: string): string {
    try {
      return readFileSync(join(this.path, name), "utf8");
    } catch {
      return "";
    }
  }

  remove(name = ""): void {
    rmSync(join(this.path, name), { recursive: true, force: true });
  }

  run(
    given: Conditions & { readonly inputs?: JsonObject; readonly file?: string; readonly in?: string } = {},
  ): Promise<Went> {
    const { inputs = {}, file = "main.yaml", in: folder = ".", ...conditions } = given;
    const cwd = join(this.path, folder);
    return watch(conditions, (watched) => run({ ...watched, file, cwd, inputs }));
  }

  resume(given: Conditions & { readonly from?: string } = {}): Promise<Went> {
    return watch(given, (watched) => resume({ ...watched, run: "latest", cwd: this.path }));
  }
}

async function watch(conditions: Conditions, start: (watched: Conditions) => ReturnType<typeof resume>): Promise<Went> {
  const events: LogLine[] = [];
  const result = await start({ ...conditions, onEvent: (line) => events.push(line) });
  if ("finished" in result) throw new Error("it had finished before");
  if (!result.started) throw new Error(JSON.stringify(result.refusal).slice(0, 2000));
  const { exitCode, outputs } = result.end;
  const missed = events.flatMap((event) =>
    event.type === "step.uncached" ? [[event.step, event.why, ...(event.changed ?? [])].join(" | ")] : [],
  );
  const cached = events.flatMap((event) => (event.type === "step.cached" ? [event.step] : []));
  return { exitCode, outputs, events, cached, missed };
}
