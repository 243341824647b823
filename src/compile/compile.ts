import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { nearest } from "../model/names.ts";
import type { Plan } from "../model/plan.ts";
import { visit as findCredentials } from "./checks/credentials.ts";
import type { ModelProblem, RuleProblems, ToolParameters } from "./checks/check.ts";
import { checks } from "./checks/index.ts";
import { checkCycles } from "./graph.ts";
import { type LinkedWorkflow, stepsOf } from "./linked.ts";
import { linkScope } from "./link.ts";
import { type AgentFile, type Library, load } from "./load.ts";
import { createPlan } from "./plan.ts";
import { readAgent } from "./read/agent.ts";
import { readWorkflow } from "./read/workflow.ts";
import { createReport, didYouMean, oneOf, type Report } from "./report.ts";
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
}

/** What compiling gave: a plan unless there are errors, every problem sorted by position, and the texts they point into. */
export interface Compilation {
  /** Made when it is first asked for. */
  readonly plan?: Plan;
  /** Steps of the workflow itself, without those in groups; absent when there are errors. */
  readonly steps?: number;
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

/** Reads a workflow with everything it names, checks all of it in one pass, and makes its plan. Runs nothing. */
export async function compile(options: CompileOptions): Promise<Compilation> {
  const problems = createReport();
  const sources = new Map<string, string>();
  const library = await load({ ...options, problems, texts: sources });
  const linked = library && link(library, problems.report);
  if (linked) await checkAll(linked, options, problems.report);
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
    diagnostics,
    sources,
  };
}

/** Reads every workflow of the library and resolves its names. */
function link(library: Library, report: Report): Map<string, LinkedWorkflow> {
  const agentShapes = new Map<string, AgentShape | undefined>();
  const drafts = new Map<string, Draft>();
  for (const [key, file] of library.workflows) {
    const shape = readWorkflow(file, report);
    if (shape) drafts.set(key, linkWorkflow(shape, agentShapes, report));
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

function linkWorkflow(shape: WorkflowShape, agentShapes: Map<string, AgentShape | undefined>, report: Report): Draft {
  const scope = linkScope(shape.scope, report);
  const agents = new Map<StepShape, AgentShape>();
  const undoAgents = new Map<StepShape, AgentShape>();
  for (const { step } of stepsOf(scope)) {
    const agent = agentOf({ link: step.agent, shape, agentShapes, report });
    const undoAgent = agentOf({ link: step.undoAgent, shape, agentShapes, report });
    if (agent) agents.set(step, agent);
    if (undoAgent) undoAgents.set(step, undoAgent);
  }
  return { shape, scope, agents, undoAgents, workflows: new Map(), undoWorkflows: new Map() };
}

interface AgentQuestion {
  readonly link: StepShape["agent"];
  readonly shape: WorkflowShape;
  readonly agentShapes: Map<string, AgentShape | undefined>;
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
    const places = `neither in this file's \`agents\`, nor as ${text}.yaml or ${text}.md in an \`agents\` folder`;
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

function readOnce(file: AgentFile, known: Map<string, AgentShape | undefined>, report: Report): AgentShape | undefined {
  if (!known.has(file.key)) {
    known.set(
      file.key,
      readAgent(
        {
          key: file.key,
          name: file.stem,
          document: file.document,
          node: file.document.root,
          ...(file.body && { body: file.body }),
        },
        report,
      ),
    );
    findCredentials(file.document, file.document.root, report);
    if (file.body) findCredentials(file.document, file.body, report);
  }
  return known.get(file.key);
}

async function checkAll(
  linked: ReadonlyMap<string, LinkedWorkflow>,
  options: CompileOptions,
  report: Report,
): Promise<void> {
  const known = new Map<LinkedWorkflow, Types>();
  const typesOf = (workflow: LinkedWorkflow): Types => {
    const types = known.get(workflow) ?? createTypes(workflow, typesOf);
    known.set(workflow, types);
    return types;
  };
  for (const workflow of linked.values()) {
    checkCycles(workflow.scope, report);
    for (const check of checks) await check({ ...options, workflow, types: typesOf(workflow), report });
  }
}
