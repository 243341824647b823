import type { MapNode } from "../source/document.ts";
import type { LinkedScope } from "./link.ts";
import type { Crew, MemberLink } from "./link-agents.ts";
import type { ServerUse } from "./servers.ts";
import type { AgentShape, StepShape, WorkflowShape } from "./shape.ts";

/** A workflow whose names are resolved: every scope's edges, every step's agent and sub-workflow. */
export interface LinkedWorkflow {
  readonly shape: WorkflowShape;
  readonly scope: LinkedScope;
  readonly agents: ReadonlyMap<StepShape, AgentShape>;
  readonly workflows: ReadonlyMap<StepShape, LinkedWorkflow>;
  /** The agents and sub-workflows of `undo`s. */
  readonly undoAgents: ReadonlyMap<StepShape, AgentShape>;
  readonly undoWorkflows: ReadonlyMap<StepShape, LinkedWorkflow>;
  /** The agent that summarises conversations, where it is not flow's own. */
  readonly compact: AgentShape | undefined;
  /** Whom each agent of the workflow may spawn and lead. */
  readonly crews: ReadonlyMap<AgentShape, Crew>;
  /** The members of the teams that steps name themselves. */
  readonly teams: ReadonlyMap<StepShape, readonly MemberLink[]>;
  /** The MCP servers of a step, or of an `undo`, by what stands in the file. */
  readonly servers: ReadonlyMap<MapNode, readonly ServerUse[]>;
}

/** Every agent a workflow defines or runs, and whom those may spawn and lead, each once. */
export function agentsOf({ shape, agents, undoAgents, crews }: LinkedWorkflow): ReadonlySet<AgentShape> {
  return new Set([...agents.values(), ...undoAgents.values(), ...shape.agents.values(), ...crews.keys()]);
}

/** Every step of a scope and of the groups in it, each with the scope it stands in. */
export function* stepsOf(scope: LinkedScope): Generator<{ readonly step: StepShape; readonly scope: LinkedScope }> {
  for (const step of scope.shape.steps) {
    yield { step, scope };
    const inner = scope.inner.get(step.id);
    if (inner) yield* stepsOf(inner);
  }
}
