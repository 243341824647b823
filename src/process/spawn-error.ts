import { accessSync, constants, statSync } from "node:fs";
import { delimiter, resolve } from "node:path";

/** The process never started. */
export interface SpawnFailed {
  readonly kind: "spawn_failed";
  /** `arguments`: they, or the environment, cannot be handed to a process. `resources`: the machine has no room now. */
  readonly reason: "program" | "cwd" | "arguments" | "resources";
  /** `ENOENT`, `EACCES`, `E2BIG` … */
  readonly code: string;
  /** Names the file and says what to do. */
  readonly message: string;
}

export interface SpawnAttempt {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Says why a process did not start. The system's own answer is the same for a missing program, cwd and interpreter. */
export function explainSpawnError(error: Error, attempt: SpawnAttempt): SpawnFailed {
  const code = "code" in error && typeof error.code === "string" ? error.code : "unknown";
  const because = (reason: SpawnFailed["reason"], message: string): SpawnFailed => ({
    kind: "spawn_failed",
    reason,
    code,
    message,
  });
  switch (code) {
    case "EAGAIN":
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
    case "ENOSPC":
      return because("resources", `${shown(attempt)} could not start: ${shortage[code]} (${code}); ${relief}`);
    case "E2BIG":
      return because("arguments", `the arguments and the environment of ${shown(attempt)} are too long; use stdin`);
    case "ERR_INVALID_ARG_VALUE":
      return because("arguments", `${shown(attempt)} could not start: ${error.message}`);
    default: {
      const problem = cwdProblem(attempt.cwd);
      if (problem !== undefined) return because("cwd", problem);
      return because("program", programProblem(code, error, attempt));
    }
  }
}

/** Why a command cannot start, known before: the program that is to start it would say so in its own words. */
export function whyNotStarted(attempt: SpawnAttempt): SpawnFailed | undefined {
  const file = findProgram(attempt);
  const code = file === undefined ? "ENOENT" : isDirectory(file) || !isAllowed(file, constants.X_OK) ? "EACCES" : "";
  if (code === "" && cwdProblem(attempt.cwd) === undefined) return undefined;
  return explainSpawnError(Object.assign(new Error(code), { code }), attempt);
}

const shortage = {
  EAGAIN: "no more processes are allowed",
  EMFILE: "too many files are open",
  ENFILE: "too many files are open on this machine",
  ENOMEM: "there is no memory for another process",
  ENOSPC: "the disk that holds the temporary folder is full",
};
const relief = "make room, run fewer steps at once (limits: { parallel }) or raise the limit (ulimit -a)";

function shown(attempt: SpawnAttempt): string {
  return JSON.stringify(attempt.argv[0] ?? "");
}

function cwdProblem(cwd: string): string | undefined {
  const stats = statSync(cwd, { throwIfNoEntry: false });
  if (stats === undefined) return `the working directory ${JSON.stringify(cwd)} does not exist`;
  if (!stats.isDirectory()) return `the working directory ${JSON.stringify(cwd)} is not a directory`;
  return isAllowed(cwd, constants.X_OK) ? undefined : `the working directory ${JSON.stringify(cwd)} cannot be entered`;
}

function programProblem(code: string, error: Error, attempt: SpawnAttempt): string {
  const file = findProgram(attempt);
  const where = file === undefined || file === attempt.argv[0] ? "" : ` (${file})`;
  const program = `${shown(attempt)}${where}`;
  switch (code) {
    case "ENOENT":
      if (file !== undefined) return `${program} could not start: the interpreter its first line (#!) names is missing`;
      if (attempt.argv[0]?.includes("/") === true) return `${program} could not start: there is no such file`;
      return `${program} could not start: no such program in PATH; install it, or write its path`;
    case "EACCES":
      if (file !== undefined && isDirectory(file)) return `${program} could not start: it is a directory`;
      return `${program} could not start: it is not executable (chmod +x)`;
    default:
      return `${program} could not start: ${error.message}`;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The absolute path of the file the system would have run, executable or not. */
function findProgram({ argv, cwd, env }: SpawnAttempt): string | undefined {
  const program = argv[0] ?? "";
  const folders = program.includes("/") ? [""] : (env["PATH"] ?? "").split(delimiter);
  const candidates = folders.map((folder) => resolve(cwd, folder, program));
  return candidates.find((candidate) => isAllowed(candidate, constants.F_OK));
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
