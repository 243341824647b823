import { dirname, join } from "node:path";
import type { AgentPorts } from "../agent/agent-ports.ts";
import { isJsonObject, own, type Json } from "../model/json.ts";
import type { Plan, Step, StepKind } from "../model/plan.ts";
import type { Attempt, Execute, ModelRequest, OpenApproval } from "../model/ports.ts";
import { err, ok } from "../model/result.ts";
import { createSteps } from "../steps/index.ts";
import { agentSteps } from "./asking.ts";
import { checkValue } from "./check-value.ts";
import { systemClock } from "./clock.ts";
import { createCompact } from "./compact.ts";
import { createRunHooks, type RunHooks } from "./hooks.ts";
import type { Instructions } from "./instructions.ts";
import { isolated, memberIsolation } from "./isolated.ts";
import { withinManaged } from "./managed-steps.ts";
import { byteFilter, masked, maskedRequest } from "./masking.ts";
import type { Before, StartOptions } from "./run-options.ts";
import type { RunResources } from "./run-resources.ts";
import type { RunTools } from "./run-tools.ts";
import type { Servers } from "./servers.ts";
import type { Skills } from "./skills.ts";
import { userName } from "./user-name.ts";
import type { Worktrees } from "./worktrees.ts";

/** What the rooms of one run are made with. */
export interface ExecuteSource extends Pick<
  RunResources,
  "masking" | "tempFolder" | "marks" | "log" | "emit" | "spending" | "approvals" | "over"
> {
  readonly options: StartOptions;
  readonly instructions: Instructions;
  /** Absent where no agent runs. */
  readonly skills: Skills | undefined;
  readonly run: string;
  readonly before: Before | undefined;
  /** Made when the first is asked for. */
  readonly worktrees: () => Promise<Worktrees>;
}

/** How attempts are executed, and what waits for an answer. */
export interface Executing {
  readonly execute: Execute;
  readonly waiting: () => readonly OpenApproval[];
  /** Ends what attempts have started and left running for the next. */
  readonly close: () => Promise<void>;
}

/** The record of step kinds: which room executes an attempt of which kind. */
export function createExecute(source: ExecuteSource): Executing {
  const { options, run, tempFolder, log } = source;
  const { mask, hasSecrets, keys } = source.masking;
  const { secrets, env, cwd } = options;
  let loadingHands: Promise<RunTools> | undefined;
  const runTools = (): Promise<RunTools> => (loadingHands ??= loadHands(source));
  let loadingServers: Promise<Servers> | undefined;
  const serve: Servers["serve"] = async (attempt, names) => {
    if (!("mcp" in attempt.step.body)) return ok({ tools: [], close: () => Promise.resolve() });
    loadingServers ??= Promise.all([import("./servers.ts"), options.sandboxes()]).then(
      ([{ createServers }, sandboxes]) => createServers({ ...source, sandboxes }),
    );
    return (await loadingServers).serve(attempt, names);
  };
  const steps = createSteps({
    runId: run,
    cwd,
    tempFolder,
    marks: source.marks,
    spillFolder: join(dirname(log.file), "files"),
    inheritedEnvironment: env,
    providerKeys: keys,
    secretNames: Object.keys(secrets),
    checkOutput: checkValue,
    tools: async (path) => (await runTools()).all(path),
    serve,
    workspace: options.workspace,
    ...(options.asker && { asker: options.asker }),
    approvals: source.approvals,
    by: () => options.by ?? userName(env, cwd),
    mask: mask.mask,
    emit: source.emit,
    clock: systemClock,
    over: source.over,
    ...(hasSecrets && { filter: () => byteFilter(mask.stream()) }),
  });
  const runHooks = createRunHooks(source);
  let agent: Promise<Execute> | undefined;
  const kinds: { readonly [kind in StepKind]: Execute } = {
    run: steps.run,
    set: steps.set,
    agent: async (attempt) => {
      agent ??= loadAgent(source, {
        run: withinManaged(steps.run, options.permissions?.managed),
        runTools,
        serve,
        runHooks,
      });
      return (await agent)(attempt);
    },
    tool: steps.tool,
    approve: steps.approve.execute,
    steps: refused,
    workflow: refused,
  };
  const within = withinManaged((attempt) => kinds[attempt.step.kind](attempt), options.permissions?.managed);
  const { plan, workspace } = options;
  const execute = isolated(runHooks.around(within), { plan, workspace, worktrees: source.worktrees });
  const close = async (): Promise<void> => (await loadingServers)?.close();
  return { execute: hasSecrets ? masked(execute, mask) : execute, waiting: steps.approve.waiting, close };
}

