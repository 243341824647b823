import type { AgentPorts, Brought } from "../agent/agent-ports.ts";
import { isJsonObject, type Json } from "../model/json.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Agent, Plan, Scope, Step } from "../model/plan.ts";
import type { Attempt, Execute, Wait } from "../model/ports.ts";
import { ok } from "../model/result.ts";
import type { Order } from "../worktree/turns.ts";
import type { Closed, Finished } from "./worktree-closed.ts";
import type { Worktrees } from "./worktrees.ts";

interface Isolation {
  readonly plan: Plan;
  /** Absolute. */
  readonly workspace: string;
  readonly worktrees: () => Promise<Worktrees>;
}

/** `isolation: worktree`: each attempt works in a worktree of its own, and a success brings its changes back. */
export function isolated(execute: Execute, { plan, worktrees, workspace }: Isolation): Execute {
  const shown = shownIn(workspace);
  return (attempt) =>
    attempt.step.isolation === undefined
      ? execute(attempt)
      : worktrees().then((all) => runIsolated(execute, attempt, { all, order: orderOf(plan, attempt.path), shown }));
}

/** A path as a message has it. */
type Shown = (path: string) => string;

function shownIn(workspace: string): Shown {
  return (path) => (path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path);
}

interface Surroundings {
  readonly shown: Shown;
  readonly all: Worktrees;
  readonly order: Order;
}

async function runIsolated(
  execute: Execute,
  attempt: Attempt,
  { all, order, shown }: Surroundings,
): Promise<StepResult> {
  const { path, signal, wait, resumes, ...rest } = attempt;
  const finished = resumes === true ? all.finished(path) : undefined;
  if (finished !== undefined) return withPatch(finished.result, finished.closed, shown);
  // Only an agent goes on where it was; a command begins again, and so do the files it finds.
  const wishes = { goesOn: resumes === true && attempt.step.body.kind === "agent" };
  const opened = await all.open({ step: path, order, ...wishes, signal });
  if (!opened.ok) return signal.aborted ? { outcome: "cancelled" } : { outcome: "failure", error: opened.error };
  const { folder, goesOn, close } = opened.value;
  const given: Attempt = {
    ...rest,
    path,
    signal,
    workspace: folder,
    ...(goesOn && { resumes: true }),
    ...(wait && { wait }),
  };
  const result = await execute(given);
  if (result.outcome !== "success" || signal.aborted) return withPatch(result, await close({ apply: false }), shown);
  const { result: gave, outputs } = result;
  return withPatch(result, await close({ apply: true, result: gave, outputs, wait }), shown);
}

/** What an execution gave whose changes arrived after flow had died. */
export function arrived({ result, closed }: Finished, workspace: string): { outputs: Json; result: Json } {
  const { outputs = null, ...whole } = withPatch(result, closed, shownIn(workspace));
  return { outputs, result: whole.outcome === "success" ? whole.result : outputs };
}

/** Worktrees for the members of teams. */
export function memberIsolation({ options, worktrees }: MemberSource): NonNullable<AgentPorts["isolate"]> {
  const { plan, workspace } = options;
  const shown = shownIn(workspace);
  return async ({ step, owner, order, into, goesOn, signal }) => {
    const all = await worktrees();
    const finished = goesOn ? all.finished(owner) : undefined;
    if (finished) return ok({ folder: undefined, close: () => Promise.resolve(brought(finished.closed, shown)) });
    const place = { step, agentRun: owner, order: [...orderOf(plan, step), order] };
    const opened = await all.open({ ...place, goesOn, signal, ...(into !== undefined && { into }) });
    if (!opened.ok) return opened;
    const { folder, close } = opened.value;
    return ok({
      folder,
      close: async ({ apply, wait }) => brought(await close(apply ? { apply, wait: waiting(wait) } : { apply }), shown),
    });
  };
}

/** A member keeps no slot while it waits: there is only something to tell. */
function waiting(told: (turn: Promise<unknown>) => Promise<void>): Wait {
  return async (turn) => {
    await told(turn);
    return turn;
  };
}

interface MemberSource {
  readonly options: { readonly plan: Plan; readonly workspace: string };
  readonly worktrees: () => Promise<Worktrees>;
}

function brought(closed: Closed, shown: Shown): Brought {
  const { status, files, patch } = closed;
  if (status === "applied")
    return { note: `Changed files: ${files.slice(0, 20).join(", ")}${files.length > 20 ? ", …" : ""}` };
  if (status === "empty") return {};
  if (status === "kept")
    return patch === undefined ? {} : { note: `Its changes were not taken over; they are kept in ${shown(patch)}` };
  return {
    problem: conflictOf(closed, shown, "With the status `pending` (TaskUpdate) its task is done again").message,
  };
}

