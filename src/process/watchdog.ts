import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";

export interface Watched {
  /** The name of the variable all processes of the run carry. */
  readonly mark: string;
  /** The run's temporary folder, which goes with it. */
  readonly folder: string;
}

/**
 * Starts a small process that outlives this one only to tidy up: when this process ends without calling the function
 * returned, by `kill -9` too, it kills whatever carries the mark and all that descends from it, and removes the folder.
 * It needs `sh`, `grep`, `awk` and `/proc`; where one is missing nothing is tidied up until the run is resumed.
 */
export function startWatchdog({ mark, folder }: Watched): () => void {
  const nobody = (): void => undefined;
  if (process.platform !== "linux") return nobody;
  try {
    return release(spawnDog(mark, folder));
  } catch {
    // A machine that has no room for it has none for a step either, which says so.
    return nobody;
  }
}

function spawnDog(mark: string, folder: string): ChildProcess {
  return spawn("/bin/sh", ["-c", script, "flow-watchdog", mark, folder], {
    cwd: "/",
    env: { PATH: `${process.env["PATH"] ?? ""}:/usr/bin:/bin`, LC_ALL: "C" },
    stdio: ["pipe", "ignore", "ignore"],
    // In a session of its own: what ends flow's group, a closed terminal for example, must not end it.
    detached: true,
  });
}

/** Keeps nothing waiting for it, and gives what sends it away. */
function release(dog: ChildProcess): () => void {
  // Undefined, against its type, of what could not start for want of descriptors.
  const stdin = dog.stdin ?? undefined;
  dog.on("error", () => stdin?.destroy()).unref();
  stdin?.on("error", () => undefined);
  if (stdin instanceof Socket) stdin.unref();
  return () => stdin?.end("over\n");
}

/**
 * Only flow holds the other end of its stdin: a line is a word of flow's, the end of it is flow's own end. It looks until
 * it finds nothing, for a process may fork between being seen and being killed.
 */
const script = `
trap '' HUP INT TERM
read -r word && exit
mark=$1
kin() {
  { grep -lz "^$mark=" /proc/[0-9]*/environ; echo --; cat /proc/[0-9]*/stat; } 2>/dev/null | awk '
    $0 == "--" { tree = 1; next }
    !tree { split($0, part, "/"); kin[part[3]] = 1; next }
    { pid = $1; sub(/^.*\\) /, ""); if ($1 != "Z") parent[pid] = $2 }
    END {
      do { more = 0; for (pid in parent) if (!(pid in kin) && parent[pid] in kin) more = kin[pid] = 1 } while (more)
      for (pid in kin) if (pid > 1) print pid
    }'
}
round=0
while pids=$(kin) && [ -n "$pids" ] && [ "$round" -lt 100 ]; do
  kill -9 $pids 2>/dev/null
  round=$((round + 1))
done
rm -rf -- "$2"
`;
