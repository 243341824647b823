import type { HookMoment, HookWord } from "../model/hooks.ts";
import type { JsonObject } from "../model/json.ts";
import type { StreamFilter } from "../process/capture.ts";
import type { Marks } from "../process/marks.ts";
import { type ProcessResult, runProcess } from "../process/run.ts";
import { isGarbled, readAnswer, together } from "./answer.ts";
import { type Hook, matches } from "./read.ts";

export interface HookRunner {
  readonly marks: Marks;
  /** As an agent's shell has it: no providers' keys, no secrets. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where the commands run: the project. */
  readonly workspace: string;
  readonly filter?: () => StreamFilter;
  /** Told of each command that ran. */
  readonly onRun: (run: HookRun) => void;
}

/** How one command ended. */
export interface HookRun {
  readonly hook: Hook;
  /** `broken`: it could not be asked. `failed`: another exit code than 0 and 2, which blocks nothing. */
  readonly status: "passed" | "blocked" | "failed" | "broken";
  readonly text: string;
  /** Milliseconds. */
  readonly duration: number;
}

/** Bytes of output of one command. */
const mostOutput = 256 * 1024;
/** What happens only if the hook lets it. */
const guarded: ReadonlySet<string> = new Set([
  "PreToolUse",
  "PermissionRequest",
  "StepStart",
  "Stop",
  "SubagentStop",
  "TaskCompleted",
]);

/** What has ended is told, however it ended. */
const endings: ReadonlySet<string> = new Set(["StepEnd", "SessionEnd"]);
/** Milliseconds for a command that is told of an end that was a cancel. */
const timeAtEnd = 5000;

/** Runs the commands of a moment one after the other, each on what the one before made of it. */
export async function runHooks(
  hooks: readonly Hook[],
  { event, subject, fields }: HookMoment,
  { runner, signal: around }: { readonly runner: HookRunner; readonly signal: AbortSignal },
): Promise<HookWord> {
  const signal = around.aborted && endings.has(event) ? AbortSignal.timeout(timeAtEnd) : around;
  const words: HookWord[] = [];
  let told: JsonObject = { ...fields, hook_event_name: event, cwd: runner.workspace };
  for (const hook of hooks.filter((it) => it.event === event && matches(it.matcher, subject))) {
    if (signal.aborted) {
      words.push(unasked(hook, "the run was cancelled"));
      break;
    }
    const word = await runOne(hook, told, { runner, signal });
    words.push(hook.ofAgent && word.decision === "allow" ? withoutYes(word) : word);
    if (word.input) told = { ...told, tool_input: word.input };
    if (word.block !== undefined || word.stop !== undefined) break;
  }
  return together(words);
}

function withoutYes({ block, stop, input, texts }: HookWord): HookWord {
  return { ...(block !== undefined && { block }), ...(stop !== undefined && { stop }), ...(input && { input }), texts };
}

async function runOne(
  hook: Hook,
  told: JsonObject,
  { runner, signal }: { readonly runner: HookRunner; readonly signal: AbortSignal },
): Promise<HookWord> {
  const late = AbortSignal.timeout(hook.timeout);
  const { marks, environment, workspace, filter } = runner;
  const places = { PWD: workspace, CLAUDE_PROJECT_DIR: workspace, FLOW_PROJECT_DIR: workspace };
  const begun = performance.now();
  const ran = await runProcess({
    argv: ["bash", "--noprofile", "--norc", "-c", hook.command],
    cwd: workspace,
    env: { ...environment, ...places },
    stdin: `${JSON.stringify(told)}\n`,
    signal: AbortSignal.any([signal, late]),
    marks,
    maxBytes: mostOutput,
    ...(filter && { filter }),
  });
  const duration = Math.round(performance.now() - begun);
  const said = { code: codeOf(ran), stdout: textOf(ran, "stdout"), stderr: textOf(ran, "stderr") };
  const broken = whyBroken(ran, hook, late.aborted) ?? (isGarbled(said) ? "what it printed is no JSON" : undefined);
  if (broken !== undefined) {
    runner.onRun({ hook, status: "broken", text: broken, duration });
    return unasked(hook, broken);
  }
  const word = readAnswer(hook.event, said);
  const status = word.block !== undefined ? "blocked" : said.code === 0 ? "passed" : "failed";
  const text = word.block ?? [said.stderr.trim(), said.stdout.trim()].find((it) => it !== "") ?? "";
  runner.onRun({ hook, status, text, duration });
  return word;
}

function unasked({ event, command, onError }: Hook, why: string): HookWord {
  const isGuard = guarded.has(event) && onError === "block";
  return isGuard ? { block: `the hook \`${command}\` could not be asked: ${why}`, texts: [] } : { texts: [] };
}

/** A guard that did not get to speak has not said yes: it cannot start, is not there, is ended or takes too long. */
function whyBroken(ran: ProcessResult, hook: Hook, isLate: boolean): string | undefined {
  switch (ran.kind) {
    case "exited":
      if (ran.code === 127) return "there is no such command (exit code 127)";
      return ran.code === 126 ? "it cannot be executed (exit code 126)" : undefined;
    case "signalled":
      return `it was ended by ${ran.signal}`;
    case "aborted":
      return isLate ? `it took longer than ${hook.timeout / 1000} s` : "the run was cancelled";
    default:
      return "it could not be started";
  }
}

function codeOf(ran: ProcessResult): number {
  return ran.kind === "exited" ? ran.code : 1;
}

function textOf(ran: ProcessResult, stream: "stdout" | "stderr"): string {
  return "stdout" in ran ? ran[stream].text : "";
}
