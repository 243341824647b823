import { join } from "node:path";
import type { Command } from "commander";
import type { ApprovalRequest } from "../../model/event.ts";
import type { Palette } from "../../render/palette.ts";
import type { RunView } from "../../render/run-state.ts";
import { findRunFolder, openRun, readsRun, type RunFlags } from "../open-run.ts";
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
  const palette = await paletteOf(command, process.stdout);
  print(runText(view, palette));
  const open = view.alive ? [] : openRequests(view);
  if (open.length > 0) print(await answersText({ run, flags, open, palette }));
}

/** What was asked and nobody has answered. */
function openRequests({ tree }: RunView): ApprovalRequest[] {
  return [...tree.nodes.values()].flatMap(({ status, asked, answer }) =>
    status === "waiting" && asked !== undefined && answer === undefined ? [asked] : [],
  );
}

interface Asked {
  readonly run: string;
  readonly flags: RunFlags;
  readonly open: readonly ApprovalRequest[];
  readonly palette: Palette;
}

async function answersText({ run, flags, open, palette }: Asked): Promise<string> {
  const [folder, { approvalsText }, { answerCommands }, { shortPath }, { fieldsOf }] = await Promise.all([
    findRunFolder(run, flags),
    import("../../render/approvals.ts"),
    import("../next.ts"),
    import("../paths.ts"),
    import("../../flow/form-fields.ts"),
  ]);
  const log = shortPath(join(folder ?? "", "log.jsonl"));
  const answerable = open.map((request) => ({ ...request, fields: fieldsOf(request.form) }));
  return approvalsText(
    answerable.map((request) => ({ ...request, ...answerCommands(request, log) })),
    palette,
  );
}
