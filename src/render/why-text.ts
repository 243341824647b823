import type { Again } from "../model/event.ts";
import type { Failure, SeenValue, SkipReason } from "../model/outcome.ts";
import { unreachable } from "../model/result.ts";
import { cut, pad, wrap } from "./display.ts";
import { codeFrame } from "./frame.ts";
import type { Palette } from "./palette.ts";
import { approvalText, failureText } from "./step-text.ts";
import { teamRemarks } from "./team.ts";
import { dateText, undoneText, waitText } from "./run-text.ts";
import type { Explanation, Inside, Source } from "./why.ts";
import { duration, oneLine, tidy } from "./words.ts";

export interface WhyOptions {
  readonly palette: Palette;
  /** The text of a workflow's file as it is now, and whether it has changed since the run began. */
  readonly fileNow: (file: string) => { readonly text: string; readonly hasChanged: boolean } | undefined;
}

const columns = 100;

/** An explanation in plain sentences. Ends in a newline. */
export function whyText(why: Explanation, { palette, fileNow }: WhyOptions): string {
  const took = why.duration === undefined ? "" : ` ${duration(why.duration)}`;
  const sections = [
    [
      palette.bold(`${oneLine(why.step)}: ${why.state}`) +
        palette.dim(`${took}${why.kind === undefined ? "" : ` (${why.kind})`}`),
    ],
    became(why),
    asked(why),
    tries(why),
    failed(why, { palette, fileNow }),
    loops(why),
    afterwards(why),
  ];
  const text = sections.filter((lines) => lines.length > 0).map((lines) => lines.join("\n"));
  return `${text.join("\n\n")}\n`;
}

/** Why it ran, did not, or not yet. */
function became(why: Explanation): string[] {
  const { skipped, sources, inside, state } = why;
  const lines = inside === undefined ? [] : [`It is inside ${oneLine(inside.step)} (${inside.state}).`];
  if (skipped !== undefined) return [...lines, ...skipLines(skipped), ...causeLines(why, "That goes back to")];
  const waits = state === "pending" || state === "ready" || state === "not started";
  if (state === "ready") lines.push("It is ready and waits for a free slot.");
  else if (waits) lines.push(notStarted(why));
  if (sources.length > 0)
    lines.push(waits ? "It waits for:" : "It waited for:", ...table(sources.map((source) => sourceRow(why, source))));
  lines.push(...conditionLines(why, waits));
  return lines;
}

function sourceRow({ condition }: Explanation, source: Source): string[] {
  const { step, state, needed, forgiven, if: edge, origin } = source;
  // A condition with a status function decides by itself what the sources' ends mean.
  const role = !needed ? "only comes first" : condition?.hasStatus === true ? "comes first" : "needed";
  const more = [
    edge === undefined ? "" : `, if ${oneLine(edge)}`,
    forgiven ? ", and forgiven: continue-on-error" : "",
    origin === "reference" ? " (its value is used)" : "",
  ];
  return [oneLine(step), state, role + more.join("")];
}

function conditionLines({ condition, sources, join, inside, step }: Explanation, waits: boolean): string[] {
  if (condition !== undefined) {
    const also = condition.hasStatus ? "" : ", and what it needs to have succeeded";
    return wrapped(`It runs only if \`${condition.text}\` holds${also}${waits ? "." : "; it did."}`);
  }
  if (inside !== undefined && !step.includes("/", inside.step.length)) return [];
  if (!sources.some(({ needed }) => needed)) return [waits ? "It needs nothing." : "It needs nothing, so it ran."];
  const what = join === "any" ? "one of those it needs has" : "everything it needs has";
  return [`It has no condition of its own: it runs when ${what} succeeded.`];
}

function skipLines(reason: SkipReason): string[] {
  switch (reason.kind) {
    case "condition":
      return [
        ...wrapped(`It was skipped because its condition was false: \`${reason.condition}\``),
        ...seen(reason.saw),
      ];
    case "edge":
      return [
        ...wrapped(
          `It was skipped because on the edge from ${reason.step} the condition was false: \`${reason.condition}\``,
        ),
        ...seen(reason.saw),
      ];
    case "needs":
      return wrapped(
        `It was skipped because it needs ${reason.step}: ${reason.message || `that ended ${reason.outcome}`}.`,
      );
    case "empty":
      return ["It counts as skipped because every step in it was."];
    case "cancelled":
      return ["It was skipped because the run, or what contains it, was cancelled."];
    default:
      return unreachable(reason);
  }
}

