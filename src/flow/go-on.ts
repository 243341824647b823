import { readGivenInputs } from "../compile/given-inputs.ts";
import { exitCodes } from "../model/outcome.ts";
import { allowedPlan, check } from "./check.ts";
import { equip } from "./equip.ts";
import { locateRun } from "./read-run.ts";
import {
  type Conditions,
  type Prepared,
  type Refusal,
  type ResumeRequest,
  type ResumeResult,
  unavailable,
  usage,
  type Watched,
} from "./requests.ts";
import { openPast, type PastRun } from "./past-run.ts";
import { finishedEnd, inheritPlan, isUnchanged, isWhole, readWishes, resumeRun } from "./resume.ts";
import { answersOf } from "./typed-answers.ts";

interface GoOnRequest extends ResumeRequest, Watched {
  /** By the plan in the log, where it is whole: nothing new is to start, and what was done is to be known again. */
  readonly asItWas?: boolean;
}

/** Goes on with a run from its log, which is locked meanwhile. */
export async function goOnWith(request: GoOnRequest): Promise<ResumeResult> {
  const found = locateRun(request.run, request);
  if (!found.ok) return { started: false, refusal: usage(found.error) };
  const past = await openPast(found.value);
  if (!past.ok) {
    const { kind, message } = past.error;
    return { started: false, refusal: kind === "usage" ? usage(message) : unavailable(message) };
  }
  try {
    return await goOn(request, past.value);
  } finally {
    past.value.close();
  }
}

async function goOn(request: GoOnRequest, past: PastRun): Promise<ResumeResult> {
  const source = inheritPlan(past, request);
  const { file } = source;
  const stands = request.asItWas ? isWhole : isUnchanged;
  const isKnown = file === undefined || (request.workflow === undefined && stands(past));
  const prepared = isKnown ? preparedFromLog(past) : await prepareAgain({ file, env: request.env }, past);
  if ("kind" in prepared) return { started: false, refusal: prepared };
  const conditions = { ...request, ...inheritReplies(request, past) };
  const { cwd, workspace } = past;
  const place = { cwd, workspace, env: request.env ?? process.env };
  const allowed = await allowedPlan(prepared.plan, conditions, place);
  if (!allowed.ok) return { started: false, refusal: allowed.error };
  const plan = allowed.value;
  const answers = await answersOf(request, past.cwd, (read, given) => read.readAnswers(past, given));
  if (!answers.ok) return { started: false, refusal: usage(answers.error) };
  const wishes = { from: request.from, set: request.set ?? [] };
  const set = await readWishes(past, plan, wishes);
  if (!set.ok) return { started: false, refusal: usage(set.error) };
  const finished = finishedEnd(past);
  if (finished && plan.digest === past.digest && wishes.from === undefined && set.value.length === 0)
    return { started: false, finished };
  const stranger = request.workflow === undefined ? undefined : source.stranger(plan);
  if (stranger !== undefined) return { started: false, refusal: usage(stranger) };
  const options = await equip(
    conditions,
    { ...prepared, plan },
    { cwd, workspace, answers: answers.value, isResumed: true },
  );
  if ("kind" in options) return { started: false, refusal: options };
  const { from } = wishes;
  const end = await resumeRun({ past, options, from, set: set.value, notes: source.notes });
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: unavailable(end.error) };
}

/** Who answers for the models is as it was, unless somebody says otherwise. */
function inheritReplies(given: ResumeRequest, past: PastRun): Pick<Conditions, "script" | "replay"> {
  if (given.script !== undefined || given.replay !== undefined) return {};
  if (past.replay !== undefined) return { replay: past.replay };
  return past.script === undefined ? {} : { script: past.script };
}

/** The workflow's file as it is now, with the inputs of the log as far as it still takes them. */
async function prepareAgain(
  { file, env }: { readonly file: string; readonly env: Conditions["env"] },
  { cwd, inputs }: PastRun,
): Promise<Prepared | Refusal> {
  const { plan, inputsAt, diagnostics, sources } = await check({ file, cwd, ...(env && { env }) });
  if (!plan || !inputsAt) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
  const declared = plan.workflows[plan.root]?.inputs ?? [];
  const kept = declared.filter(({ name }) => Object.hasOwn(inputs, name));
  const values = Object.fromEntries(kept.map(({ name }) => [name, inputs[name] ?? null]));
  const fitted = await readGivenInputs(declared, { texts: [], values }, inputsAt);
  if (!fitted.ok) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics: fitted.error, sources };
  return { plan, inputs: fitted.value, warnings: diagnostics, sources };
}

function preparedFromLog({ plan, inputs }: PastRun): Prepared {
  return { plan, inputs, warnings: [], sources: new Map() };
}
