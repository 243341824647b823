import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findBubblewrap, type Launch } from "./namespace.ts";
import { createGitGuard, gitArguments } from "./sandbox-git.ts";

export interface SandboxOptions {
  /** Flow's own `PATH`: a command's may name anything. */
  readonly path: string;
  /** Absolute, without symbolic links; the one place that may be written. */
  readonly workspace: string;
  readonly home: string;
  readonly network: boolean;
  /** Whether a file, by its path from the workspace, holds credentials. */
  readonly isSecret: (path: string) => boolean;
}

/** Below the home folder; what lies there opens other machines. */
const hiddenAtHome = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh"];

/**
 * A sandbox of bubblewrap: the whole system read-only, the workspace writable, `/tmp` empty, process ids and network of
 * its own, no rights to gain and no terminal to write to. Undefined where this machine has no bubblewrap that works.
 */
export function sandboxLaunch(options: SandboxOptions): Launch | undefined {
  const program = findBubblewrap(options.path);
  if (program === undefined) return undefined;
  const guard = createGitGuard(options.workspace);
  const launch: Launch = {
    // Anew for each command: what has to be covered may have come since the last one.
    get prefix() {
      return [program, ...sandboxArguments(options), "--"];
    },
    guard,
  };
  const leave = guard();
  const probe = spawnSync(program, [...launch.prefix.slice(1), "true"], {
    env: { PATH: options.path },
    stdio: "ignore",
  });
  leave();
  return probe.status === 0 ? launch : undefined;
}

function sandboxArguments({ workspace, home, network, isSecret }: SandboxOptions): string[] {
  const places = [
    ["--ro-bind", "/", "/"],
    ["--dev", "/dev"],
    ["--proc", "/proc"],
    ["--tmpfs", "/tmp"],
    ...(existsSync("/run") ? [["--tmpfs", "/run"]] : []),
    ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"],
    ...hiddenAtHome.map((name) => join(home, name)).flatMap((path) => (existsSync(path) ? [["--tmpfs", path]] : [])),
    ["--bind", workspace, workspace],
    ["--ro-bind-try", join(workspace, ".flow"), join(workspace, ".flow")],
    gitArguments(workspace),
    ...secretsIn(workspace, isSecret).map((name) => ["--ro-bind", "/dev/null", join(workspace, name)]),
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

/** Files at the top of the workspace; below it the rules are what there is. */
function secretsIn(workspace: string, isSecret: SandboxOptions["isSecret"]): string[] {
  return readdirSync(workspace, { withFileTypes: true })
    .filter((entry) => entry.isFile() && isSecret(entry.name))
    .map(({ name }) => name);
}
