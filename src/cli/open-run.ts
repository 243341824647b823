import type { Command } from "commander";
import { Option } from "commander";
import { exitCodes } from "../model/outcome.ts";
import type { RunView } from "../render/run-state.ts";
import { say } from "./output.ts";

export interface RunFlags {
  readonly runsDir?: string;
}

/** The argument and the option of every command that reads one run. */
export function readsRun(command: Command): Command {
  return command
    .argument("<run>", "`latest`, a run's id, the beginning of one, or the path of a run's folder or log")
    .addOption(runsDirOption());
}

export function runsDirOption(): Option {
  return new Option("--runs-dir <folder>", "where runs are kept (default .flow/runs)").env("FLOW_RUNS_DIR");
}

/** What is wrong with what somebody typed or with a log, in one line; exit code 2. */
export function refuse(message: string): undefined {
  say(`flow: ${message}\n`);
  process.exitCode = exitCodes.usage;
  return undefined;
}

/** Refuses a path that neither the run nor its plan has, and names the nearest ones; true when there is such a step. */
export async function refuseStep(view: RunView, path: string): Promise<boolean> {
  const [{ explain, nearestPaths }, { visible }] = await Promise.all([
    import("../render/why.ts"),
    import("../render/display.ts"),
  ]);
  if (explain(view, path) !== undefined) return true;
  const near = nearestPaths(view.tree, path);
  const hint = near.length === 0 ? "`flow show` lists them" : `did you mean ${near.join(", ")}?`;
  refuse(visible(`the run ${view.tree.start?.run ?? ""} has no step ${path}; ${hint}`));
  return false;
}

/** The folder of a run; undefined when there is none such, which has been said. */
export async function findRunFolder(run: string, { runsDir }: RunFlags): Promise<string | undefined> {
  const { locateRun } = await import("../flow/read-run.ts");
  const found = locateRun(run, runsDir === undefined ? {} : { runsDir });
  return found.ok ? found.value : refuse(found.error);
}

/**
 * A run folded into its tree, as far as its log can be read; what is wrong with the log is said. Undefined when there is
 * nothing to show.
 */
export async function openRun(
  run: string,
  flags: RunFlags,
  tell: (text: string) => void = say,
): Promise<RunView | undefined> {
  const folder = await findRunFolder(run, flags);
  if (folder === undefined) return undefined;
  const [{ isGoingOn, readRun }, { grow, newTree }] = await Promise.all([
    import("../flow/read-run.ts"),
    import("../render/run-tree.ts"),
  ]);
  const { visible } = await import("../render/display.ts");
  // Asked first: a run that ends while it is read has its end in the log.
  const alive = isGoingOn(folder);
  const tree = newTree();
  let unknown = 0;
  for await (const record of readRun(folder, { values: "causes" })) {
    if (record.kind === "event") grow(tree, record.line);
    else if (record.kind === "unknown") unknown++;
    else if (record.kind === "broken") refuse(visible(record.message));
    // The last line of a run that goes on may be half written at any time.
    else if (!alive) tell(`flow: ${visible(record.message)}\n`);
  }
  if (unknown > 0)
    tell(
      `flow: ${unknown} ${unknown === 1 ? "event" : "events"} of the log could not be understood (\`flow logs\` shows them)\n`,
    );
  return tree.start === undefined ? undefined : { tree, alive };
}
