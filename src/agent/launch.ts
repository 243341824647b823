import type { AgentEvent, AgentRunIds } from "../model/event.ts";
import type { HookMoment } from "../model/hooks.ts";
import { noUsage } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent, Team as TeamPlan } from "../model/plan.ts";
import type { TeamEvent } from "../model/team.ts";
import type { Attempt, Budget, Rights, Tool, ToolCall } from "../model/ports.ts";
import { elapsed } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { ok } from "../model/result.ts";
import type { AgentResult } from "./agent-result.ts";
import type { AgentRun } from "./agent-run.ts";
import type { Assignment, Ended, Membership, Parent, Shared } from "./assignment.ts";
import { haltedBy } from "./answer.ts";
import { Children } from "./children.ts";
import { type AgentBody, compactOf, equip, judgesOf, samplingOf, toolNames } from "./equipment.ts";
import type { AgentHouse } from "./house.ts";
import { lasting, limitsOf, type Time } from "./limits.ts";
import { runAgent } from "./loop.ts";
import { Mail } from "./mail.ts";
import { runRights, withDenials } from "./permission.ts";
import { firstMessages, withTexts } from "./prompt.ts";
import { copied, type Recorded } from "./recorded.ts";
import { Team } from "./team/team.ts";
import { leadTools, memberTools } from "./team/tools.ts";
import { callOf } from "./tool-call.ts";

export async function launch(shared: Shared, assignment: Assignment): Promise<Result<Ended, Failure>> {
  const { house, evaluator, validators, crowd } = shared;
  const { attempt, id, parent, more } = assignment;
  const recorded = assignment.recorded && copied(assignment.recorded, more !== undefined);
  const { step, path, inputs, signal, workspace = house.workspace, ...around } = attempt;
  const { agent, body } = agentOf(house, attempt);
  const files = house.instructions?.(body.agent) ?? ok([]);
  if (!files.ok) return files;
  const names = toolNames(agent, body.overrides.json);
  const extras = house.extras?.(body.agent, names);
  const messages = await firstMessages({ agent, inputs, evaluator, files: files.value });
  if (!messages.ok) return messages;
  const given = parent?.rights?.child?.(attempt) ?? house.rights?.(attempt);
  const gated = given && gatedBy(given, assignment.membership);
  const rights = gated && runRights(gated, recorded?.wanting);
  const served = await house.servers?.(attempt, names);
  if (served?.ok === false) return served;
  const joined = [...(served?.value.tools ?? []), ...joining(parent, served?.value.tools ?? [], names)];
  const asked = { agent, body, inputs, path, rights, evaluator, served: [...joined, ...(extras?.tools ?? [])] };
  const equipment = await equip(house, asked);
  if (!equipment.ok) {
    await served?.value.close();
    return equipment;
  }
  const time = lasting(house.clock, agent.limits.duration, signal);
  const alone = new AbortController();
  const all = new AbortController();
  const below = AbortSignal.any([time.signal, all.signal]);
  const own = AbortSignal.any([below, alone.signal]);
  const spent = recorded && !more && house.spent?.(recorded.agent);
  const outer = parent ? { ...around, budget: parent.budget } : around;
  const limits = limitsOf(agent, step.limits, { ...clean(outer), ...(spent && { spent }) });
  const { models, tools, ...asks } = equipment.value;
  const ids = idsOf(assignment);
  const isHeard = parent !== undefined || leads(agent, body) || (agent.subagents ?? []).length > 0;
  if (isHeard && recorded && parent === undefined) shared.heard.open(recorded);
  const tell = (event: AgentEvent | TeamEvent): void => {
    house.emit(event);
    if (isHeard) shared.heard.add(event);
  };
  const children = new Children({
    ...shared,
    agent,
    attempt: { ...attempt, signal: below },
    self: own,
    ids,
    lineage: { names: [...(parent?.names ?? []), agent.name], depth: depthOf(agent, step.limits.depth, parent) },
    rights,
    budget: limits.budget,
    models,
    served: joined,
    recorded,
    level: (parent?.spawned.depth ?? 0) + 1,
    stop: () => all.abort("ended"),
    mail: assignment.membership?.mail ?? new Mail(),
    ...(parent && { adopt: parent.adopt }),
  });
  const plan = leads(agent, body);
  const team: Team | undefined =
    plan &&
    new Team({
      plan,
      house,
      ids,
      lead: agent.name,
      workspace: attempt.workspace,
      children,
      signal: below,
      tell,
      recorded,
      toolsOf: (member) => (team ? memberTools(team, member) : []),
    });
  if (team) children.lead(team);
  const offered = [
    ...tools,
    ...children.tools,
    ...(team ? leadTools(team) : []),
    ...(assignment.membership?.tools ?? []),
  ];
  if (recorded && rights)
    await recall(recorded, offered, { workspace, signal, seen: rights.seen, narrow: (rules) => rights.narrow?.(rules) });
  const hooks = house.hooks?.(agent, { step: path, agent: id, workspace, ...(parent && { parent: parent.agent }) });
  const about = assignment.membership ? [assignment.membership.told] : [];
  const told = [...(extras?.told(offered.map((tool) => tool.name)) ?? []), ...about];
  const run: AgentRun = {
    ...asks,
    tools: offered,
    ids,
    name: agent.name,
    messages: withTexts(messages.value, told),
    ...(recorded && { recorded }),
    ...(more && { more }),
    ...(rights && { rights }),
    ...(hooks && { hooks }),
    ...limits,
    ...judgesOf(house, { agent, body, attempt: { ...attempt, signal: own } }),
    mail: children.mail,
    ...(house.readings && { readings: house.readings }),
    ...(assignment.membership && { border: assignment.membership.border }),
    compact: compactOf(house, path),
    sampling: samplingOf(agent),
    validators,
    workspace,
    signal: own,
    clock: house.clock,
    spill: house.spill,
    ...(house.masked && { masked: house.masked }),
    ...(house.pieces !== undefined && { pieces: house.pieces }),
  };
  crowd.enter(id, { cancelAll: () => all.abort("agent"), cancelAlone: () => alone.abort("agent") });
  const opened = await openSession(run);
  const ended = "outcome" in opened ? { result: opened, calls: 0 } : await reported(shared, { run: opened, children, team, time, assignment, tell });
  crowd.leave(id);
  const { outcome } = ended.result;
  await run.hooks?.fire({ event: "SessionEnd", subject: outcome, fields: { reason: outcome } }, signal);
  time.close();
  await served?.value.close();
  return ok(ended);
}

