import { type Command, Option } from "commander";
import type { Conditions, Profile } from "../flow.ts";
import { runsDirOption } from "./open-run.ts";
import type { Signals } from "./signals.ts";
import type { Watcher } from "./watch.ts";

/** What every command that runs something takes. */
export interface ConditionFlags {
  readonly script?: string;
  readonly replay?: string;
  readonly profile?: Profile;
  readonly allow?: readonly string[];
  readonly runsDir?: string;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
}

/** Adds the options of {@link ConditionFlags} to a command. */
export function takesConditions(command: Command, script = "replies from a file instead of any model"): Command {
  return command
    .option("--script <file>", script)
    .option("--replay <run>", "replies from a run's log instead of any model: a run, or a log file")
    .addOption(profileOption())
    .option("--allow <rule>", "let agents do this, such as 'Bash(git push)'; repeat it for more", another)
    .addOption(runsDirOption())
    .option("--log-deltas", "log the pieces of streamed messages too", false)
    .option("--fsync", "wait for the disk after every step", false);
}

/** What the flags and the terminal say of a run. */
export function conditionsOf(flags: ConditionFlags, watch: Watcher, signals: Signals): Conditions {
  return {
    ...(flags.script !== undefined && { script: flags.script }),
    ...(flags.replay !== undefined && { replay: flags.replay }),
    ...(flags.profile && { profile: flags.profile }),
    ...(flags.allow && { allow: flags.allow }),
    ...(flags.runsDir !== undefined && { runsDir: flags.runsDir }),
    logDeltas: flags.logDeltas,
    fsync: flags.fsync,
    ...(watch.onEvent && { onEvent: watch.onEvent }),
    ...(watch.asker && { asker: watch.asker }),
    signal: signals.cancel,
    kill: signals.kill,
  };
}

export function profileOption(): Option {
  const names: readonly Profile[] = ["read", "edit", "full"];
  return new Option("--profile <name>", "what agents may do where no rule says otherwise").choices(names);
}

/** One value of an option that may be repeated. */
export function another(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
