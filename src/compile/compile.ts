import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { nearest } from "../model/names.ts";
import type { Plan } from "../model/plan.ts";
import { entry, type MapNode } from "../source/document.ts";
import { visit as findCredentials } from "./checks/credentials.ts";
import type { ModelProblem, RuleProblems, SkillProblems, ToolParameters } from "./checks/check.ts";
import { checks } from "./checks/index.ts";
import { checkCycles } from "./graph.ts";
import { agentsOf, type LinkedWorkflow, stepsOf } from "./linked.ts";
import { linkScope } from "./link.ts";
import { type AgentFile, type Library, load } from "./load.ts";
import { type Translated, translate, type Vocabulary } from "./dialects/index.ts";
import { type CompileDefaults, withDefaults } from "./defaults.ts";
import { createPlan } from "./plan.ts";
import type { ProjectServers } from "./project-servers.ts";
import { readAgent } from "./read/agent.ts";
import { asMap } from "./read/nodes.ts";
import { readWorkflow } from "./read/workflow.ts";
import { createReport, didYouMean, oneOf, type Report } from "./report.ts";
import { serversOf, type ServerUse } from "./servers.ts";
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
  /** Every tool of the language by name: whether this version has it. */
  readonly tools: ReadonlyMap<string, boolean>;
  /** JSON Schema of the arguments of a tool that this version has. */
  readonly toolParameters: ToolParameters;
  readonly ruleProblems: RuleProblems;
  readonly modelProblem: ModelProblem;
  /** What names in agent files of other programs mean. */
  readonly foreign: Omit<Vocabulary, "tools">;
  readonly defaults?: CompileDefaults;
  readonly skillProblems: SkillProblems;
}

/** What compiling gave: a plan unless there are errors, every problem sorted by position, and the texts they point into. */
export interface Compilation {
  /** Made when it is first asked for. */
  readonly plan?: Plan;
  /** Steps of the workflow itself, without those in groups; absent when there are errors. */
  readonly steps?: number;
  /** Every agent it defines or runs, as it was read; absent when there are errors. */
  readonly agents?: () => readonly AgentShape[];
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

/** Reads a workflow with everything it names, checks all of it in one pass, and makes its plan. Runs nothing. */
export async function compile(options: CompileOptions): Promise<Compilation> {
  const problems = createReport();
  const sources = new Map<string, string>();
  const library = await load({ ...options, problems, texts: sources });
  const foreign = library && (await translateAll(library, options, problems.report));
  const linked = library && foreign && link(library, { foreign, defaults: options.defaults }, problems.report);
  if (linked) await checkAll(linked, options, problems);
  const diagnostics = problems.sorted();
  const failed = diagnostics.some((problem) => problem.severity === "error");
  const root = library && linked?.get(library.root);
  if (failed || !library || !linked || !root) return { diagnostics, sources };
  let plan: Plan | undefined;
  return {
    get plan() {
      return (plan ??= createPlan(root, linked, library));
    },
    steps: root.scope.shape.steps.length,
    agents: () => [...linked.values()].flatMap((workflow) => [...agentsOf(workflow)]),
    diagnostics,
    sources,
  };
}

/** Agents of other programs in our own keys, by the key of their files. */
type Foreign = ReadonlyMap<string, Translated | undefined>;

async function translateAll(library: Library, options: CompileOptions, report: Report): Promise<Foreign> {
  const found = new Map<string, Translated | undefined>();
  const vocabulary = { ...options.foreign, tools: options.tools };
  for (const { agents } of library.workflows.values()) {
    for (const { key, document, dialect } of agents.values())
      if (dialect && !found.has(key)) found.set(key, await translate({ key, document, dialect }, vocabulary, report));
  }
  return found;
}

/** Reads every workflow of the library and resolves its names. */
function link(library: Library, { foreign, defaults }: LinkSource, report: Report): Map<string, LinkedWorkflow> {
  const linking: Linking = { agentShapes: { shapes: new Map(), foreign }, project: library.servers, report };
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

interface LinkSource {
  readonly foreign: Foreign;
  readonly defaults: CompileDefaults | undefined;
}

/** A workflow whose sub-workflows are still being filled in. */
interface Draft extends LinkedWorkflow {
  readonly workflows: Map<StepShape, LinkedWorkflow>;
  readonly undoWorkflows: Map<StepShape, LinkedWorkflow>;
}

/** Agents of files, each read once. */
interface KnownAgents {
  readonly shapes: Map<string, AgentShape | undefined>;
  readonly foreign: Foreign;
}

interface Linking {
  readonly agentShapes: KnownAgents;
  readonly project: ProjectServers | undefined;
  readonly report: Report;
}

function linkWorkflow(shape: WorkflowShape, { agentShapes, project, report }: Linking): Draft {
  const scope = linkScope(shape.scope, report);
  const servers = new Map<MapNode, readonly ServerUse[]>();
  const agents = new Map<StepShape, AgentShape>();
  const undoAgents = new Map<StepShape, AgentShape>();
  for (const { step } of stepsOf(scope)) {
    const agent = agentOf({ link: step.agent, shape, agentShapes, report });
    const undoAgent = agentOf({ link: step.undoAgent, shape, agentShapes, report });
    if (agent) agents.set(step, agent);
    if (undoAgent) undoAgents.set(step, undoAgent);
    const undo = asMap(entry(step.node, "undo")?.value);
    const around = { workflow: shape, project, report };
    servers.set(step.node, serversOf({ owner: step.node, agent, ...around }));
    if (undo) servers.set(undo, serversOf({ owner: undo, agent: undoAgent, ...around }));
  }
  return { shape, scope, agents, undoAgents, servers, workflows: new Map(), undoWorkflows: new Map() };
}

interface AgentQuestion {
  readonly link: StepShape["agent"];
  readonly shape: WorkflowShape;
  readonly agentShapes: KnownAgents;
  readonly report: Report;
}

function agentOf({ link: named, shape, agentShapes, report }: AgentQuestion): AgentShape | undefined {
  if (!named) return undefined;
  if ("inline" in named) return named.inline;
  const { text, at } = named.name;
  const inline = shape.agents.get(text);
  if (inline) return inline;
  const file = shape.file.agents.get(text);
  if (file) return readOnce(file, agentShapes, report);
  if (!text.includes("${{") && !shape.file.refusedAgents.has(text)) {
    const places = `neither in this file's \`agents\`, nor as ${text}.yaml or ${text}.md in an \`agents\` folder, nor in one of another program`;
    report("FLOW6001", at, `there is no agent \`${text}\`: ${places}`, () =>
      agentMeant(text, [...shape.agents.keys(), ...shape.file.agentsNearby()]),
    );
  }
  return undefined;
}

function agentMeant(text: string, known: readonly string[]): ReturnType<typeof didYouMean> {
  const near = nearest(text, known);
  if (near !== undefined || known.length === 0) return didYouMean(near);
  return { suggestion: `known here: ${oneOf(known)}` };
}

function readOnce(file: AgentFile, { shapes, foreign }: KnownAgents, report: Report): AgentShape | undefined {
  if (shapes.has(file.key)) return shapes.get(file.key);
  const { key, stem: name, document, body, dialect } = file;
  const translated = foreign.get(key);
  const source = { key, name, document, ...(body && { body }) };
  const isReadable = dialect === undefined || translated !== undefined;
  const shape = isReadable
    ? readAgent(
        { ...source, node: translated?.node ?? document.root, ...(translated && { foreign: translated }) },
        report,
      )
    : undefined;
  shapes.set(key, shape);
  findCredentials(document, document.root, report);
  if (body) findCredentials(document, body, report);
  return shape;
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
