import type { Command } from "commander";
import { type RunFlags, refuse, runsDirOption } from "../open-run.ts";
import { paletteOf, print, say } from "../output.ts";
import { shortPath } from "../paths.ts";

export function defineRuns(program: Command): void {
  program
    .command("runs")
    .description("list the runs, the newest first")
    .option("--json", "print them as one JSON document", false)
    .addOption(runsDirOption())
    .action(listRuns);
}

async function listRuns({ json, runsDir }: RunFlags & { readonly json: boolean }, command: Command): Promise<void> {
  const { readRuns } = await import("../../flow/read-run.ts");
  const read = readRuns(runsDir === undefined ? {} : { runsDir });
  if (!read.ok) return refuse(read.error);
  const { folder, runs } = read.value;
  if (json) {
    print(`${JSON.stringify({ schemaVersion: 1, runs }, null, 2)}\n`);
    return;
  }
  if (runs.length === 0) {
    say(`flow: no runs yet in ${shortPath(folder)}; \`flow run FILE\` makes one\n`);
    return;
  }
  const { runsTable } = await import("../../render/runs-table.ts");
  print(runsTable(runs, await paletteOf(command, process.stdout)));
}
