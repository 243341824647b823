import type { Evaluator } from "../expr/template.ts";
import type { SpawnedBy } from "../model/agent-event.ts";
import type { Json } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent } from "../model/plan.ts";
import type { Attempt, Budget, Judge, Tool } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import type { ActiveAgents } from "./active-agents.ts";
import type { AgentPorts } from "./agent-ports.ts";
import type { AgentResult } from "./agent-result.ts";
import type { AgentRun } from "./agent-run.ts";
import type { Mail } from "./mail.ts";
import type { RunRights } from "./permission.ts";
import type { Conversations } from "./conversations.ts";
import type { Recorded, RecordedChild } from "./recorded.ts";
import type { Validators } from "./tool-call.ts";

/** What all agent runs of a workflow run share. */
export interface Shared {
  readonly ports: AgentPorts;
  readonly active: ActiveAgents;
  readonly evaluator: Evaluator;
  /** So that no schema is compiled twice. */
  readonly validators: Validators;
  readonly launch: Launch;
  /** The conversations of those that spawn and are spawned, while they last. */
  readonly heard: Conversations;
}

/** Runs one agent to its end, with all that it spawns. The error is an agent that could not begin. */
export type Launch = (shared: Shared, assignment: Assignment) => Promise<Result<Ended, Failure>>;

/** One agent run to be. */
export interface Assignment {
  /** Its body names the agent. Of a spawned agent it is made of its parent's. */
  readonly attempt: Attempt;
  readonly id: string;
  /** Absent on the agent of a step. */
  readonly parent?: Parent;
  /** Its conversation before the run was resumed, or before it was asked again. */
  readonly recorded?: Recorded;
  /** What it is asked after `recorded`, which had come to an end. */
  readonly more?: Message;
  readonly membership?: Membership;
}

/** What a member of a team has that other spawned agents have not. */
export interface Membership {
  readonly tools: readonly Tool[];
  readonly mail: Mail;
  readonly border: NonNullable<AgentRun["border"]>;
  /** Says no where the team does, whatever the rules say. */
  readonly gate: (judge: Judge) => Judge;
  /** What it is told about the team, behind its instructions. */
  readonly told: string;
}

/** What a spawned agent has of the one that spawned it. */
export interface Parent {
  readonly id: string;
  readonly agent: Agent;
  readonly rights: RunRights | undefined;
  readonly budget: Budget | undefined;
  /** What its models were named as. */
  readonly models: readonly Json[];
  /** The tools of its MCP servers. */
  readonly served: readonly Tool[];
  /** Names of the agents above, its own the last. */
  readonly names: readonly string[];
  /** Levels that may still be spawned below it. */
  readonly depth: number;
  readonly spawned: SpawnedBy;
  /** Takes over what it leaves behind. */
  readonly adopt: (orphans: readonly Orphan[]) => void;
}

/** An agent run whose parent was cancelled alone. */
export interface Orphan {
  readonly child: RecordedChild;
  /** Its report. */
  readonly end: Promise<string>;
}

/** How an agent run ended, and what it did. */
export interface Ended {
  readonly result: AgentResult;
  /** Tool calls that ran. */
  readonly calls: number;
}
