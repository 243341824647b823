import type { ApprovalAnswer, ApprovalRequest } from "../model/event.ts";
import { type Json, own } from "../model/json.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Asker, Attempt, Clock, Emit, Execute, OpenApproval } from "../model/ports.ts";
import { ok } from "../model/result.ts";
import type { Approvals } from "./approvals.ts";
import { fieldsOf, fitForm, readField } from "./form.ts";

export interface ApproveOptions {
  /** Absent when nobody can be asked while the run goes on. */
  readonly asker?: Asker;
  /** What the log says so far; nothing in a new run but answers given up front. */
  readonly approvals: Approvals;
  /** Who answers here. */
  readonly by: () => string;
  /** Hides what nobody may see in a question. */
  readonly mask: (text: string) => string;
  readonly emit: Emit;
  readonly clock: Clock;
  /** Aborted once the run has ended: nothing may wait any longer. */
  readonly over: AbortSignal;
}

export interface Approve {
  readonly execute: Execute;
  /** What waits for an answer now, in the order it was asked. */
  readonly waiting: () => readonly OpenApproval[];
}

/** Characters of a question; it has to fit in a line of the log and on a screen. */
const longestQuestion = 16_384;

/** The kind `approve`: a person says yes or no, here and now or at a resume. */
export function createApprove(options: ApproveOptions): Approve {
  const open = new Map<string, ApprovalRequest>();
  const execute = async (attempt: Attempt): Promise<StepResult> => {
    const { path, signal, inputs } = attempt;
    if (signal.aborted) return { outcome: "cancelled" };
    const question = textOf(own(inputs, "approve") ?? "");
    if (question.length > longestQuestion) return failed("input", tooLong(question.length));
    const asked = requestOf(options, attempt, question);
    const early = earlyAnswer(options, attempt);
    const dropped = options.approvals.answerAt(path) !== undefined && early === undefined && { dropped: true as const };
    if (!asked.isOld) options.emit({ type: "approval.requested", ...asked.request, ...dropped });
    if (early !== undefined) return conclude(options, path, early);
    if (attempt.wait === undefined && options.asker === undefined) return failed("unavailable", nobody);
    if (isLate(asked.request, options.clock)) return failed("timeout", late(asked.request));
    open.set(path, asked.request);
    const answer = await answerOf(options, attempt, asked.request);
    open.delete(path);
    if (answer === undefined) return { outcome: "cancelled" };
    if (typeof answer === "object" && "misfit" in answer) return failed("input", answer.misfit);
    return answer === "late" ? failed("timeout", late(asked.request)) : conclude(options, path, answer);
  };
  return {
    execute,
    waiting: () => [...open.values()].map((request) => ({ ...request, fields: fieldsOf(request.form) })),
  };
}

const nobody = "nobody can be asked inside an `undo`: what takes an effect back cannot wait";

function tooLong(length: number): string {
  return `a question of ${length} characters is too long (at most ${longestQuestion}): name what is to be approved, and put the rest into a file`;
}

function isLate({ deadline }: ApprovalRequest, clock: Clock): boolean {
  return deadline !== undefined && Date.parse(deadline) <= clock.now();
}

