import { pathsFrom } from "../engine/from.ts";
import type { GivenAnswer } from "../model/event.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Plan } from "../model/plan.ts";
import type { Answer } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Approvals } from "../steps/approvals.ts";
import { fieldsOf, fitForm, readField } from "../steps/form.ts";
import type { PastRun } from "./past-run.ts";
import { stepAt } from "./set-outputs.ts";

/** Answers to approvals: as they were typed, and by their paths. */
export interface Answers {
  readonly approve: readonly string[];
  readonly deny: readonly string[];
  /** `field=value` for every approval whose form has the field, or `PATH.field=value` for one. */
  readonly form: readonly string[];
  /** Goes with every answer that was typed. */
  readonly comment: string;
  readonly byPath: { readonly [path: string]: Answer };
  readonly by: () => string;
}

/** Answers to approvals that are open in the log of a run. */
export function readAnswers(past: PastRun, answers: Answers): Promise<Result<readonly GivenAnswer[], string>> {
  return readAll(answers, (path) => openForm(past, path));
}

/** Approvals given before the run begins, for steps of its plan. */
export function readUpFront(plan: Plan, answers: Answers): Promise<Result<readonly GivenAnswer[], string>> {
  return readAll(answers, (path) => plannedForm(plan, path));
}

/** The form of what is asked at a path; the error is why there is nothing to answer. */
type FormAt = (path: string) => Result<Json | undefined, string>;

async function readAll(answers: Answers, formAt: FormAt): Promise<Result<readonly GivenAnswer[], string>> {
  const typed = await readTyped(answers, formAt);
  if (!typed.ok) return typed;
  const given = [...typed.value];
  for (const [path, answer] of Object.entries(answers.byPath)) {
    if (given.some(({ step }) => step === path)) return err(`\`${path}\` is answered twice`);
    const read = await readOne(path, answer, { answers, formAt });
    if (!read.ok) return err(`the answer to \`${path}\`: ${read.error}`);
    given.push(read.value);
  }
  return ok(given);
}

async function readOne(
  step: string,
  { decision, comment = "", form = {}, by }: Answer,
  { answers, formAt }: { readonly answers: Answers; readonly formAt: FormAt },
): Promise<Result<GivenAnswer, string>> {
  if (decision !== "approved" && decision !== "denied") return err("`decision` is `approved` or `denied`");
  const asked = formAt(step);
  if (!asked.ok) return asked;
  const fitted = decision === "denied" ? ok({}) : await fitForm(asked.value, form);
  if (!fitted.ok) return err(`its form does not fit: ${fitted.error.join("; ")}`);
  return ok({ step, decision, by: by ?? answers.by(), comment, form: fitted.value });
}

async function readTyped(answers: Answers, formAt: FormAt): Promise<Result<readonly GivenAnswer[], string>> {
  const { comment } = answers;
  const [approve, deny] = [new Set(answers.approve), new Set(answers.deny)];
  const both = [...approve].find((path) => deny.has(path));
  if (both !== undefined) return err(`\`${both}\` is both in --approve and in --deny`);
  const forms = new Map<string, Json | undefined>();
  for (const path of [...approve, ...deny]) {
    const form = formAt(path);
    if (!form.ok) return err(`--${approve.has(path) ? "approve" : "deny"}: ${form.error}`);
    if (approve.has(path)) forms.set(path, form.value);
  }
  const values = await readForms(forms, answers.form);
  if (!values.ok) return err(`--form: ${values.error}`);
  if (forms.size + deny.size === 0) {
    return comment === "" ? ok([]) : err("--comment goes with --approve or --deny, and neither was given");
  }
  const by = answers.by();
  const given: GivenAnswer[] = [];
  for (const [path, form] of forms) {
    const fitted = await fitForm(form, values.value.get(path) ?? {});
    if (!fitted.ok) return err(`--approve: the form of \`${path}\` does not fit: ${fitted.error.join("; ")}`);
    given.push({ step: path, decision: "approved", by, comment, form: fitted.value });
  }
  for (const path of deny) given.push({ step: path, decision: "denied", by, comment, form: {} });
  return ok(given);
}

async function readForms(
  forms: ReadonlyMap<string, Json | undefined>,
  texts: readonly string[],
): Promise<Result<ReadonlyMap<string, JsonObject>, string>> {
  const values = new Map<string, JsonObject>();
  for (const text of texts) {
    const [, left, value] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
    if (left === undefined || value === undefined)
      return err(`\`${text.slice(0, 60)}\` is not of the form field=value, as in --form reason='all green'`);
    const found = targetsOf(forms, left);
    if (!found.ok) return found;
    const { paths, name } = found.value;
    for (const path of paths) {
      if (Object.hasOwn(values.get(path) ?? {}, name)) return err(`\`${name}\` of \`${path}\` is given twice`);
      const read = await readField(forms.get(path) ?? {}, name, value);
      if (!read.ok) return err(`\`${name}\` of \`${path}\` ${read.error}`);
      values.set(path, { ...values.get(path), [name]: read.value });
    }
  }
  return ok(values);
}

