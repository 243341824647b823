import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkEvent } from "../../src/jsonschema/check-event.ts";
import type { LogLine } from "../../src/model/event.ts";
import type { Json } from "../../src/model/json.ts";

/** This project's folder. */
export const project: string = fileURLToPath(new URL("../../", import.meta.url));
/** The command as it is installed. */
export const command: string = join(project, "dist", "flow.cjs");

export interface Ended {
  /** The exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when stderr holds the text. */
  said(text: string): Promise<void>;
}

export interface Options {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Relative to the place. */
  readonly cwd?: string;
  /** Words for Node itself. */
  readonly node?: readonly string[];
  /** Milliseconds after which it is killed; 25 seconds when absent. */
  readonly patience?: number;
}

/** Longer than any command here needs on a slow machine; then it is killed and the test fails. */
const patience = 25_000;

/** A workspace of its own: an empty folder with a `.git`, in which `flow` is run as somebody would run it. */
export class Place {
  readonly folder: string = realpathSync(mkdtempSync(join(tmpdir(), "flow-cli-")));

  constructor(files: Readonly<Record<string, string>> = {}) {
    mkdirSync(join(this.folder, ".git"));
    for (const [path, text] of Object.entries(files)) this.write(path, text);
  }

  write(path: string, text: string): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** A folder of this project, at the same path. */
  copy(path: string): void {
    cpSync(join(project, path), join(this.folder, path), { recursive: true });
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), "utf8");
  }

  flow(args: readonly string[], options: Options = {}): Promise<Ended> {
    return this.start(args, options).ended;
  }

  start(
    args: readonly string[],
    { env = {}, stdin, cwd = ".", node = [], patience: ms = patience }: Options = {},
  ): Running {
    const child = spawn(process.execPath, [...node, command, ...args], {
      cwd: join(this.folder, cwd),
      env: { ...bareEnvironment(), ...env },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: ms,
      killSignal: "SIGKILL",
    });
    child.stdin.on("error", () => undefined).end(stdin);
    return follow(child);
  }

  /** What bash makes of a line in which `flow` is the command. */
  shell(line: string, options: Options = {}): Promise<Ended> {
    const script = `flow() { "$NODE" "$FLOW" "$@"; }\n${line}`;
    const child = spawn("bash", ["-c", script], {
      cwd: join(this.folder, options.cwd ?? "."),
      env: { ...bareEnvironment(), NODE: process.execPath, FLOW: command, ...options.env },
      timeout: options.patience ?? patience,
      killSignal: "SIGKILL",
    });
    child.stdin.end(options.stdin);
    return follow(child).ended;
  }

  /** Ids of the runs that have a log, in the order they ended; within one second the ids themselves do not tell. */
  runs(folder = ".flow/runs"): string[] {
    const path = join(this.folder, folder);
    if (!existsSync(path)) return [];
    const log = (run: string): string => join(path, run, "log.jsonl");
    const ended = (run: string): number => statSync(log(run)).mtimeMs;
    // A run that was killed as it began may have a folder and no more.
    return readdirSync(path)
      .filter((run) => existsSync(log(run)))
      .sort((a, b) => ended(a) - ended(b));
  }

  /** The log of the last run as text. */
  log(folder = ".flow/runs"): string {
    return this.read(join(folder, this.runs(folder).at(-1) ?? "no run", "log.jsonl"));
  }

  /** The events of the last run; each has been checked against the published schema, and `seq` has no gaps. */
  events(folder?: string): LogLine[] {
    return checkedEvents(this.log(folder));
  }

  /** What a kill leaves: only these first lines of a log, that of the last run when absent. */
  endLog(lines: number, log: string = this.log()): void {
    const kept = log.split("\n").slice(0, lines).join("\n");
    this.write(join(".flow/runs", this.runs().at(-1) ?? "no run", "log.jsonl"), `${kept}\n`);
  }

  git(...args: readonly string[]): string {
    return git(this.folder, ...args);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A place that is there as long as the work takes. */
export async function during<P extends Place, T>(place: P, work: (place: P) => Promise<T>): Promise<T> {
  try {
    return await work(place);
  } finally {
    place.remove();
  }
}

/** Lines of JSON as events; throws for one that is not what `schemas/event.schema.json` says. */
export function checkedEvents(text: string): LogLine[] {
  const events = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Json);
  for (const [index, event] of events.entries()) {
    const issues = checkEvent(event);
    if (issues.length > 0) throw new Error(`${JSON.stringify(event).slice(0, 500)}\n${JSON.stringify(issues)}`);
    const { seq } = event as unknown as LogLine;
    if (seq !== index + 1) throw new Error(`event ${index + 1} has seq ${seq}`);
  }
  return events as unknown as LogLine[];
}

/** Real git, whatever the user's own settings are. */
export function git(cwd: string, ...args: readonly string[]): string {
  const settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
  const env = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", [...settings, ...args], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** A home of nobody: agents and configurations of whoever runs the tests are none of theirs. */
const home = mkdtempSync(join(tmpdir(), "flow-home-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));

/** Nothing of the machine that runs the tests but what any shell has: no keys, no CI, no colours. */
function bareEnvironment(): Record<string, string> {
  const names = ["PATH", "TMPDIR", "LANG"];
  const kept = names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  return { ...Object.fromEntries(kept), HOME: home };
}

function follow(child: ChildProcess): Running {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    pid: child.pid ?? 0,
    ended,
    kill: (signal) => child.kill(signal),
    said: async (text) => {
      const over = ended.then(() => "over");
      while (!stderr.includes(text)) {
        const next = await Promise.race([new Promise((resolve) => setTimeout(resolve, 10)), over]);
        if (next === "over" && !stderr.includes(text)) throw new Error(`it ended without saying ${text}:\n${stderr}`);
      }
    },
  };
}
