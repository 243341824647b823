import type { Reference } from "../expr/inspect.ts";
import type { ParsedExpression } from "../expr/parse.ts";
import type { Span } from "../model/diagnostic.ts";
import type { Agent, Data, Input, Limits, Member, Named, RuleData, Step, Template } from "../model/plan.ts";
import type { MapNode } from "../source/document.ts";
import type { Translated } from "./dialects/index.ts";
import type { WorkflowFile } from "./load.ts";
import type { ServerShape } from "./server-shape.ts";
import type { Word } from "./word.ts";

export type { Word } from "./word.ts";

/** A workflow file as read: every value typed and located, nothing linked yet. */
export interface WorkflowShape {
  readonly file: WorkflowFile;
  readonly node: MapNode;
  readonly name: string;
  readonly description?: string;
  readonly inputs: readonly Input[];
  readonly vars: readonly Named<Template>[];
  readonly env: readonly Named<Template>[];
  readonly secrets: readonly Word[];
  readonly limits: Limits;
  readonly expect: { readonly steps: readonly Word[]; readonly outputs: readonly Word[] };
  readonly settings: { readonly permissions?: RuleData; readonly mcp?: Data; readonly tools?: Data };
  readonly agents: ReadonlyMap<string, AgentShape>;
  /** Models of agents that name none. */
  readonly models: readonly Template[];
  /** The MCP servers it defines. */
  readonly servers: ReadonlyMap<string, ServerShape>;
  /** Names of the workflow's own tools. */
  readonly tools: readonly string[];
  readonly scope: ScopeShape;
  /** Expressions that belong to the file, not to a step: `vars`, `env`, `defaults`. */
  readonly uses: readonly Use[];
}

export interface ScopeShape {
  readonly steps: readonly StepShape[];
  /** Ids, in lower case, of steps that could not be read; why has been reported. */
  readonly unread: ReadonlySet<string>;
  readonly edges: readonly EdgeShape[];
  /** The scope's own outputs: a workflow's or a group's. */
  readonly outputs: readonly NamedAt[];
  readonly outputUses: readonly Use[];
}

export interface StepShape {
  readonly id: string;
  readonly idAt: Span;
  readonly node: MapNode;
  /** The step of the plan, but for what linking adds: its agent's key, its scope. */
  readonly step: Step;
  readonly needs: readonly NeedShape[];
  /** Expressions whose references order this step after others. */
  readonly uses: readonly Use[];
  /** `until` and a group's `outputs`: they see the inner steps first. */
  readonly innerUses: readonly Use[];
  /** `undo` may refer to its own step. */
  readonly undoUses: readonly Use[];
  readonly condition?: Use;
  readonly inner?: ScopeShape;
  /** The agent of the step is named by this text or defined right here. */
  readonly agent?: { readonly name: Word } | { readonly inline: AgentShape };
  readonly workflow?: Word;
  /** Replaces the team of its agent. */
  readonly team?: TeamShape;
  /** The same of the step's `undo`. */
  readonly undoAgent?: StepShape["agent"];
  readonly undoWorkflow?: Word;
}

/** One entry of `needs` (`step` may be `*`) or of `edges`. */
export interface NeedShape {
  readonly step: Word;
  readonly if?: { readonly source: string; readonly at: Span };
  readonly uses: readonly Use[];
}
export interface EdgeShape extends NeedShape {
  readonly to: Word;
}

/** An agent definition as read. */
export interface AgentShape {
  readonly key: string;
  readonly agent: Agent;
  readonly node: MapNode;
  readonly uses: readonly Use[];
  readonly disabled: boolean;
  readonly hidden: boolean;
  readonly tools: readonly Word[];
  /** Whom it may spawn; `*` is whoever can be found. */
  readonly subagents: readonly Word[];
  readonly team?: TeamShape;
  /** MCP servers: those it names, and those it defines. */
  readonly servers: { readonly names: readonly Word[]; readonly own: ReadonlyMap<string, ServerShape> };
  /** Of a file that was written for another program: what its fields became. */
  readonly foreign?: Translated;
}

/** The members of a team, and how many of them work at once. */
export interface TeamShape {
  readonly members: readonly MemberShape[];
  readonly parallel: number;
  readonly at: Span;
}

/** One that works for a lead: what the team calls it, its agent, and its terms. */
export interface MemberShape {
  readonly name: Word;
  readonly agent: Word;
  readonly terms: Omit<Member, "name" | "key">;
}

export interface NamedAt extends Named<Template> {
  readonly at: Span;
}

/** An expression as it stands in a file: what it says, where it stands, and where exactly a part of it stands. */
export interface Use {
  readonly parsed: ParsedExpression;
  readonly source: string;
  readonly references: readonly Reference[];
  readonly place: Place;
  readonly at: Span;
  span(offset: number, length: number): Span;
}

/** A place where an expression may stand: its name for messages, and what it can see there. */
export interface Place {
  readonly what: string;
  readonly contexts: ReadonlySet<string>;
  /** Status functions may be called. */
  readonly status: boolean;
}