function late({ deadline = "" }: ApprovalRequest): string {
  return `nobody answered until ${deadline}, when its timeout was over`;
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface Asked {
  readonly request: ApprovalRequest;
  /** It was asked before the resume: its time has been running since. */
  readonly isOld: boolean;
}

function requestOf({ approvals, mask, clock }: ApproveOptions, attempt: Attempt, question: string): Asked {
  const { step, path, timeout, resumes } = attempt;
  const old = resumes === true ? approvals.openAt(path) : undefined;
  if (old !== undefined) return { request: old, isOld: true };
  const form = step.body.kind === "approve" ? step.body.form?.json : undefined;
  const deadline = timeout === undefined ? undefined : new Date(clock.now() + timeout).toISOString();
  const more = { ...(form !== undefined && { form }), ...(deadline !== undefined && { deadline }) };
  return { request: { step: path, question: mask(question), ...more }, isOld: false };
}

/** An answer to another question than the one that is asked now does not count. */
function earlyAnswer({ approvals }: ApproveOptions, { path, resumes }: Attempt): ApprovalAnswer | undefined {
  const given = resumes === true ? approvals.answerAt(path) : undefined;
  return given ?? approvals.upFrontAt(path);
}

/** Undefined when there is nothing to wait for any more. */
async function answerOf(
  options: ApproveOptions,
  { wait, signal }: Attempt,
  request: ApprovalRequest,
): Promise<ApprovalAnswer | Misfit | "late" | undefined> {
  const ended = endOf(options, request, signal);
  try {
    const here = options.asker && Promise.race([ask(options, request, ended.signal), ended.promise]);
    if (here !== undefined) {
      const answer = await (wait?.(here, true) ?? here);
      if (answer !== "left") return answer;
    }
    return await wait?.(ended.promise, false);
  } finally {
    ended.close();
  }
}

async function ask(
  { asker, by }: ApproveOptions,
  request: ApprovalRequest,
  signal: AbortSignal,
): Promise<ApprovalAnswer | Misfit | "left"> {
  const { form } = request;
  const answer = await asker?.ask(
    {
      ...request,
      about: "approval",
      fields: fieldsOf(form),
      read: (field, text) => (form === undefined ? Promise.resolve(ok(text)) : readField(form, field.name, text)),
      check: async (values) => {
        const fitted = await fitForm(form, values);
        return fitted.ok ? [] : fitted.error;
      },
    },
    signal,
  );
  if (answer === undefined) return "left";
  const { decision, comment = "" } = answer;
  if (decision !== "approved" && decision !== "denied")
    return { misfit: "the answer has no `decision` that is `approved` or `denied`" };
  const said = { decision, by: answer.by ?? by(), comment };
  if (decision === "denied") return { ...said, form: {} };
  const fitted = await fitForm(form, answer.form ?? {});
  return fitted.ok
    ? { ...said, form: fitted.value }
    : { misfit: `the answer does not fit the form: ${fitted.error.join("; ")}` };
}

/** A yes whose values are not those that were asked for. */
interface Misfit {
  readonly misfit: string;
}

interface End {
  /** `late`, or undefined on a cancel. */
  readonly promise: Promise<"late" | undefined>;
  /** Aborted with it. */
  readonly signal: AbortSignal;
  readonly close: () => void;
}

/** What ends a wait without an answer. */
function endOf({ clock, over }: ApproveOptions, { deadline }: ApprovalRequest, signal: AbortSignal): End {
  const { promise, resolve } = Promise.withResolvers<"late" | undefined>();
  const own = new AbortController();
  const end = (how: "late" | undefined): void => {
    resolve(how);
    own.abort();
  };
  const cancel = (): void => end(undefined);
  const left = deadline === undefined ? undefined : Math.max(0, Date.parse(deadline) - clock.now());
  const stop = left === undefined ? () => undefined : clock.after(left, () => end("late"));
  const close = (): void => {
    stop();
    own.abort();
    signal.removeEventListener("abort", cancel);
    over.removeEventListener("abort", close);
  };
  signal.addEventListener("abort", cancel);
  over.addEventListener("abort", close);
  return { promise, signal: own.signal, close };
}

async function conclude({ emit }: ApproveOptions, step: string, answer: ApprovalAnswer): Promise<StepResult> {
  emit({ type: "approval.given", step, ...answer });
  const { decision, by, comment, form } = answer;
  if (decision === "denied") {
    const why = comment === "" ? `${by} denied it` : comment;
    return failed("rejected", why);
  }
  const result = { ...form, by, comment };
  return { outcome: "success", result, outputs: result };
}

function failed(kind: Failure["kind"], message: string): StepResult {
  return { outcome: "failure", error: { kind, message } };
}
