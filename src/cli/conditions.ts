import { type Command, InvalidArgumentError, Option } from "commander";
import type { Conditions, Profile } from "../flow.ts";
import { defaultStepsAtOnce } from "../model/defaults.ts";
import { runsDirOption } from "./open-run.ts";
import type { Signals } from "./signals.ts";
import type { Watcher } from "./watch.ts";

/** What commands that run a workflow take beside. */
export interface RunningFlags {
  readonly approve?: readonly string[];
  readonly deny?: readonly string[];
  readonly form?: readonly string[];
  readonly comment?: string;
  readonly by?: string;
  readonly parallel?: number;
  readonly cache: boolean;
}

/** Adds the options of {@link RunningFlags}; `which` are the approvals that are answered. */
export function takesAnswers(command: Command, which: string): Command {
  return command
    .option("--approve <path>", `say yes to an approval ${which}; repeat it for more`, another)
    .option("--deny <path>", `say no to an approval ${which}; repeat it for more`, another)
    .option("--form <field=value>", "a field of the form of --approve; PATH.field=value for one of several", another)
    .option("--comment <text>", "what goes with --approve and --deny")
    .option("--by <name>", "who answers (default: as CI, git or the system knows you)");
}

/** Adds what is left of {@link RunningFlags}. */
export function takesPace(command: Command): Command {
  return command
    .option(
      "--parallel <n>",
      `steps at once where the workflow does not say (default ${defaultStepsAtOnce})`,
      parseParallel,
    )
    .option("--no-cache", "run steps with `cache` whatever is kept; what they give is kept in its place");
}

/** The part of a request that {@link RunningFlags} say. */
export function runningOf({
  approve,
  deny,
  form,
  comment,
  by,
  parallel,
  cache,
}: RunningFlags): Pick<Conditions, "approve" | "deny" | "form" | "comment" | "by" | "parallel" | "cache"> {
  return {
    ...(approve && { approve }),
    ...(deny && { deny }),
    ...(form && { form }),
    ...(comment !== undefined && { comment }),
    ...(by !== undefined && { by }),
    ...(parallel !== undefined && { parallel }),
    cache,
  };
}

function parseParallel(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > 10_000)
    throw new InvalidArgumentError("it is a whole number from 1 to 10000.");
  return value;
}

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
