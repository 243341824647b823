import type { Hooks } from "../model/hooks.ts";
import type { Json } from "../model/json.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Agent, Plan } from "../model/plan.ts";
import type { Attempt, Clock, Emit, ModelClient, Rights, Spend, Tool } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import type { AgentRun } from "./agent-run.ts";
import type { Conversations } from "./conversations.ts";

/** What agent steps need from the rest of the house; one for each run. */
export interface AgentPorts {
  readonly agents: Plan["agents"];
  /**
   * The client of a model as `model:` names it: an id, or a map of `id`, `base-url`, `key`; undefined when neither step,
   * agent nor workflow names one. `step` is the step path, for a model whose file is named relative to a workflow.
   */
  readonly client: (model: Json | undefined, step: string) => Promise<Result<ModelClient, Failure>>;
  /** The tools of these names for the step at that path; the default ones when undefined. */
  readonly tools: (names: readonly string[] | undefined, step: string) => ToolsFound | Promise<ToolsFound>;
  /** Connects the step's MCP servers; `names` are the tools it may have. Without: there are none. */
  readonly servers?: (attempt: Attempt, names: readonly string[] | undefined) => Promise<Result<Served, Failure>>;
  readonly workspace: string;
  readonly emit: Emit;
  readonly clock: Clock;
  /** Keeps a text too long for the model and gives the path to read it at. */
  readonly spill: (text: string) => string;
  /** Runs the script of a step's `check` as a `run` step would be, with the step's `env`. */
  readonly check?: (script: string, attempt: Attempt) => Promise<StepResult>;
  /** What an agent, by its key, is told by files of the project. */
  readonly instructions?: (
    agent: string,
  ) => Result<readonly { readonly path: string; readonly text: string }[], Failure>;
  /** Who is told of an agent run's moments. */
  readonly hooks?: (agent: Agent, place: AgentPlace) => Hooks | undefined;
  /** What an agent, by its key, has beside: skills, a memory. */
  readonly extras?: (agent: string, names: readonly string[] | undefined) => Extras;
  /** What an agent step may do; everything its tools can when absent. */
  readonly rights?: (attempt: Attempt) => Rights;
  /** What the log has of the agents before the run was resumed. */
  readonly before?: Pick<Conversations, "runsOf" | "take" | "spawned">;
  /** Models that some agent of the plan names, by their ids: one that spawns may choose among them. */
  readonly models?: ReadonlyMap<string, Json>;
  /** False: nobody wants the pieces of replies, and they are not sent. */
  readonly pieces?: boolean;
  /** What a replay keeps to. */
  readonly replayed?: Replayed;
  /** A request as the log may hold it: secrets masked. As it is when absent. */
  readonly masked?: NonNullable<AgentRun["masked"]>;
  /** Who summarises conversations: its instructions, and what it names as its models. */
  readonly compact: () => Promise<{ readonly instructions: string; readonly models: readonly Json[] }>;
  /** Gives a member of a team a git worktree of its own; absent where there are none. */
  readonly isolate?: (asked: Isolation) => Promise<Result<Isolated, Failure>>;
  /** What an agent run of the log has spent; asked for one that is gone on with. */
  readonly spent?: (agent: string) => Spend;
}
/** What in a recorded run was a matter of time, and not of what a model said. */
export interface Replayed {
  readonly readings: NonNullable<AgentRun["readings"]>;
  /** The runs of members of the teams that an agent run led, in the order in which they began. */
  memberRuns(lead: string): readonly MemberRun[];
}

export interface MemberRun {
  readonly member: string;
  /** Absent: others had written to it. */
  readonly task?: string;
  /** What others had written then, by the ids of their messages. */
  readonly messages: readonly string[];
  /** Id of its agent run; absent of one that never came to have one. */
  readonly id?: string;
}

/** Where an agent run belongs: its step, its id, the folder it works in. */
export interface AgentPlace {
  readonly step: string;
  readonly agent: string;
  readonly workspace: string;
  /** Of a sub-agent: who spawned it. */
  readonly parent?: Agent;
}
/** The tools of the agent's MCP servers; the agent closes them when it is over. */
export interface Served {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}
/** What an agent has beside its tools and its instructions. */
export interface Extras {
  readonly tools: readonly Tool[];
  /** Texts that stand behind its instructions; `tools` are the names of all it is offered. */
  told(tools: readonly string[]): readonly string[];
}
export type ToolsFound = Result<readonly Tool[], Failure>;

/** Who is to work in a worktree of its own, and its place among those whose changes are applied. */
export interface Isolation {
  readonly step: string;
  /** Who works there on what: the same after a resume. */
  readonly owner: string;
  /** Changes of those that are open at the same time are applied in this order. */
  readonly order: number;
  /** The folder its changes go into, where that is not the workspace. */
  readonly into: string | undefined;
  /** It goes on with what it had done before a resume. */
  readonly goesOn: boolean;
  readonly signal: AbortSignal;
}
/** A worktree in use. Whoever opened it closes it, once. */
export interface Isolated {
  /** Absolute; undefined when its changes were brought in before the resume, and nothing is left to do. */
  readonly folder: string | undefined;
  /** `problem`: why its changes are not where they belong; `note`: what became of them. */
  close(end: {
    readonly apply: boolean;
    /** Told when others have to bring in theirs before; it resolves when that is over. */
    readonly wait: (turn: Promise<unknown>) => Promise<void>;
  }): Promise<Brought>;
}
export interface Brought {
  readonly problem?: string;
  readonly note?: string;
}
