import type { Span } from "./diagnostic.ts";
import type { Json } from "./json.ts";
import type { FailureKind } from "./outcome.ts";
import type { MemberTerms } from "./team.ts";

/**
 * A compiled workflow: plain JSON, complete (every sub-workflow and agent is inside), reproducible (`digest`).
 *
 * Two rules keep the digest honest: `at` holds positions and is left out of it; whatever a user wrote as data lies
 * below a key named `json`, where nothing is left out. Maps with user-chosen keys are therefore lists of `name`d entries.
 */
export interface Plan {
  readonly version: 1;
  /** sha256 (hex) over the canonical JSON of everything else here without positions and `files`. */
  readonly digest: string;
  /** Key of the root in `workflows`. */
  readonly root: string;
  /** By key: the path of the file relative to the workspace, `/` as separator (`-` for stdin). */
  readonly workflows: { readonly [key: string]: Workflow };
  /** By key: `path` of an agent file, or `path#steps.x.agent` / `path#agents.name` for an inline one. */
  readonly agents: { readonly [key: string]: Agent };
  /** The agent that summarises conversations, where the project has one of its own. */
  readonly compact?: string;
  readonly files: readonly PlanFile[];
}

export interface PlanFile {
  readonly path: string;
  readonly sha256: string;
}

export interface Workflow {
  readonly path: string;
  readonly name: string;
  readonly description?: string;
  readonly inputs: readonly Input[];
  readonly vars: readonly Named<Template>[];
  /** Added to every step's environment; a step's own name replaces it. */
  readonly env: readonly Named<Template>[];
  /** Names of environment variables. */
  readonly secrets: readonly string[];
  readonly limits: Limits;
  readonly expect: { readonly steps: readonly string[]; readonly outputs: readonly string[] };
  readonly permissions?: RuleData;
  /** MCP servers and custom tools as written, after the schema check. */
  readonly mcp?: Data;
  readonly tools?: Data;
  readonly scope: Scope;
}

export interface Input {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the value. */
  readonly schema: Data;
  /** Present when the input has a default. */
  readonly default?: Data;
  readonly at: Span;
}

/** A set of steps that see each other: a workflow's own, or a group's. */
export interface Scope {
  /** In the order they are written; an edge and the scheduler name a step by its index here. */
  readonly steps: readonly Step[];
  readonly edges: readonly Edge[];
  readonly outputs: readonly Named<Template>[];
}

export interface Edge {
  readonly from: number;
  readonly to: number;
  /** A hard edge demands success of its source; a soft one only orders. */
  readonly hard: boolean;
  /** `written`: from `needs` or `edges`; `reference`: inferred from an expression. */
  readonly origin: "written" | "reference";
  readonly if?: Expression;
  readonly at: Span;
}

export type StepKind = "agent" | "run" | "tool" | "workflow" | "steps" | "approve" | "set";

/**
 * One step. The engine reads everything but `body`, which belongs to the step kind. `inputs` is a map of every value
 * the kind takes at run time (`env`, `with`, `prompt`, `stdin`, `cwd`, `argv`, `set` …): the engine resolves it and
 * hands the result to `execute` without knowing what the names mean.
 */
export interface Step {
  readonly id: string;
  readonly kind: StepKind;
  readonly name?: string;
  readonly description?: string;
  readonly at: Span;
  readonly if?: Condition;
  readonly join: "all" | "any";
  readonly inputs: Template;
  readonly body: Body;
  /** Present on a step that contains steps: a group's own, or another workflow by its key. */
  readonly scope?: { readonly inline: Scope } | { readonly workflow: string };
  /** The output mapping; it sees `result`. Absent: the kind's default outputs. */
  readonly outputs?: readonly Named<Template>[];
  readonly foreach?: Foreach;
  readonly repeat?: Repeat;
  readonly cache?: { readonly key?: Template; readonly files: Template };
  readonly retry?: Retry;
  /** Milliseconds, or an expression over `inputs` and `vars` that gives a duration text. */
  readonly timeout?: number | Template;
  readonly continueOnError: boolean;
  readonly undo?: Undo;
  readonly limits: Limits;
  readonly rerun?: "never";
  readonly isolation?: "worktree";
}

/** What a kind needs beside its `inputs`; nothing in it is an expression. */
export type Body =
  | {
      readonly kind: "agent";
      readonly agent: string;
      readonly output?: Data;
      readonly models: readonly Template[];
      readonly check?: Check;
      readonly permissions?: RuleData;
      readonly overrides: Data;
      /** Replaces the agent's own. */
      readonly team?: Team;
      readonly mcp?: StepServers;
      /** The MCP servers of agents that may be spawned below, by their keys; definitions as in {@link StepServers}, below `crew`. */
      readonly crew?: readonly Named<StepServers>[];
    }
  | {
      readonly kind: "run";
      readonly command: { readonly script: string } | { readonly argv: true };
      readonly shell: string;
      readonly output?: Data;
    }
  | { readonly kind: "tool"; readonly tool: string; readonly output?: Data; readonly mcp?: StepServers }
  | { readonly kind: "workflow" }
  | { readonly kind: "steps" }
  | { readonly kind: "approve"; readonly form?: Data }
  | { readonly kind: "set" };