/** Whose field `left` names: that of one approval by its path, else that of every one that has such a field. */
function targetsOf(
  forms: ReadonlyMap<string, Json | undefined>,
  left: string,
): Result<{ readonly paths: readonly string[]; readonly name: string }, string> {
  const paths = [...forms.keys()];
  if (paths.length === 0) return err("it goes with --approve, and none was given");
  const named = paths.filter((path) => left.startsWith(`${path}.`)).sort((a, b) => b.length - a.length)[0];
  if (named !== undefined) return ok({ paths: [named], name: left.slice(named.length + 1) });
  const has = (path: string): boolean => fieldsOf(forms.get(path)).some(({ name }) => name === left);
  const owners = paths.filter(has);
  if (owners.length > 0) return ok({ paths: owners, name: left });
  const fields = [...new Set([...forms.values()].flatMap((form) => fieldsOf(form).map(({ name }) => name)))];
  const near = nearest(left, fields);
  const known = fields.length === 0 ? "the form has no fields" : `there is ${fields.join(", ")}`;
  return err(
    `no approval given here has a field \`${left}\`; ${near === undefined ? known : `did you mean \`${near}\`?`}`,
  );
}

function openForm(past: PastRun, path: string): Result<Json | undefined, string> {
  const { approvals } = past;
  const open = approvals.openAt(path);
  if (open === undefined) return err(whyNotOpen(past, path));
  const answer = approvals.answerAt(path);
  if (answer !== undefined)
    return err(`\`${path}\` was answered by ${answer.by} already: a plain \`flow resume\` goes on with it`);
  const { deadline } = open;
  if (deadline !== undefined && Date.parse(deadline) <= Date.now())
    return err(`\`${path}\` cannot be answered any more: its time was up at ${deadline}`);
  return ok(open.form);
}

function whyNotOpen({ approvals, history, plan }: PastRun, path: string): string {
  const step = stepAt(plan, path);
  const last = approvals.lastAt(path);
  const state = history.stateOf(path);
  if (state !== "unknown" && step?.kind !== "approve") return `\`${path}\` is no approval: nobody is asked there`;
  if (last !== undefined) return `\`${path}\` does not wait for an answer: ${last.by} has ${last.decision} it already`;
  if (state !== "unknown") return `\`${path}\` does not wait for an answer${waits(approvals)}`;
  const near = nearest(
    path,
    approvals.open.map((request) => request.step),
  );
  return `no approval called \`${path}\` is open; ${near === undefined ? listed(approvals) : `did you mean \`${near}\`?`}`;
}

function waits(approvals: Approvals): string {
  return approvals.open.length === 0 ? "" : `; ${listed(approvals)}`;
}

function listed({ open }: Approvals): string {
  const paths = open.map(({ step }) => `\`${step}\``);
  if (paths.length === 0) return "none is";
  return `open ${paths.length === 1 ? "is" : "are"} ${paths.slice(0, 10).join(", ")}${paths.length > 10 ? " …" : ""}`;
}

function plannedForm(plan: Plan, path: string): Result<Json | undefined, string> {
  const found = pathsFrom(plan, path);
  if (!found.ok) return found;
  const step = stepAt(plan, path);
  if (step?.body.kind !== "approve") return err(`\`${path}\` is no approval: nobody is asked there`);
  const own = path.slice(path.lastIndexOf("/") + 1);
  const isLoop =
    (step.foreach !== undefined && !own.includes("[")) || (step.repeat !== undefined && !own.includes("#"));
  if (isLoop)
    return err(`\`${path}\` is a loop: name what is to be approved, as in \`${path}${step.foreach ? "[0]" : "#1"}\``);
  const never = neverThere(plan, path);
  if (never !== undefined) return err(never);
  return ok(step.body.form?.json);
}

/** Why no run of the plan comes to the path: an iteration or an item beyond what is written. */
function neverThere(plan: Plan, path: string): string | undefined {
  const parts = path.split("/");
  for (const [index, part] of parts.entries()) {
    const place = parts.slice(0, index + 1).join("/");
    const step = stepAt(plan, place);
    const [, item, iteration] = /^[^[#]*(?:\[(\d+)\])?(?:#(\d+))?$/.exec(part) ?? [];
    const max = step?.repeat?.max;
    if (max !== undefined && iteration !== undefined && (Number(iteration) < 1 || Number(iteration) > max))
      return `there is never a \`${place}\`: its iterations are #1 to #${max} (\`max\`)`;
    const items = step?.foreach?.items;
    const count = items?.type === "data" && Array.isArray(items.json) ? items.json.length : undefined;
    if (count !== undefined && item !== undefined && Number(item) >= count)
      return `there is never a \`${place}\`: the list has ${count} ${count === 1 ? "item" : "items"}, counted from 0`;
  }
  return undefined;
}
