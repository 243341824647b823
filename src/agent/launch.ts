import type { AgentEvent } from "../model/agent-event.ts";
import type { HookMoment } from "../model/hooks.ts";
import type { AgentRunIds } from "../model/ids.ts";
import { noUsage } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import { type Clock, elapsed, type ToolCall } from "../model/ports.ts";
import { ok, type Result } from "../model/result.ts";
import type { TeamEvent } from "../model/team.ts";
import type { AgentResult } from "./agent-result.ts";
import type { AgentRun } from "./agent-run.ts";
import { haltedBy } from "./answer.ts";
import type { Assignment, Ended, Parent, Shared } from "./assignment.ts";
import { type Delegation, delegationOf, mayDelegate } from "./delegation.ts";
import { compactOf, judgesOf, samplingOf } from "./equipment.ts";
import { lasting, limitsOf, type Time } from "./limits.ts";
import { runAgent } from "./loop.ts";
import { withDenials } from "./permission.ts";
import { type Prepared, prepare } from "./prepared.ts";
import { withTexts } from "./prompt.ts";
import type { Recorded } from "./recorded.ts";
import { callOf } from "./tool-call.ts";

/** Runs one agent to its end, with all that it spawns. */
export async function launch(shared: Shared, assignment: Assignment): Promise<Result<Ended, Failure>> {
  const { ports, active, heard } = shared;
  const { attempt, id, parent } = assignment;
  const prepared = await prepare(shared, assignment);
  if (!prepared.ok) return prepared;
  const { agent, recorded, close } = prepared.value;
  const isHeard = parent !== undefined || mayDelegate(prepared.value);
  if (isHeard && recorded && parent === undefined) heard.open(recorded);
  const tell = (event: AgentEvent | TeamEvent): void => {
    ports.emit(event);
    if (isHeard) heard.add(event);
  };
  const time = lasting(ports.clock, agent.limits.duration, attempt.signal);
  const [alone, all] = [new AbortController(), new AbortController()];
  const below = AbortSignal.any([time.signal, all.signal]);
  const self = AbortSignal.any([below, alone.signal]);
  const ids: AgentRunIds = { step: attempt.path, agent: id, parent: parent?.id ?? null };
  const limits = boundsOf(shared, assignment, prepared.value);
  const bounds = { ids, self, below, stop: () => all.abort("ended"), tell, budget: limits.budget };
  const delegation = delegationOf(shared, assignment, { ...prepared.value, ...bounds });
  const run = { ...runOf(shared, assignment, { prepared: prepared.value, delegation, ids, signal: self }), ...limits };
  if (recorded) await recall(recorded, run);
  active.enter(id, { cancelAll: () => all.abort("agent"), cancelAlone: () => alone.abort("agent") });
  try {
    const opened = await openSession(run);
    const ended =
      "outcome" in opened
        ? { result: opened, calls: 0 }
        : await reported(ports.clock, { run: opened, delegation, time, parent, tell });
    active.leave(id);
    const { outcome } = ended.result;
    await run.hooks?.fire({ event: "SessionEnd", subject: outcome, fields: { reason: outcome } }, attempt.signal);
    return ok(ended);
  } finally {
    active.leave(id);
    if (parent === undefined) heard.forget(id);
    time.close();
    await close();
  }
}

/** Its turns, and what pays for them: the parent's budget pays for a child. */
function boundsOf(
  { ports }: Shared,
  { attempt, parent, more }: Assignment,
  { agent, recorded }: Prepared,
): ReturnType<typeof limitsOf> {
  const { step, turns } = attempt;
  const budget = parent ? parent.budget : attempt.budget;
  // Asked again after its end, it begins to count anew.
  const spent = recorded && !more && ports.spent?.(recorded.agent);
  const around = { ...(budget && { budget }), ...(turns !== undefined && { turns }) };
  return limitsOf(agent, step.limits, { ...around, ...(spent && { spent }) });
}

interface RunParts {
  readonly prepared: Prepared;
  readonly delegation: Delegation;
  readonly ids: AgentRunIds;
  readonly signal: AbortSignal;
}

