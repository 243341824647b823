import type { Command } from "commander";
import { readsRun, refuse, type RunFlags } from "../open-run.ts";
import { print, say } from "../output.ts";

interface CancelFlags extends RunFlags {
  readonly agent?: string;
  readonly alone: boolean;
  readonly now: boolean;
}

export function defineCancel(program: Command): void {
  readsRun(program.command("cancel"))
    .description("cancel a run that goes on in another process, or one of its agents")
    .option("--agent <id>", "only this agent run, such as `build@1.2`, with all that it spawned")
    .option("--alone", "with --agent: what it spawned goes on", false)
    .option("--now", "end everything at once: no `undo`, no `always()` step", false)
    .action(cancel);
}

async function cancel(run: string, { agent, alone, now, runsDir }: CancelFlags): Promise<void> {
  if (alone && agent === undefined) return refuse("--alone goes with --agent");
  if (now && agent !== undefined) return refuse("--now is for a whole run, not for --agent");
  const [{ cancelRun }, { visible }] = await Promise.all([
    import("../../flow/cancel.ts"),
    import("../../render/display.ts"),
  ]);
  const result = await cancelRun({
    run,
    children: !alone,
    now,
    ...(agent !== undefined && { agent }),
    ...(runsDir !== undefined && { runsDir }),
  });
  if (!result.ok) {
    say(`flow: ${visible(result.error.message)}\n`);
    process.exitCode = result.error.exitCode;
    return;
  }
  const { outcome } = result.value;
  const what = `${agent === undefined ? "" : `${agent} of `}${result.value.run}`;
  print(outcome === "cancelled" ? `cancelled ${what}\n` : `${what} had come to an end of its own: ${outcome}\n`);
}
