import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findBubblewrap, type Launch } from "./namespace.ts";
import { type GitHold, holdGit } from "./sandbox-git.ts";

export interface SandboxOptions {
  /** Flow's own `PATH`: a command's may name anything. */
  readonly path: string;
  /** Absolute, without symbolic links; the one place that may be written. */
  readonly workspace: string;
  /** Of a workspace that is a worktree: the one it was made from, which can be read. */
  readonly around?: string;
  readonly home: string;
  readonly network: boolean;
  /** Whether a file, by its path from the workspace, holds credentials. */
  readonly isSecret: (path: string) => boolean;
  /** Shared by all sandboxes of a workspace; one of its own when absent. */
  readonly git?: GitHold;
  /** Repositories can only be read: for what lives too long to be looked after when it is over. */
  readonly closesGit?: boolean;
  /** Folders that can be read wherever they lie, below `/tmp` too; absolute, without symbolic links. */
  readonly shown?: readonly string[];
  /** Folders beside the workspace that may be written; absolute, there, and of nobody who could exchange them. */
  readonly writable?: readonly string[];
}

/** Below the home folder; what lies there opens other machines. */
const hiddenAtHome = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh"];
/** Empty in the sandbox: others leave sockets and files there. */
const emptied = ["/tmp", "/run"];
/** Read-only views of what machines keep below `/run`: how names are resolved, and where some have their programs. */
const shownOfRun = ["/run/systemd/resolve", "/run/current-system"];

/**
 * A sandbox of bubblewrap: the whole system read-only, the workspace writable, `/tmp` empty, process ids and network of
 * its own, no rights to gain and no terminal to write to. Undefined where this machine has no bubblewrap that works.
 */
export function sandboxLaunch(options: SandboxOptions): Launch | undefined {
  const program = findBubblewrap(options.path);
  if (program === undefined) return undefined;
  const git = options.git ?? holdGit(options.workspace);
  const launch: Launch = {
    // Anew for each command: what has to be covered may have come since the last one.
    get prefix() {
      return [program, ...sandboxArguments(options, git), "--"];
    },
    guard: () => git.guard(),
  };
  const leave = git.guard();
  const probe = spawnSync(program, [...launch.prefix.slice(1), "true"], {
    env: { PATH: options.path },
    stdio: "ignore",
  });
  leave();
  return probe.status === 0 ? launch : undefined;
}

function sandboxArguments(options: SandboxOptions, git: GitHold): string[] {
  const { workspace, around, home, network, isSecret, closesGit = false, shown = [], writable = [] } = options;
  const folders = around === undefined ? [workspace] : [workspace, around];
  const places = [
    ["--ro-bind", "/", "/"],
    ["--dev", "/dev"],
    ["--proc", "/proc"],
    ...emptied.flatMap((path) => (existsSync(path) ? [["--tmpfs", path]] : [])),
    ...[...shownOfRun, ...shown.filter(isInEmptied)].map((path) => ["--ro-bind-try", path, path]),
    ...hiddenAtHome.map((name) => join(home, name)).flatMap((path) => (existsSync(path) ? [["--tmpfs", path]] : [])),
    ...(around === undefined ? [] : [["--ro-bind", around, around]]),
    ...[...writable, workspace].map((path) => ["--bind", path, path]),
    ["--ro-bind-try", join(workspace, ".flow"), join(workspace, ".flow")],
    git.arguments(closesGit),
    ...folders.flatMap((folder) =>
      secretsIn(folder, isSecret).map((name) => ["--ro-bind", "/dev/null", join(folder, name)]),
    ),
    // Wherever it led, it is read-only now.
    ["--unsetenv", "TMPDIR"],
  ];
  const kernel = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--new-session",
    "--die-with-parent",
  ];
  return [...places.flat(), ...kernel, "--cap-drop", "ALL", ...(network ? [] : ["--unshare-net"])];
}

function isInEmptied(path: string): boolean {
  return emptied.some((folder) => path.startsWith(`${folder}/`));
}

/** Files at the top of the workspace; below it the rules are what there is. */
function secretsIn(workspace: string, isSecret: SandboxOptions["isSecret"]): string[] {
  return readdirSync(workspace, { withFileTypes: true })
    .filter((entry) => entry.isFile() && isSecret(entry.name))
    .map(({ name }) => name);
}
