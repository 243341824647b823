import type { Command } from "commander";
import { readsRun, refuse, type RunFlags } from "../open-run.ts";
import { print, say } from "../output.ts";
import { onSignals } from "../signals.ts";

interface CancelFlags extends RunFlags {
  readonly agent?: string;
  readonly alone: boolean;
  readonly now: boolean;
}

export function defineCancel(program: Command): void {
  readsRun(program.command("cancel"))
    .description("cancel a run that goes on in another process, waits or was interrupted; or one of its agents")
    .option("--agent <id>", "only this agent run, such as `build@1.2`, with all that it spawned")
    .option("--alone", "with --agent: what it spawned goes on", false)
    .option("--now", "end everything at once: no `undo`, no `always()` step", false)
    .action(cancel);
}

async function cancel(run: string, flags: CancelFlags, command: Command): Promise<void> {
  const { agent, alone, now, runsDir } = flags;
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
    onHere: () => onSignals().kill,
    ...(agent !== undefined && { agent }),
    ...(runsDir !== undefined && { runsDir }),
  });
  if (!result.ok) {
    const { error } = result;
    process.exitCode = error.exitCode;
    if (error.kind !== "invalid") return say(`flow: ${visible(error.message)}\n`);
    const { sayDiagnostics } = await import("../watch.ts");
    return sayDiagnostics(error.diagnostics, error.sources, command);
  }
  const { outcome, notUndone } = result.value;
  // Whoever wants it all to end at once has asked for that.
  for (const [step, why] of now ? [] : notUndone) say(`flow: ${visible(`${step} was not taken back: ${why}`)}\n`);
  const what = `${agent === undefined ? "" : `${agent} of `}${result.value.run}`;
  print(outcome === "cancelled" ? `cancelled ${what}\n` : `${what} had come to an end of its own: ${outcome}\n`);
}
