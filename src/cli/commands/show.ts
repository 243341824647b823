import type { Command } from "commander";
import { openRun, readsRun, type RunFlags } from "../open-run.ts";
import { paletteOf, print } from "../output.ts";

export function defineShow(program: Command): void {
  readsRun(program.command("show"))
    .description("show a run as a tree of its steps, items, iterations, attempts and agents")
    .option("--json", "print it as one JSON document", false)
    .action(show);
}

async function show(run: string, flags: RunFlags & { readonly json: boolean }, command: Command): Promise<void> {
  const view = await openRun(run, flags);
  if (view === undefined) return;
  if (flags.json) {
    const { runJson } = await import("../../render/run-json.ts");
    print(`${JSON.stringify(runJson(view), null, 2)}\n`);
    return;
  }
  const { runText } = await import("../../render/run-text.ts");
  print(runText(view, await paletteOf(command, process.stdout)));
}
