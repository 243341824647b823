import { basename } from "node:path";
import type { LogLine } from "../model/event.ts";
import type { AgentOutcome } from "../model/message.ts";
import type { RunOutcome } from "../model/outcome.ts";
import { err, ok, type Result } from "../model/result.ts";
import { giveOrder, type Order } from "../runlog/orders.ts";
import { startLive } from "./live-run.ts";
import { isGoingOn, locateRun, noSuchAgent, readRun, type RunsPlace } from "./read-run.ts";
import { type Refusal, unavailable, usage } from "./requests.ts";

export interface CancelRequest extends RunsPlace {
  /** `latest`, the id of a run, its beginning, or its folder. */
  readonly run: string;
  /** Only this agent run of it, with all that it spawned. */
  readonly agent?: string;
  /** False: what the agent spawned goes on. */
  readonly children?: boolean;
  /** Everything of the run ends at once: no `undo`, no `always()` step. */
  readonly now?: boolean;
  /** Called when the run goes on here: what it gives back ends everything at once. */
  readonly onHere?: () => AbortSignal;
}

/** What was cancelled, and how it ended: it may have come to an end of its own before it heard. */
export interface Cancelled {
  readonly run: string;
  readonly outcome: RunOutcome | AgentOutcome;
  /** Steps of a run whose `undo` began and did not succeed, with the reason. */
  readonly notUndone: ReadonlyMap<string, string>;
}

/**
 * Cancels a run that goes on in another process, or one of its agent runs, and waits for its end. One that waits for an
 * answer or was interrupted goes on here, for as long as its `undo` and `always()` steps take. It is refused where there
 * is nothing to cancel, and where the process does not hear.
 */
export async function cancelRun(request: CancelRequest): Promise<Result<Cancelled, Refusal>> {
  const located = locateRun(request.run, request);
  if (!located.ok) return err(usage(located.error));
  const folder = located.value;
  const { agent } = request;
  const now = await standing(folder);
  if (agent === undefined && rests(now)) return cancelResting(folder, request);
  return cancelGoing(folder, request, now);
}

async function cancelGoing(folder: string, request: CancelRequest, now: Standing): Promise<Result<Cancelled, Refusal>> {
  const run = basename(folder);
  const { agent } = request;
  const nothing = nothingToCancel(run, agent, now);
  if (nothing !== undefined) return err(usage(nothing));
  if (!(await isTaken(folder, orderOf(request)))) {
    const why = isGoingOn(folder) ? "does not hear: its process is stopped, or an older flow; `kill` it" : "has died";
    return err(unavailable(`the run ${run} ${why}`));
  }
  const outcome = (it: Standing): Cancelled["outcome"] | undefined =>
    agent === undefined ? it.end : it.agents.get(agent);
  const after = await standing(folder, (it) => outcome(it) === undefined);
  const ended = outcome(after);
  if (ended === undefined) return err(unavailable(`the run ${run} has died`));
  return ok({ run, outcome: ended, notUndone: agent === undefined ? after.notUndone : new Map() });
}

/** What a log says of those that can be cancelled. */
interface Standing {
  readonly isAlive: boolean;
  /** How the run ended, if it has. */
  end: RunOutcome | undefined;
  /** By id; undefined is under way. */
  readonly agents: Map<string, AgentOutcome | undefined>;
  /** By step: why its `undo`, which began, has not taken it back. */
  readonly notUndone: Map<string, string>;
}

/** As of the end of the log, which is waited for as long as `goOn` says, if it is there. */
async function standing(folder: string, goOn?: (it: Standing) => boolean): Promise<Standing> {
  const it: Standing = { isAlive: isGoingOn(folder), end: undefined, agents: new Map(), notUndone: new Map() };
  const follow = goOn && { follow: async () => goOn(it) };
  for await (const record of readRun(folder, { values: "none", ...follow })) {
    if (record.kind !== "event") continue;
    const { line } = record;
    if (line.type === "run.finished") it.end = line.outcome;
    else if (line.type === "run.resumed") it.end = undefined;
    else if (line.type === "agent.started") it.agents.set(line.agent, undefined);
    else if (line.type === "agent.finished") it.agents.set(line.agent, line.outcome);
    else noteUndo(it.notUndone, line);
  }
  return it;
}

function noteUndo(notUndone: Standing["notUndone"], line: LogLine): void {
  if (line.type === "step.undo.started") notUndone.set(line.step, "its undo began and has no end in the log");
  else if (line.type === "step.started") notUndone.delete(line.step);
  else if (line.type !== "step.undone") return;
  else if (line.outcome === "success") notUndone.delete(line.step);
  else notUndone.set(line.step, line.error?.message ?? "its undo was cancelled before it ended");
}

/** No process runs it, and it has not come to its end. */
function rests({ isAlive, end }: Standing): boolean {
  return end === undefined ? !isAlive : end === "waiting";
}

/** Nobody runs it, so that it is resumed and cancelled in one: then it starts nothing. */
async function cancelResting(folder: string, request: CancelRequest): Promise<Result<Cancelled, Refusal>> {
  const asked = AbortSignal.abort("SIGINT");
  const kill = request.now ? asked : request.onHere?.();
  const { goOnWith } = await import("./go-on.ts");
  const asks = { run: folder, asItWas: true, signal: asked, ...(kill && { kill }) };
  const result = await startLive(asks, goOnWith);
  // Somebody else has just begun the same, or to resume it.
  if (!result.started && !("finished" in result) && isGoingOn(folder))
    return cancelGoing(folder, request, await standing(folder));
  if (!result.started && "refusal" in result) return err(result.refusal);
  const { run, outcome } = result.started ? result.end : result.finished;
  const { notUndone } = await standing(folder);
  return ok({ run, outcome, notUndone });
}

function nothingToCancel(
  run: string,
  agent: string | undefined,
  { isAlive, end, agents }: Standing,
): string | undefined {
  if (end === "waiting") return `the run ${run} waits for an answer: it can be cancelled as a whole`;
  if (end !== undefined) return `the run ${run} has ended: ${end}`;
  if (!isAlive) return `the run ${run} was interrupted: it can be cancelled as a whole`;
  if (agent === undefined) return undefined;
  if (!agents.has(agent)) return noSuchAgent(agent, [...agents.keys()]);
  const outcome = agents.get(agent);
  return outcome === undefined ? undefined : `the agent run ${agent} has ended: ${outcome}`;
}

function orderOf({ agent, children = true, now = false }: CancelRequest): Order {
  return agent === undefined ? { cancel: "run", now } : { cancel: "agent", agent, children };
}

/** Milliseconds in which a process that lives takes an order. */
const patience = 5000;
const lookEvery = 20;

/** Whether the order was heard; otherwise it is taken back. */
async function isTaken(folder: string, order: Order): Promise<boolean> {
  const given = giveOrder(folder, order);
  if (given === undefined) return false;
  for (let waited = 0; waited < patience && !given.isTaken(); waited += lookEvery)
    await new Promise((resolve) => setTimeout(resolve, lookEvery));
  return given.takeBack() === "taken";
}
