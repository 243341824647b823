import type { Diagnostic, SourceTexts, Span } from "../model/diagnostic.ts";
import type { Plan } from "../model/plan.ts";
import { entry, type MapNode } from "../source/document.ts";
import { visit as findCredentials } from "./checks/credentials.ts";
import type { ModelProblem, RuleProblems, SkillProblems, ToolParameters } from "./checks/check.ts";
import { checks } from "./checks/index.ts";
import { checkCycles } from "./graph.ts";
import { agentsOf, type LinkedWorkflow, stepsOf } from "./linked.ts";
import { linkScope } from "./link.ts";
import { type AgentLinks, createAgentLinks, type MemberLink } from "./link-agents.ts";
import type { AgentFile } from "./agent-shelf.ts";
import { compactAgent, type Library, load } from "./load.ts";
import { translate, type Vocabulary } from "./dialects/index.ts";
import { type CompileDefaults, withDefaults } from "./defaults.ts";
import { createPlan } from "./plan.ts";
import { asMap } from "./read/nodes.ts";
import { readWorkflow } from "./read/workflow.ts";
import { createReport, type Report } from "./report.ts";
import { serversOf, type ServersAround, type ServerUse } from "./servers.ts";
import type { AgentShape, StepShape, Word, WorkflowShape } from "./shape.ts";
import { createTypes, type Types } from "./types.ts";

export interface CompileOptions {
  /** Path of the workflow as typed, or `-` for `stdin`. */
  readonly file: string;
  readonly stdin?: Uint8Array;
  /** Absolute path of the folder flow was started in; diagnostics name files relative to it. */
  readonly cwd: string;
  /** Absolute path of the folder that holds the project: where `agents/` is found and paths in the plan begin. */
  readonly workspace: string;
  /** Absolute path of the user's home folder, where other programs keep agents for all projects. */
  readonly home?: string;
  /** Every tool of the language by name: whether it comes by that. */
  readonly tools: ReadonlyMap<string, boolean>;
  /** JSON Schema of the arguments of a tool that comes with flow. */
  readonly toolParameters: ToolParameters;
  readonly ruleProblems: RuleProblems;
  readonly modelProblem: ModelProblem;
  /** What names in agent files of other programs mean. */
  readonly foreign: Omit<Vocabulary, "tools">;
  /** Absolute path of the folder of the agents that come with flow. */
  readonly builtIns: string;
  readonly defaults?: CompileDefaults;
  /** The workflow is nobody's, made to ask about an agent: its secrets count as declared, and it may be a step's. */
  readonly asksAbout?: boolean;
  readonly skillProblems: SkillProblems;
}

