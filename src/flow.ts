import { prepare } from "./flow/check.ts";
import type { AgentList, AgentsRequest } from "./flow/agents.ts";
import type { Explained } from "./flow/explain-agent.ts";
import { groundProblem } from "./flow/isolated.ts";
import { type Run, startLive } from "./flow/live-run.ts";
import type { PermitRequest, PermitResult } from "./flow/permit.ts";
import {
  type AgentRequest,
  type Prepared,
  type Refusal,
  type ResumeRequest,
  type ResumeResult,
  type RunRequest,
  type RunResult,
  unavailable,
  usage,
  type Watched,
} from "./flow/requests.ts";
import { noWorst, type WorstCase } from "./model/worst-case.ts";
import { workspaceOf } from "./runlog/runs.ts";

export type { Compilation } from "./compile/compile.ts";
export type { Given } from "./compile/given-inputs.ts";
export type { Run } from "./flow/live-run.ts";
export type { Permit, PermitRequest, PermitResult } from "./flow/permit.ts";
export type {
  AgentRequest,
  Conditions,
  Prepared,
  Refusal,
  ResumeRequest,
  ResumeResult,
  RunRequest,
  RunResult,
  WorkflowSource,
} from "./flow/requests.ts";
export type { RunEnd } from "./flow/run-end.ts";
export type { Profile } from "./permissions/index.ts";
export { evaluate } from "./expr/public.ts";
export { check, prepare, validate } from "./flow/check.ts";
export { describeExpression } from "./flow/describe-expression.ts";

/** Checks a workflow and runs it. */
export function run(request: RunRequest): Run<RunResult> {
  return startLive(request, toEnd);
}

/** Goes on with a run from its log: what ended and still holds is reused, all else runs. */
export function resume(request: ResumeRequest): Run<ResumeResult> {
  return startLive(request, async (watched) => (await import("./flow/go-on.ts")).goOnWith(watched));
}

/** Runs one agent, once, with the same checks and the same log as a workflow. */
export function runAgent(request: AgentRequest): Run<RunResult> {
  return startLive(request, async (watched) => {
    const { agentRun, plainly } = await import("./flow/one-agent.ts");
    const made = await agentRun(request);
    if ("kind" in made) return { started: false, refusal: made };
    return plainly(await toEnd({ ...watched, inputTexts: [], ...made }), request);
  });
}

async function toEnd(request: RunRequest & Watched): Promise<RunResult> {
  const prepared = await prepare(request);
  if ("kind" in prepared) return { started: false, refusal: prepared };
  const cwd = request.cwd ?? process.cwd();
  const { plan } = prepared;
  const [{ answersOf }, { equip }] = await Promise.all([import("./flow/typed-answers.ts"), import("./flow/equip.ts")]);
  const answers = await answersOf(request, cwd, (read, given) => read.readUpFront(plan, given));
  if (!answers.ok) return { started: false, refusal: usage(answers.error) };
  const ground = { cwd, workspace: workspaceOf(cwd), answers: answers.value, isResumed: false };
  const options = await equip(request, prepared, ground);
  if ("kind" in options) return { started: false, refusal: options };
  const { startRun } = await import("./flow/run.ts");
  const end = await startRun(options);
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: unavailable(end.error) };
}

/** What a run could take at most; no key is needed. The error is a limit on cost that nobody could keep. */
export async function worstCase(request: RunRequest, prepared: Prepared): Promise<WorstCase | Refusal> {
  const { repliesProblem } = await import("./flow/replies.ts");
  const { cwd = process.cwd(), env = process.env } = request;
  const wrong =
    (await repliesProblem(request, cwd)) ??
    (await groundProblem(prepared.plan, { workspace: workspaceOf(cwd), env, isResumed: false }));
  if (wrong !== undefined) return usage(wrong);
  if (Object.keys(prepared.plan.agents).length === 0) return noWorst;
  return (await import("./flow/open-models.ts")).worstCaseOf(request, prepared);
}

/** What the rules make of a call by each agent of a file, or by one agent. Runs nothing. */
export async function permit(request: PermitRequest): Promise<PermitResult> {
  return (await import("./flow/permit.ts")).permit(request);
}

/** The agents a workflow in the working directory can name. */
export async function listAgents(request: AgentsRequest): Promise<AgentList> {
  return (await import("./flow/agents.ts")).listAgents(request);
}

/** What one agent comes to, and who says so. Runs nothing. */
export async function explainAgent(name: string, request: AgentsRequest): Promise<Explained> {
  return (await import("./flow/explain-agent.ts")).explainAgent(name, request);
}