/** The values a condition saw, one a line. */
function seen(values: readonly SeenValue[]): string[] {
  return table(
    values.map(({ expression, value }) => [
      oneLine(expression),
      value === undefined ? "no value" : oneLine(JSON.stringify(value).slice(0, 400)),
    ]),
  );
}

function causeLines({ cause }: Explanation, words: string): string[] {
  if (cause === undefined) return [];
  return wrapped(`${words} ${cause.step}${cause.error === undefined ? "" : `: ${failureText(cause.error)}`}`);
}

const againText: { readonly [why in Again]: string } = {
  from: "somebody asked for it (--from)",
  uncertain: "it was running when the run died",
  waiting: "it had waited for an answer",
  undone: "it had been undone",
  failed: "it had failed",
  cancelled: "it had been cancelled",
  definition: "its definition has changed",
  given: "the values it is given have changed",
  needs: "a step it needs ran again",
};

/** Which run its outputs come from, or what has changed since the last one whose outputs were kept. */
function cacheLines({ cache }: Explanation): string[] {
  if (cache === undefined) return [];
  const when = (stored: string): string => dateText(Date.parse(stored));
  if ("hit" in cache) {
    const { run, stored } = cache.hit;
    return wrapped(
      `It was not run: run ${run} executed the same, and its outputs, kept ${when(stored)} UTC, are reused.`,
    );
  }
  const { why, changed = [], than } = cache.miss;
  if (why === "refresh") return ["Its outputs were not looked for in the cache: --no-cache."];
  if (why === "damaged") return ["It was run, because its outputs in the cache cannot be read."];
  if (than === undefined) return ["It was run, because no outputs of it are in the cache."];
  const since = `what run ${than.run} kept ${when(than.stored)} UTC`;
  if (changed.length === 0) return wrapped(`It was run, because the cache does not hold ${since} any more.`);
  return [
    ...wrapped(`It was run, because this has changed against ${since}:`),
    ...changed.map((name) => `  ${cut(oneLine(name), columns - 2)}`),
  ];
}

function notStarted({ state, sources }: Explanation): string {
  if (state === "pending") return "It has not started yet.";
  const asks = sources.find((source) => source.state === "waiting");
  if (asks !== undefined) return `It has not started: ${oneLine(asks.step)} waits for an answer.`;
  return "It never started: the run ended or was interrupted before.";
}

/** What a person was asked, and what they said. */
function asked({ asked: request, answer }: Explanation): string[] {
  if (request === undefined) return [];
  const words = answer === undefined ? "It waits for an answer to" : "It asked";
  const lines = wrapped(`${words}: ${oneLine(request.question)}`);
  if (answer !== undefined) {
    return [...lines, ...wrapped(`It was ${approvalText({ type: "approval.given", step: request.step, ...answer })}`)];
  }
  if (request.deadline !== undefined) lines.push(`  until ${oneLine(request.deadline)}`);
  const form = request.form === undefined ? "" : " --form FIELD=VALUE";
  lines.push(`  \`flow resume RUN --approve '${oneLine(request.step)}'${form}\` or \`--deny\` answers it.`);
  return lines;
}