function agentOf({ agents }: AgentHouse, { step, path }: Attempt): { readonly agent: Agent; readonly body: AgentBody } {
  const { body } = step;
  if (body.kind !== "agent") throw new Error(`an agent cannot run the ${body.kind} step ${path}`);
  const agent = Object.hasOwn(agents, body.agent) ? agents[body.agent] : undefined;
  if (agent === undefined) throw new Error(`the plan has no agent ${body.agent}`);
  return { agent, body };
}

/** A step's own team replaces its agent's. */
function leads(agent: Agent, body: AgentBody): TeamPlan | undefined {
  return body.team ?? agent.team;
}

function gatedBy(rights: Rights, membership: Membership | undefined): Rights {
  return membership ? { ...rights, judge: membership.gate(rights.judge) } : rights;
}

function idsOf({ attempt, id, parent }: Assignment): AgentRunIds {
  return { step: attempt.path, agent: id, parent: parent?.id ?? null };
}

/** The parent's servers serve its children too, unless their list of tools leaves them out; of one name the own is taken. */
function joining(
  parent: Parent | undefined,
  own: readonly Tool[],
  names: readonly string[] | undefined,
): readonly Tool[] {
  const isNamed = (tool: string): boolean =>
    names === undefined || names.some((name) => name === tool || (name.startsWith("mcp__") && tool.startsWith(`${name.replace(/__\*$/, "")}__`)));
  return (parent?.served ?? []).filter(({ name }) => isNamed(name) && !own.some((tool) => tool.name === name));
}

const defaultDepth = 1;

/** What the step says goes before the agent; a child never has more levels below it than its parent leaves. */
function depthOf(agent: Agent, ofStep: number | undefined, parent: Parent | undefined): number {
  if (parent) return Math.min(parent.depth - 1, agent.limits.depth ?? Infinity);
  return ofStep ?? agent.limits.depth ?? defaultDepth;
}

function clean({ budget, turns }: { readonly budget?: Budget | undefined; readonly turns?: number }): {
  readonly budget?: Budget;
  readonly turns?: number;
} {
  return { ...(budget && { budget }), ...(turns !== undefined && { turns }) };
}

/** What calls of before a resume took away stays away, and what they saw counts as seen. */
async function recall({ messages, times }: Recorded, tools: readonly Tool[], call: ToolCall): Promise<void> {
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
  readonly children: Children;
  readonly team: Team | undefined;
  readonly tell: (event: AgentEvent) => void;
  readonly time: Time;
  readonly assignment: Assignment;
}

/** The run with its first and last event around it; between them lie those of all that it spawned. */
async function reported(
  { house, heard }: Shared,
  { run, children, team, time, assignment, tell }: Reporting,
): Promise<Ended> {
  const { ids, name, model, client, recorded } = run;
  const { clock } = house;
  const start = clock.monotonic();
  const tools = run.tools.map((tool) => tool.name).sort();
  const sandbox = run.rights?.sandbox !== undefined && { sandbox: run.rights.sandbox };
  const continues = recorded && { continues: recorded.agent };
  const spawned = assignment.parent && { spawned: assignment.parent.spawned };
  tell({ ...ids, type: "agent.started", name, model, provider: client.provider, tools, ...sandbox, ...continues, ...spawned });
  children.goOn();
  team?.goOn();
  const events = runAgent(run);
  let calls = 0;
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) {
    if (next.value.type === "tool.started") calls++;
    tell(next.value);
  }
  await team?.close(run.signal.aborted);
  await children.close();
  const result = withDenials(time.judge(next.value), run.rights);
  const { outcome, reason, turns, usage, text, output } = result;
  const answer = output === undefined ? { text } : { text, output };
  for (const [rule, source] of run.rights?.wanting ?? []) assignment.parent?.rights?.wanting.set(rule, source);
  tell({ ...ids, type: "agent.finished", outcome, reason, turns, usage, ...answer, duration: elapsed(clock, start) });
  if (assignment.parent === undefined) heard.forget(ids.agent);
  return { result, calls };
}