function runOf(
  { ports, validators }: Shared,
  { attempt, parent, membership, more }: Assignment,
  { prepared, delegation, ids, signal }: RunParts,
): AgentRun {
  const { agent, body, asks, recorded, rights } = prepared;
  const { path, workspace = ports.workspace } = attempt;
  const tools = [...prepared.tools, ...delegation.tools];
  const place = { step: path, agent: ids.agent, workspace, ...(parent && { parent: parent.agent }) };
  const hooks = ports.hooks?.(agent, place);
  return {
    ...asks,
    ids,
    tools,
    name: agent.name,
    messages: withTexts(prepared.messages, prepared.told(tools.map((tool) => tool.name))),
    ...(recorded && { recorded }),
    ...(more && { more }),
    ...(rights && { rights }),
    ...(hooks && { hooks }),
    ...judgesOf(ports, { agent, body, attempt: { ...attempt, signal } }),
    mail: delegation.children.mail,
    ...(membership && { border: membership.border }),
    compact: compactOf(ports, path),
    sampling: samplingOf(agent),
    validators,
    workspace,
    signal,
    clock: ports.clock,
    spill: ports.spill,
    ...(ports.replayed && { readings: ports.replayed.readings }),
    ...(ports.masked && { masked: ports.masked }),
    ...(ports.pieces !== undefined && { pieces: ports.pieces }),
  };
}

/** What calls of before a resume took away stays away, and what they saw counts as seen. */
async function recall({ messages, times }: Recorded, { tools, rights, workspace, signal }: AgentRun): Promise<void> {
  if (rights === undefined) return;
  const call: ToolCall = { workspace, signal, seen: rights.seen, narrow: (rules) => rights.narrow?.(rules) };
  for (const block of messages.flatMap(({ blocks }) => blocks)) {
    const made = block.type === "call" ? callOf(block, tools) : undefined;
    const ran = times.get(block);
    if (made?.tool.narrows) await made.tool.run(made.args, call);
    else if (ran) await made?.tool.recall?.(made.args, call, ran);
  }
}

/** What hooks say at the beginning stands behind the instructions; they may also end it there. */
async function openSession(run: AgentRun): Promise<AgentRun | AgentResult> {
  const source = run.recorded ? "resume" : "startup";
  const { ids, name, model, hooks, signal } = run;
  const moments: HookMoment[] = [{ event: "SessionStart", subject: source, fields: { source, model } }];
  if (ids.parent !== null)
    moments.push({ event: "SubagentStart", subject: name, fields: { agent_id: ids.agent, agent_type: name } });
  const texts: string[] = [];
  for (const moment of moments) {
    const word = await hooks?.fire(moment, signal);
    const ended = haltedBy(word?.stop);
    if (ended) return { ...ended, turns: 0, usage: noUsage, text: "" };
    texts.push(...(word?.texts ?? []));
  }
  return texts.length === 0 ? run : { ...run, messages: withTexts(run.messages, texts) };
}

interface Reporting {
  readonly run: AgentRun;
  readonly delegation: Delegation;
  readonly tell: (event: AgentEvent) => void;
  readonly time: Time;
  readonly parent: Parent | undefined;
}

/** The run with its first and last event around it; between them lie those of all that it spawned. */
async function reported(clock: Clock, { run, delegation, time, parent, tell }: Reporting): Promise<Ended> {
  const { children, team } = delegation;
  const start = clock.monotonic();
  tell(begun(run, parent));
  children.goOn();
  team?.goOn();
  const events = runAgent(run);
  let calls = 0;
  let next: IteratorResult<AgentEvent, AgentResult>;
  try {
    next = await events.next();
    for (; next.done !== true; next = await events.next()) {
      if (next.value.type === "tool.started") calls++;
      tell(next.value);
    }
  } finally {
    await team?.close(run.signal.aborted);
    await children.close();
  }
  const result = withDenials(time.judge(next.value), run.rights);
  // What a child wanted and could not ask for, its parent could not either.
  for (const [rule, source] of run.rights?.wanting ?? []) parent?.rights?.wanting.set(rule, source);
  const { outcome, reason, turns, usage, text, output } = result;
  const end = { outcome, reason, turns, usage, text, ...(output !== undefined && { output }) };
  tell({ ...run.ids, type: "agent.finished", ...end, duration: elapsed(clock, start) });
  return { result, calls };
}

function begun(
  { ids, name, model, client, tools, rights, recorded }: AgentRun,
  parent: Parent | undefined,
): AgentEvent {
  return {
    ...ids,
    type: "agent.started",
    name,
    model,
    provider: client.provider,
    tools: tools.map((tool) => tool.name).sort(),
    ...(rights?.sandbox !== undefined && { sandbox: rights.sandbox }),
    ...(recorded && { continues: recorded.agent }),
    ...(parent && { spawned: parent.spawned }),
  };
}