/** A cancel may have come before it was its turn: then it has not succeeded, whatever it did. */
function withPatch(result: StepResult, closed: Closed, shown: Shown): StepResult {
  const { patch = null, files, status } = closed;
  const about = { patch, files: [...files] };
  const outputs = result.outputs === undefined ? about : beside(result.outputs, about);
  if (result.outcome === "success" && (status === "applied" || status === "empty"))
    return { outcome: "success", result: beside(result.result, about), outputs };
  const kept = patch === null ? result.outputs !== undefined && { outputs: result.outputs } : { outputs };
  if (result.outcome === "cancelled" || (result.outcome === "success" && status === "kept"))
    return { outcome: "cancelled", ...kept };
  const error = result.outcome === "failure" ? withPlace(result.error, closed, shown) : conflictOf(closed, shown);
  return { outcome: "failure", error, ...kept };
}

/** What the step itself calls so goes before. */
function beside(value: Json, about: { readonly patch: Json; readonly files: Json }): Json {
  return isJsonObject(value) ? { ...about, ...value } : value;
}

function withPlace(error: Failure, { patch }: Closed, shown: Shown): Failure {
  return patch === undefined
    ? error
    : { ...error, message: `${error.message} (its changes are kept in ${shown(patch)})` };
}

function conflictOf(
  { status, patch = "", conflicts = [], why = "" }: Closed,
  shown: Shown,
  again = "`flow resume` runs it again",
): Failure {
  if (status === "lost") return { kind: "conflict", message: `its changes were not taken over: ${why}` };
  const more = conflicts.length > 3 ? ` and ${conflicts.length - 3} more` : "";
  const where = conflicts.length === 0 ? "" : `${conflicts.slice(0, 3).join(", ")}${more}: `;
  const kept = `nothing of it was applied, and it is kept in ${shown(patch)}`;
  return { kind: "conflict", message: `${where}${why}; ${kept}. ${again} on what is there now` };
}

/** The places of a path's steps in their scopes, each with its item and iteration. */
export function orderOf(plan: Plan, path: string): Order {
  const order: number[] = [];
  let scope: Scope | undefined = plan.workflows[plan.root]?.scope;
  for (const part of path.split("/")) {
    const [, id, item, iteration] = /^([^[#]*)(?:\[(\d+)\])?(?:#(\d+))?$/.exec(part) ?? [];
    const index: number = scope?.steps.findIndex((step) => step.id === id) ?? -1;
    order.push(index, Number(item ?? 0), Number(iteration ?? 0));
    const inner: Step["scope"] = scope?.steps[index]?.scope;
    scope = inner === undefined ? undefined : "inline" in inner ? inner.inline : plan.workflows[inner.workflow]?.scope;
  }
  return order;
}

interface Ground {
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly isResumed: boolean;
}

/** Why there can be no worktrees where a plan wants some; undefined for all others, which start no process for it. */
export async function groundProblem(plan: Plan, ground: Ground): Promise<string | undefined> {
  const step = firstIsolated(plan);
  const lead = isolatingLead(plan);
  if (step === undefined && lead === undefined) return undefined;
  const about = step
    ? `step \`${step.id}\` has \`isolation: worktree\``
    : `the team of agent \`${lead?.name ?? ""}\` has members with \`isolation: worktree\``;
  return (await import("./worktree-start.ts")).worktreeProblem(about, ground);
}

export function wantsWorktrees(plan: Plan): boolean {
  return firstIsolated(plan) !== undefined || isolatingLead(plan) !== undefined;
}

function isolatingLead(plan: Plan): Agent | undefined {
  return Object.values(plan.agents).find(({ team }) => team?.members.some((it) => it.isolation !== undefined));
}

/** A step that works in a worktree of its own, or whose team does, if the plan has one. */
function firstIsolated(plan: Plan): Step | undefined {
  for (const { scope } of Object.values(plan.workflows)) {
    const found = inScope(scope);
    if (found !== undefined) return found;
  }
  return undefined;
}

function inScope({ steps }: Scope): Step | undefined {
  for (const step of steps) {
    const { scope } = step;
    const inner = scope && "inline" in scope ? inScope(scope.inline) : undefined;
    const leads = step.body.kind === "agent" && step.body.team?.members.some((it) => it.isolation !== undefined);
    if (step.isolation !== undefined || leads === true || inner !== undefined) return inner ?? step;
  }
  return undefined;
}
