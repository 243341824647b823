import type { Marks } from "./marks.ts";
import { runProcess } from "./run.ts";

export interface GitOptions {
  /** Absolute; where git is started unless a call says otherwise. */
  readonly cwd: string;
  /** What flow was started with; nothing in it that names a repository counts. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly marks: Marks;
}

export interface GitCall {
  readonly cwd?: string;
  /** `GIT_DIR`, `GIT_WORK_TREE`, `GIT_INDEX_FILE` of this call. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

export type GitAnswer =
  | { readonly kind: "ended"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "broken"; readonly message: string };

/** One call of git. It asks nobody, runs no hook of the repository, and never rejects. */
export type Git = (args: readonly string[], call?: GitCall) => Promise<GitAnswer>;

/** A list of a hundred thousand paths fits. */
const maxBytes = 64 * 1024 * 1024;

/** Hooks and helpers of the repository stay out, and so does all that would change it beside what is asked for. */
const settings = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.splitIndex=false",
  "core.safecrlf=false",
  "core.quotePath=false",
  "submodule.recurse=false",
  "gc.auto=0",
  "maintenance.auto=false",
].flatMap((setting) => ["-c", setting]);

/** Git with the user's own configuration, and with nothing of the repository that the caller's environment names. */
export function createGit({ cwd, env, marks }: GitOptions): Git {
  const environment = gitEnvironment(env);
  return async (args, call = {}) => {
    const ran = await runProcess({
      argv: ["git", "--no-optional-locks", ...settings, ...args],
      cwd: call.cwd ?? cwd,
      env: { ...environment, ...call.env },
      marks,
      maxBytes,
      ...(call.stdin !== undefined && { stdin: call.stdin }),
    });
    if (ran.kind === "spawn_failed") return { kind: "broken", message: ran.message };
    if (ran.kind !== "exited") return { kind: "broken", message: `git ${args[0] ?? ""} was ended before its time` };
    if (ran.stdout.truncated) return { kind: "broken", message: `git ${args[0] ?? ""} said too much to be read` };
    return { kind: "ended", code: ran.code, stdout: ran.stdout.text, stderr: ran.stderr.text };
  };
}

/** The environment without what ties git to one repository, wherever it is called: a git hook sets such variables. */
export function withoutRepository(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ties.has(name)));
}

/** What `git rev-parse --local-env-vars` lists, without the variables that give settings. */
const ties: ReadonlySet<string> = new Set([
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_COMMON_DIR",
  "GIT_DIR",
  "GIT_GRAFT_FILE",
  "GIT_IMPLICIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_INTERNAL_SUPER_PREFIX",
  "GIT_NAMESPACE",
  "GIT_NO_REPLACE_OBJECTS",
  "GIT_OBJECT_DIRECTORY",
  "GIT_PREFIX",
  "GIT_QUARANTINE_PATH",
  "GIT_REPLACE_REF_BASE",
  "GIT_SHALLOW_FILE",
  "GIT_WORK_TREE",
]);

function gitEnvironment(env: GitOptions["env"]): Readonly<Record<string, string>> {
  const kept = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || (name.startsWith("GIT_") && !/^GIT_(CONFIG_|EXEC_PATH$)/.test(name))
      ? []
      : [[name, value] as const],
  );
  const who = { NAME: "flow", EMAIL: "flow@localhost" };
  const people = ["AUTHOR", "COMMITTER"].flatMap((role) =>
    Object.entries(who).map(([what, value]) => [`GIT_${role}_${what}`, value] as const),
  );
  return Object.fromEntries([...kept, ...people, ["GIT_TERMINAL_PROMPT", "0"], ["LC_ALL", "C"]]);
}
