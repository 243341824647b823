import type { Span } from "../../model/diagnostic.ts";
import type { StepKind } from "../../model/plan.ts";
import { entry, type MapNode } from "../../source/document.ts";
import { type LinkedWorkflow, stepsOf } from "../linked.ts";
import type { Crew } from "../link-agents.ts";
import { asMap, entriesOf } from "../read/nodes.ts";
import { kindOf } from "../read/kind.ts";
import { anArticle, type Report } from "../report.ts";
import type { AgentShape, StepShape } from "../shape.ts";
import type { Check } from "./check.ts";

/** Keys every kind of step may be written with, but that mean nothing on some: the kinds and the reason. */
export const misfits: { readonly [key: string]: { readonly kinds: readonly StepKind[]; readonly reason: string } } = {
  retry: { kinds: ["set", "approve"], reason: "there is nothing to try again" },
  timeout: { kinds: ["set"], reason: "it takes no time" },
  parallel: {
    kinds: ["set", "approve"],
    reason: "it holds no place among the others: values are set at once, and whoever is asked is asked for all items",
  },
  cache: { kinds: ["set", "approve"], reason: "there is nothing to save by reusing it" },
  env: {
    kinds: ["set", "approve", "steps", "workflow"],
    reason: "it starts no process; give `env` to the steps inside, or to the whole workflow",
  },
  with: { kinds: ["run", "steps", "approve", "set"], reason: "only an agent, a tool or another workflow takes inputs" },
  limits: { kinds: ["set", "approve"], reason: "it spends nothing" },
  undo: { kinds: ["set", "approve"], reason: "it changes nothing outside" },
  rerun: {
    kinds: ["set", "approve", "steps", "workflow"],
    reason: "only `agent`, `run` and `tool` can be cut off in the middle",
  },
  isolation: {
    kinds: ["set", "approve", "tool", "steps", "workflow"],
    reason:
      "only an agent or a command has a worktree of its own; around others, give it to the `agent` and `run` steps inside",
  },
};

/** No key is accepted and then ignored: one that means nothing on a kind is refused with the reason. */
export const checkKeyFit: Check = ({ workflow, report }) => {
  for (const { step } of stepsOf(workflow.scope)) {
    checkKeys(step.node, step.step.kind, report);
    const undo = entry(step.node, "undo");
    if (step.step.cache !== undefined) checkCache(step, workflow, report);
    const undoNode = asMap(undo?.value);
    if (undoNode) checkUndo(undoNode, report);
  }
};

/** Outputs that are reused cannot stand for what was done outside, nor for what a person said. */
function checkCache(step: StepShape, workflow: LinkedWorkflow, report: Report): void {
  const at = entry(step.node, "cache")?.keyAt ?? step.idAt;
  const undo = entry(step.node, "undo");
  if (undo) {
    const message =
      "a step with `undo` has an effect outside, so its outputs cannot stand for it: `cache` and `undo` exclude each other";
    report("FLOW2009", at, message, { related: [{ message: "`undo` is here", at: undo.keyAt }] });
  }
  const isolation = entry(step.node, "isolation");
  if (isolation) {
    const message = "outputs that are reused bring no changes with them: `cache` and `isolation` exclude each other";
    report("FLOW2009", at, message, { related: [{ message: "`isolation` is here", at: isolation.keyAt }] });
  }
  checkTeamApart(step, workflow, { at, report, within: false });
  for (const [inner, itsWorkflow] of stepsInside(step, workflow, new Set())) {
    const effect = entry(inner.node, "undo");
    const approval = entry(inner.node, "approve");
    const apart = entry(inner.node, "isolation");
    checkTeamApart(inner, itsWorkflow, { at, report, within: true });
    if (apart)
      report(
        "FLOW2009",
        at,
        `the step \`${inner.id}\` inside has \`isolation\`, and reused outputs do not bring its changes with them`,
        { related: [{ message: "`isolation` is here", at: apart.keyAt }] },
      );
    if (effect)
      report(
        "FLOW2009",
        at,
        `the step \`${inner.id}\` inside has an \`undo\`, so it has an effect outside that reused outputs cannot stand for`,
        { related: [{ message: "`undo` is here", at: effect.keyAt }] },
      );
    if (approval)
      report(
        "FLOW2009",
        at,
        `the step \`${inner.id}\` inside asks a person, and an answer is given once and not reused`,
        {
          related: [{ message: "`approve` is here", at: approval.keyAt }],
        },
      );
  }
}

interface Cached {
  readonly at: Span;
  readonly report: Report;
  /** It is a step inside the one with `cache`. */
  readonly within: boolean;
}

/** What members change in worktrees of their own comes into the folder of their lead, and no cache brings it back. */
function checkTeamApart(step: StepShape, workflow: LinkedWorkflow, { at, report, within }: Cached): void {
  const lead = workflow.agents.get(step);
  const crewOf = (agent: AgentShape | undefined): Crew => (agent && workflow.crews.get(agent)) ?? nobody;
  const crew = crewOf(lead);
  const own = step.team && workflow.teams.get(step);
  const queue: Crew[] = [own ? { ...crew, members: own } : crew];
  const seen = new Set<AgentShape>();
  for (let next = queue.shift(); next; next = queue.shift()) {
    const { members, subagents } = next;
    const found = members.find(({ member }) => member.terms.isolation !== undefined);
    if (found) {
      const whose = within ? `the step \`${step.id}\` inside` : "this step";
      const message = `below ${whose} a team works in worktrees of its own, and reused outputs do not bring its changes with them`;
      const { name, agent } = found.member;
      report("FLOW2009", at, message, { related: [{ message: `\`${name.text}\` has \`isolation\``, at: agent.at }] });
      return;
    }
    const agents = [...members, ...subagents].map(({ shape }) => shape).filter((shape) => !seen.has(shape));
    for (const agent of agents) seen.add(agent);
    queue.push(...agents.map(crewOf));
  }
}

const nobody: Crew = { members: [], subagents: [] };

/** The steps of a group or a sub-workflow, at every depth, each with its workflow; each workflow once. */
function* stepsInside(
  step: StepShape,
  workflow: LinkedWorkflow,
  seen: Set<LinkedWorkflow>,
): Generator<readonly [StepShape, LinkedWorkflow]> {
  const target = workflow.workflows.get(step);
  if (target !== undefined && seen.has(target)) return;
  if (target !== undefined) seen.add(target);
  for (const inner of step.inner?.steps ?? target?.scope.shape.steps ?? []) {
    yield [inner, target ?? workflow];
    yield* stepsInside(inner, target ?? workflow, seen);
  }
}

function checkUndo(node: MapNode, report: Report): void {
  const kind = kindOf(node);
  if (!kind) return;
  checkKeys(node, kind, report);
  if (!["steps", "approve", "set"].includes(kind)) return;
  const at = entriesOf(node).find((it) => it.key === kind)?.keyAt ?? node.at;
  report(
    "FLOW2008",
    at,
    `\`undo\` cannot be ${anArticle(kind)} step: it is one command, tool call, agent or workflow that takes the effect back`,
  );
}

function checkKeys(node: MapNode, kind: StepKind, report: Report): void {
  for (const { key, keyAt } of node.entries) {
    const misfit = Object.hasOwn(misfits, key) ? misfits[key] : undefined;
    if (misfit?.kinds.includes(kind))
      report("FLOW2008", keyAt, `\`${key}\` makes no sense on ${anArticle(kind)} step: ${misfit.reason}`);
  }
}