/** The MCP servers of a step; their definitions are among its `inputs`, below `mcp`, by their names. */
export interface StepServers {
  readonly servers: readonly Server[];
  /** Names of the step's own `env`: these outweigh what a definition says. */
  readonly env: readonly string[];
}

export interface Server {
  readonly name: string;
  /** What defines it: a file by its path in the workspace, or an agent's key. */
  readonly file: string;
  /** It ends with the step, and no other step is given the same one. */
  readonly own: boolean;
  /** `${VAR}` in its definition stands for a variable of the environment flow runs in. */
  readonly expands: boolean;
  /** Where a relative `cwd` begins, and where it starts without one: the workspace, or the folder flow was started in. */
  readonly base: "workspace" | "cwd";
}

export interface Check {
  readonly script: string;
  readonly max: number;
}

export interface Foreach {
  readonly items: Template;
  readonly parallel?: number;
  readonly failFast: boolean;
  /** True when it was written as `matrix`: the item is also `matrix`. */
  readonly matrix: boolean;
}

export interface Repeat {
  readonly until: Expression;
  readonly max: number;
  readonly onMax: "fail" | "accept";
}

export interface Retry {
  /** Extra tries after the first. */
  readonly max: number;
  /** Milliseconds. */
  readonly backoff: number;
  readonly factor: number;
  readonly jitter: boolean;
  /** Milliseconds. */
  readonly cap: number;
  readonly on: readonly FailureKind[];
}

export interface Undo {
  readonly kind: StepKind;
  readonly inputs: Template;
  readonly body: Body;
  readonly scope?: { readonly workflow: string };
  readonly at: Span;
}

export interface Limits {
  /** US dollars. */
  readonly cost?: number;
  readonly tokens?: number;
  /** Milliseconds. */
  readonly duration?: number;
  readonly parallel?: number;
  readonly turns?: number;
  readonly depth?: number;
  readonly children?: number;
}

/** An agent definition: a function with typed inputs, instructions, tools and typed output. */
export interface Agent {
  readonly name: string;
  readonly description?: string;
  readonly mode: "primary" | "subagent" | "all";
  readonly inputs: readonly Input[];
  readonly instructions?: string;
  /** Sees only its own `inputs`. */
  readonly prompt?: Template;
  /** Absent: the default tools. */
  readonly tools?: readonly string[];
  readonly permissions?: RuleData;
  readonly models: readonly Template[];
  readonly output?: Data;
  readonly limits: Limits;
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxOutput?: number;
  readonly effort?: string;
  /** Whom it may spawn: the names it has for them, and their keys. */
  readonly subagents?: readonly Named<string>[];
  readonly team?: Team;
  /** Everything else of the definition, as written, after the schema check. */
  readonly settings: Data;
  readonly at: Span;
}

/** The agents that work for a lead: the names it has for them, and their keys. */
export interface Team {
  readonly members: readonly Member[];
  /** How many of them work at the same time. */
  readonly parallel: number;
}

/** One that works for a lead, and its terms; `key` is its agent's. */
export interface Member extends Omit<MemberTerms, "agent"> {
  readonly key: string;
}

/** Data as the user wrote it; see {@link Plan} for why it lies below `json`. */
export interface Data {
  readonly json: Json;
}

/** Permission rules as written, after the schema check. */
export interface RuleData extends Data {
  /** They may take away and never give, whatever they say. */
  readonly narrows?: true;
  /** `lines`: the line of each rule, by its place in the block (`Bash`, `Bash/git *`, `deny/0`). */
  readonly at: { readonly file: string; readonly lines: { readonly [place: string]: number } };
}

export interface Named<T> {
  readonly name: string;
  readonly value: T;
}

export interface Expression {
  /** Without the `${{ }}` around it. */
  readonly source: string;
  readonly at: Span;
}

/** A condition. Without a status function in it, it means `success() && (…)`. */
export interface Condition extends Expression {
  readonly status: boolean;
}

/** A value that may hold expressions, parsed at compile time. */
export type Template =
  | { readonly type: "data"; readonly json: Json }
  /** Exactly one `${{ }}`: keeps its JSON type. */
  | { readonly type: "expression"; readonly source: string; readonly at: Span }
  /** Text around expressions: always a string. */
  | { readonly type: "text"; readonly parts: readonly (string | Expression)[] }
  | { readonly type: "list"; readonly items: readonly Template[] }
  | { readonly type: "map"; readonly entries: readonly Named<Template>[] };