/** The engine runs groups and sub-workflows by itself. */
function refused(): never {
  throw new Error("this kind of step is not executed as an attempt");
}

/** The tools come with vendor packages and a search program: only runs that use one load them. */
async function loadHands(source: ExecuteSource): Promise<RunTools> {
  const { createRunTools } = await import("./run-tools.ts");
  return createRunTools({ ...source, spillFolder: join(dirname(source.log.file), "files") });
}

interface AgentRooms {
  readonly runHooks: RunHooks;
  readonly run: Execute;
  readonly runTools: () => Promise<RunTools>;
  readonly serve: Servers["serve"];
}

async function loadAgent(source: ExecuteSource, { run, runTools, serve, runHooks }: AgentRooms): Promise<Execute> {
  const { options, log, emit, before, spending, instructions } = source;
  const [{ createAgentExecute }, { ActiveAgents }, { extrasOf }, { named }] = await Promise.all([
    import("../agent/execute.ts"),
    import("../agent/active-agents.ts"),
    import("./extras.ts"),
    runTools(),
  ]);
  const { models, plan, workspace, permissions } = options;
  const replayed =
    options.replay === undefined ? undefined : await (await import("./cassette.ts")).courseOf(options.replay);
  const active = new ActiveAgents(before?.agents.spawned);
  options.watch?.agents((agent, how) => active.cancel(agent, how));
  const ports: AgentPorts = {
    agents: plan.agents,
    client: async (model, step) =>
      models?.client(model, step) ?? err({ kind: "internal", message: "the run was started without models" }),
    tools: named,
    servers: serve,
    ...(permissions && { rights: permissions.of }),
    workspace,
    emit,
    clock: systemClock,
    ...(before && { before: before.agents }),
    models: modelsOf(plan),
    ...(replayed && { replayed }),
    pieces: options.logDeltas,
    spent: (agent) => spending.ofAgent(agent),
    isolate: memberIsolation(source),
    compact: createCompact(plan),
    check: async (script, attempt) => run(asRun(script, attempt)),
    instructions: instructions.of,
    extras: extrasOf(source),
    hooks: runHooks.ofAgent,
    ...(source.masking.hasSecrets && {
      masked: (request: ModelRequest) => maskedRequest(request, source.masking.mask),
    }),
    spill: (text) => {
      const kept = log.keep(text);
      return kept.ok ? kept.value : "(it could not be kept)";
    },
  };
  return createAgentExecute(ports, active);
}

/** Every model that somebody wrote down in the plan, by its id. */
function modelsOf(plan: Plan): ReadonlyMap<string, Json> {
  const agents = Object.values(plan.agents).flatMap((agent) => agent.models);
  const steps = [...agentSteps(plan)].flatMap(({ step }) => (step.body.kind === "agent" ? step.body.models : []));
  const written = [...steps, ...agents].flatMap((model) => (model.type === "data" ? [model.json] : []));
  return new Map(
    written.flatMap((model): [string, Json][] => {
      const id = isJsonObject(model) ? own(model, "id") : model;
      return typeof id === "string" ? [[id, model]] : [];
    }),
  );
}

/** The `check` of an agent step is the author's own script, so it runs as a step of the kind `run` does. */
function asRun(script: string, { inputs, ...attempt }: Attempt): Attempt {
  const step: Step = { ...attempt.step, kind: "run", body: { kind: "run", command: { script }, shell: "bash" } };
  const env = own(inputs, "env");
  return { ...attempt, step, inputs: env === undefined ? {} : { env } };
}
