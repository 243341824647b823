import { type Hook, readHooks } from "../hooks/read.ts";
import { type HookRunner, runHooks } from "../hooks/run.ts";
import type { Hooks } from "../model/hooks.ts";
import { isJsonObject, type JsonObject, own } from "../model/json.ts";
import type { Agent } from "../model/plan.ts";
import type { Emit, Execute } from "../model/ports.ts";
import { stepEnvironment } from "../process/environment.ts";
import type { Marks } from "../process/marks.ts";
import { maskData } from "../runlog/mask-event.ts";
import { byteFilter, type Masking } from "./masking.ts";
import type { StartOptions } from "./run-options.ts";

interface HookSource {
  readonly options: StartOptions;
  readonly run: string;
  readonly masking: Masking;
  readonly marks: Marks;
  readonly log: { readonly file: string };
  readonly emit: Emit;
}

/** An agent run, and the folder that stands for the workspace where it has one of its own. */
interface AgentPlace {
  readonly step: string;
  readonly agent: string;
  readonly workspace?: string;
  /** Of a sub-agent: who spawned it. */
  readonly parent?: Agent;
}

/** Who is told of what happens in one step of a run. */
export interface RunHooks {
  /** Of the agent run `agent`; undefined when nobody listens. */
  readonly ofAgent: (definition: Agent, place: AgentPlace) => Hooks | undefined;
  /** Steps with `StepStart` before them and `StepEnd` behind them. */
  readonly around: (execute: Execute) => Execute;
}

export function createRunHooks(source: HookSource): RunHooks {
  const { options } = source;
  const common = options.hooks.flatMap(({ value, layer, at }) =>
    readHooks(value, { from: `${layer} ${at.file}:${at.line}`, ofAgent: false }),
  );
  const hooksOf: HooksOf = (hooks, { step, agent, workspace }) => {
    if (hooks.length === 0) return undefined;
    const runner = runnerOf(source, { step, agent, workspace });
    const session = { session_id: agent ?? source.run, transcript_path: source.log.file, run_id: source.run, step };
    return {
      fire: ({ fields, ...moment }, signal) =>
        runHooks(hooks, { ...moment, fields: { ...session, ...masked(fields, source.masking) } }, { runner, signal }),
    };
  };
  return {
    ofAgent(definition, { step, agent, workspace, parent }) {
      const own = ownHooks(definition);
      const heard = parent === undefined ? own : [...ownHooks(parent).filter(isAboutChildren), ...own.map(asChild)];
      return hooksOf([...common, ...heard], { step, agent, workspace });
    },
    around: (execute) => (isHeard(common) || agentsHear(source) ? guarded(execute, source, hooksOf, common) : execute),
  };
}

/** What is in a file that an agent read, or what a server said, is for the model: a command may write it anywhere. */
function masked(fields: JsonObject, { mask, hasSecrets }: Masking): JsonObject {
  return hasSecrets ? (maskData(fields, mask.mask) as JsonObject) : fields;
}

interface Told {
  readonly step: string;
  readonly agent: string | null;
  readonly workspace: string | undefined;
}
type HooksOf = (hooks: readonly Hook[], told: Told) => Hooks | undefined;

function isAboutChildren({ event }: Hook): boolean {
  return event === "SubagentStart" || event === "SubagentStop" || event === "TaskCompleted";
}

/** What a sub-agent's own file wants at its end counts as the end of a sub-agent. */
function asChild(hook: Hook): Hook {
  return hook.event === "Stop" ? { ...hook, event: "SubagentStop" } : hook;
}

function isHeard(hooks: readonly Hook[]): boolean {
  return hooks.some(({ event }) => event === "StepStart" || event === "StepEnd");
}

function agentsHear({ options }: HookSource): boolean {
  return Object.values(options.plan.agents).some((agent) => isHeard(ownHooks(agent)));
}

function ownHooks({ settings, at }: Agent): readonly Hook[] {
  const block = isJsonObject(settings.json) ? own(settings.json, "hooks") : undefined;
  return isJsonObject(block) ? readHooks(block, { from: at.file, ofAgent: true }) : [];
}

function guarded(execute: Execute, { options }: HookSource, hooksOf: HooksOf, common: readonly Hook[]): Execute {
  return async (attempt) => {
    const { step, path, signal, workspace } = attempt;
    const agent = step.body.kind === "agent" ? options.plan.agents[step.body.agent] : undefined;
    const hooks = hooksOf([...common, ...(agent ? ownHooks(agent) : [])], { step: path, agent: null, workspace });
    const fields = { step_kind: step.kind, attempt: attempt.attempt };
    const before = await hooks?.fire({ event: "StepStart", subject: step.id, fields }, signal);
    const no = before?.block ?? before?.stop;
    if (no !== undefined && signal.aborted) return { outcome: "cancelled" };
    if (no !== undefined)
      return {
        outcome: "failure",
        error: { kind: "denied", message: `a StepStart hook does not let this step run: ${no}` },
      };
    const result = await execute(attempt);
    const end = { outcome: result.outcome, ...(result.outcome === "failure" && { error: result.error.message }) };
    await hooks?.fire({ event: "StepEnd", subject: step.id, fields: { ...fields, ...end } }, signal);
    return result;
  };
}

function runnerOf(source: HookSource, { step, agent, workspace = source.options.workspace }: Told): HookRunner {
  const { options, masking, marks, emit } = source;
  const { secrets, env } = options;
  return {
    marks,
    environment: stepEnvironment({
      inherited: env,
      providerKeys: masking.keys,
      secrets: Object.keys(secrets),
      own: {},
    }),
    workspace,
    ...(masking.hasSecrets && { filter: () => byteFilter(masking.mask.stream()) }),
    onRun: ({ hook, status, text, duration }) =>
      emit({
        type: "hook.finished",
        step,
        agentRun: agent,
        event: hook.event,
        command: hook.command,
        from: hook.from,
        status,
        text,
        duration,
      }),
  };
}