/** What compiling gave: a plan unless there are errors, every problem sorted by position, and the texts they point into. */
export interface Compilation {
  /** Made when it is first asked for. */
  readonly plan?: Plan;
  /** Steps of the workflow itself, without those in groups; absent when there are errors. */
  readonly steps?: number;
  /** Where it declares its inputs, or else its beginning; absent when there are errors. */
  readonly inputsAt?: Span;
  /** Every agent it defines or runs, as it was read; absent when there are errors. */
  readonly agents?: () => readonly AgentShape[];
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

/** Reads a workflow with everything it names, checks all of it in one pass, and makes its plan. Runs nothing. */
export async function compile(options: CompileOptions): Promise<Compilation> {
  const problems = createReport();
  const sources = new Map<string, string>();
  const vocabulary = { ...options.foreign, tools: options.tools };
  const library = await load({
    ...options,
    problems,
    texts: sources,
    translate: (file) => translate(file, vocabulary, problems.report),
  });
  const linked = library && link(library, options.defaults, problems.report);
  if (linked) await checkAll(linked, options, problems);
  const diagnostics = problems.sorted().filter(({ code }) => !(options.asksAbout && code === "FLOW8005"));
  const failed = diagnostics.some((problem) => problem.severity === "error");
  const root = library && linked?.get(library.root);
  if (failed || !library || !linked || !root) return { diagnostics, sources };
  let plan: Plan | undefined;
  return {
    get plan() {
      return (plan ??= createPlan(root, linked, library));
    },
    steps: root.scope.shape.steps.length,
    inputsAt: inputsAt(root.shape),
    agents: () => [...linked.values()].flatMap((workflow) => [...agentsOf(workflow)]),
    diagnostics,
    sources,
  };
}

function inputsAt({ node }: WorkflowShape): Span {
  const { file } = node.at;
  return entry(node, "inputs")?.keyAt ?? { file, line: 1, column: 1, endLine: 1, endColumn: 2 };
}

/** Reads every workflow of the library and resolves its names. */
function link(
  library: Library,
  defaults: CompileDefaults | undefined,
  report: Report,
): ReadonlyMap<string, LinkedWorkflow> {
  const servers: ServersAround = { configured: defaults?.servers, project: library.servers };
  const linking: Linking = {
    links: createAgentLinks({ report, disabled: (name) => defaults?.disabled(name), onFile: searched(report) }),
    servers,
    report,
  };
  const drafts = new Map<string, Draft>();
  for (const [key, file] of library.workflows) {
    const shape = readWorkflow(file, report);
    if (shape) drafts.set(key, linkWorkflow(withDefaults(shape, key === library.root, defaults), linking));
  }
  for (const { shape, scope, workflows, undoWorkflows } of drafts.values()) {
    const called = (word: Word | undefined): Draft | undefined =>
      drafts.get((word && shape.file.workflows.get(word.text)) ?? "");
    for (const { step } of stepsOf(scope)) {
      const target = called(step.workflow);
      const undoTarget = called(step.undoWorkflow);
      if (target) workflows.set(step, target);
      if (undoTarget) undoWorkflows.set(step, undoTarget);
    }
  }
  return drafts;
}

/** A workflow whose sub-workflows are still being filled in. */
interface Draft extends LinkedWorkflow {
  readonly workflows: Map<StepShape, LinkedWorkflow>;
  readonly undoWorkflows: Map<StepShape, LinkedWorkflow>;
}

interface Linking {
  readonly links: AgentLinks;
  readonly servers: ServersAround;
  readonly report: Report;
}

function linkWorkflow(shape: WorkflowShape, { links, servers: around, report }: Linking): Draft {
  const scope = linkScope(shape.scope, report);
  const servers = new Map<MapNode, readonly ServerUse[]>();
  const agents = new Map<StepShape, AgentShape>();
  const undoAgents = new Map<StepShape, AgentShape>();
  const teams = new Map<StepShape, readonly MemberLink[]>();
  for (const { step } of stepsOf(scope)) {
    const agent = links.of(step.agent, shape);
    const undoAgent = links.of(step.undoAgent, shape);
    const team = links.team(step, shape);
    if (team.length > 0) teams.set(step, team);
    if (agent) agents.set(step, agent);
    if (undoAgent) undoAgents.set(step, undoAgent);
    const undo = asMap(entry(step.node, "undo")?.value);
    const question = { workflow: shape, around, report };
    servers.set(step.node, serversOf({ owner: step.node, agent, ...question }));
    if (undo) servers.set(undo, serversOf({ owner: undo, agent: undoAgent, ...question }));
  }
  const led = [...teams.values()].flat().map((link) => link.shape);
  const own = shape.agents.get(compactAgent);
  const compact =
    own ?? (shape.file.agents.has(compactAgent) ? links.of(named(compactAgent, shape), shape) : undefined);
  const crews = links.crews([...agents.values(), ...undoAgents.values(), ...shape.agents.values(), ...led], shape);
  const spawned = [...crews.values()].flatMap(({ subagents, members }) => [...subagents, ...members]);
  for (const agent of new Set([...spawned.map((link) => link.shape), ...led]))
    servers.set(agent.node, serversOf({ owner: agent.node, agent, workflow: shape, around, report }));
  return {
    shape,
    scope,
    agents,
    undoAgents,
    compact,
    crews,
    teams,
    servers,
    workflows: new Map(),
    undoWorkflows: new Map(),
  };
}

function named(text: string, { node }: WorkflowShape): NonNullable<StepShape["agent"]> {
  return { name: { text, at: node.at } };
}

/** A credential in an agent's file is found wherever the agent is used. */
function searched(report: Report): (file: AgentFile) => void {
  return ({ document, body }) => {
    findCredentials(document, document.root, report);
    if (body) findCredentials(document, body, report);
  };
}

async function checkAll(
  linked: ReadonlyMap<string, LinkedWorkflow>,
  options: CompileOptions,
  { report, add }: ReturnType<typeof createReport>,
): Promise<void> {
  const known = new Map<LinkedWorkflow, Types>();
  const typesOf = (workflow: LinkedWorkflow): Types => {
    const types = known.get(workflow) ?? createTypes(workflow, typesOf);
    known.set(workflow, types);
    return types;
  };
  for (const workflow of linked.values()) {
    checkCycles(workflow.scope, report);
    for (const check of checks) await check({ ...options, workflow, types: typesOf(workflow), report, add });
  }
}