function tries(why: Explanation): string[] {
  const { attempts, agents, again, reused } = why;
  const lines = cacheLines(why);
  if (reused !== undefined)
    lines.push(`It was not run again by the resume: its end in line ${reused} of the log still holds.`);
  else if (again !== undefined) lines.push(`It was run again by the resume, because ${againText[again]}.`);
  if (attempts.length > 1) lines.push(`It took ${attempts.length} attempts:`);
  for (const { attempt, outcome, error, duration: took, delay } of attempts.length > 1 ? attempts : []) {
    const end =
      outcome === undefined
        ? "has no end in the log"
        : outcome === "success"
          ? "ok"
          : outcome === "failure"
            ? "failed"
            : outcome;
    const time = took === undefined ? "" : ` after ${duration(took)}`;
    const next = delay === undefined ? "" : `; the next began ${waitText(delay)} later`;
    lines.push(
      ...wrapped(`${attempt}. ${end}${time}${error === undefined ? "" : `: ${failureText(error)}`}${next}`, "  "),
    );
  }
  for (const { agent, parent, name, model, outcome, reason, turns, team } of agents) {
    const who = parent === null ? `Agent ${name}` : `Sub-agent ${name} ${agent}`;
    const why = reason === "" ? "" : `: ${cut(oneLine(reason), 300)}`;
    lines.push(
      ...wrapped(
        `${who} (${model}): ${outcome ?? "has no end in the log"}, ${turns} ${turns === 1 ? "turn" : "turns"}${why}`,
      ),
    );
    if (team) lines.push(...teamRemarks(team).flatMap((line) => wrapped(line, "  ")));
  }
  return lines;
}

function failed(why: Explanation, { palette, fileNow }: WhyOptions): string[] {
  const { error, cause, wrote, forgiven, skipped } = why;
  if (error === undefined) return [];
  const lines =
    cause === undefined || skipped !== undefined
      ? wrapped(`It failed: ${failureText(withoutPlace(error))}`)
      : causeLines(why, "It failed because of");
  if (cause === undefined)
    lines.push(...placeLines(error, { palette, fileNow }), ...wrote.map((line) => cut(`  | ${tidy(line)}`, columns)));
  if (forgiven) lines.push("The run went on all the same: `continue-on-error`.");
  return lines;
}

function withoutPlace({ kind, message }: Failure): Failure {
  return { kind, message };
}

/** The place with its line, if the file still has it. */
function placeLines({ position }: Failure, { palette, fileNow }: WhyOptions): string[] {
  if (position === undefined) return [];
  const { file, line, column, endLine, endColumn } = position;
  // There is no file that anybody could open.
  if (file === "-") return [];
  const now = fileNow(file);
  const place = `  ${oneLine(file)}:${line}:${column}`;
  if (now === undefined) return [`${place} (the file cannot be read any more)`];
  const lines = now.text.split(/\r?\n/);
  if (lines[line - 1] === undefined) return [`${place} (the file has changed and is shorter now)`];
  const to = endLine === line ? endColumn - 1 : (lines[line - 1]?.length ?? column);
  const frame = codeFrame({
    lines,
    line: line - 1,
    from: column - 1,
    to,
    around: 0,
    mark: palette.red,
    dim: palette.dim,
  });
  return [
    now.hasChanged ? `${place} (the file has changed since; this is its line now)` : place,
    ...frame.map((it) => `  ${it}`),
  ];
}

function loops({ items, iterations }: Explanation): string[] {
  const lines: string[] = [];
  if (items !== undefined) lines.push(`Its items: ${counts(items)}.`, ...failedLines(items));
  if (iterations !== undefined) {
    const until = iterations.until === undefined ? "" : `, until \`${oneLine(iterations.until)}\``;
    lines.push(...wrapped(`Its iterations: ${counts(iterations)}${until}.`), ...failedLines(iterations));
  }
  return lines;
}

function counts(inside: Inside): string {
  return Object.entries(inside.counts)
    .map(([state, number]) => `${number} ${state}`)
    .join(", ");
}

function failedLines({ failed: paths }: Inside): string[] {
  return paths.length === 0 ? [] : wrapped(`failed: ${paths.join(", ")}`, "  ");
}

function afterwards({ undone }: Explanation): string[] {
  if (undone === undefined) return [];
  return wrapped(
    `What it did was taken back, because the scope around it failed or was cancelled (${undoneText(undone)}).`,
  );
}

function table(rows: readonly (readonly string[])[]): string[] {
  const width = rows.reduce((widest, [first = ""]) => Math.max(widest, Math.min(first.length, 40)), 0);
  return rows.map(([first = "", ...rest]) =>
    cut(
      `  ${pad(cut(first, 40), width)}  ${rest.map((cell, index) => (index === 0 && rest.length > 1 ? pad(cell, 11) : cell)).join("  ")}`,
      columns,
    ),
  );
}

function wrapped(text: string, indent = ""): string[] {
  return wrap(oneLine(text), columns - indent.length, 6).map((line) => indent + line);
}
