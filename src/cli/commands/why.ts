import type { Command } from "commander";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { RunTree } from "../../render/run-tree.ts";
import type { WhyOptions } from "../../render/why-text.ts";
import { openRun, readsRun, refuseStep, type RunFlags } from "../open-run.ts";
import { paletteOf, print } from "../output.ts";

export function defineWhy(program: Command): void {
  readsRun(program.command("why"))
    .description("say why a step of a run ran, was skipped, tried again, failed, reused or undone")
    .argument("<path>", "the step: `build`, `group/build`, an item `each[2]`, an iteration `loop#3`")
    .option("--json", "print it as one JSON document", false)
    .action(why);
}

async function why(
  run: string,
  path: string,
  flags: RunFlags & { readonly json: boolean },
  command: Command,
): Promise<void> {
  const view = await openRun(run, flags);
  if (view === undefined) return;
  const { explain } = await import("../../render/why.ts");
  const explanation = explain(view, path);
  if (explanation === undefined) {
    await refuseStep(view, path);
    return;
  }
  if (flags.json) {
    const { whyJson } = await import("../../render/run-json.ts");
    print(`${JSON.stringify(whyJson(view.tree.start?.run, explanation), null, 2)}\n`);
    return;
  }
  const { whyText } = await import("../../render/why-text.ts");
  print(
    whyText(explanation, {
      palette: await paletteOf(command, process.stdout),
      fileNow: (file) => fileNow(view.tree, file),
    }),
  );
}

/** A file of the workflow as it is now. Only files that the plan names are read. */
function fileNow({ start, plan }: RunTree, file: string): ReturnType<WhyOptions["fileNow"]> {
  const known = plan?.files.find((it) => it.path === file);
  if (start === undefined || known === undefined) return undefined;
  try {
    const bytes = readFileSync(resolve(start.workspace, file));
    return { text: bytes.toString(), hasChanged: sha256(bytes) !== known.sha256 };
  } catch {
    return undefined;
  }
}

/** Loaded when it is needed: every command reads this file, and the module costs as much as a small workflow's check. */
function sha256(bytes: Uint8Array): string {
  return process.getBuiltinModule("node:crypto").createHash("sha256").update(bytes).digest("hex");
}
