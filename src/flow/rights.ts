import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import type { RunEvent } from "../model/event.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { Agent, Plan, RuleData } from "../model/plan.ts";
import type { Asker, Attempt, Judge, Rights, Verdict } from "../model/ports.ts";
import { ok, type Result } from "../model/result.ts";
import {
  type AgentRights,
  type Block,
  createPermissions,
  type Permissions,
  type Profile,
} from "../permissions/index.ts";
import type { Launch } from "../process/namespace.ts";
import { sandboxLaunch } from "../process/sandbox.ts";
import { canonicalToolName, toolNames } from "../tools/names.ts";
import { isSecretFile } from "../tools/secret-files.ts";
import { workflowsOf } from "./workflows-of.ts";

/** What whoever starts a run says of its agents' rights. */
export interface RightsWishes {
  readonly profile?: Profile;
  /** Rules that hold for this run: `Bash(git push)`. */
  readonly allow: readonly string[];
  readonly managed: readonly Block[];
  /** Of the configuration. */
  readonly config?: ConfigRights;
}

/** What a configuration says of all agents' rights. */
export interface ConfigRights {
  readonly rules: readonly Block[];
  readonly sandbox?: { readonly value: "auto" | "on" | "off" };
}

export interface RightsOptions extends RightsWishes {
  readonly plan: Plan;
  readonly workspace: string;
  readonly asker: Asker | undefined;
  readonly env: { readonly [name: string]: string | undefined };
}

/** The rights of a run's agents. */
export interface RunPermissions {
  /** What an agent step may do. */
  readonly of: (attempt: Pick<Attempt, "step" | "path" | "signal">) => Rights;
  /** Judges the author's own words; undefined where no managed rule is in force. */
  readonly managed: Judge | undefined;
  /** What the rules decided; undefined when there was nothing to decide. */
  readonly counted: () => Extract<RunEvent, { type: "permissions.counted" }> | undefined;
}

/** The error is a rule of the command line that is none. */
export function createRights(options: RightsOptions): Result<RunPermissions, string> {
  const { plan, asker } = options;
  const ownTools = Object.values(plan.workflows).flatMap(({ tools }) =>
    Object.keys(isJsonObject(tools?.json) ? tools.json : {}),
  );
  const made = createPermissions({
    vocabulary: { tools: [...toolNames, ...ownTools], canonical: canonicalToolName, isSecret: isSecretFile },
    ownTools,
    workspace: options.workspace,
    home: homedir(),
    ...(options.profile && { profile: options.profile }),
    allowed: options.allow,
    managed: options.managed,
  });
  if (!made.ok) return made;
  const permissions = made.value;
  const sandboxes = createSandboxes(options);
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = queue.then(work);
    queue = turn;
    return turn;
  };
  return ok({
    of: (attempt) => {
      const agent = agentOf(attempt, plan);
      const granted = rightsOf(attempt, { plan, permissions, config: options.config });
      const launch = sandboxOf(agent, options.config) === "off" ? undefined : sandboxes.get(granted.network);
      const rights = { ...granted, ...(launch && { launch }) };
      const judge = answered(sterner(rights.judge, agent));
      if (asker === undefined) return { ...rights, judge };
      return { ...rights, judge: (call) => judgeAsking(call, { judge, rights, asker, attempt, inTurn }) };
    },
    managed: permissions.managed,
    counted: () => countedEvent(permissions),
  });
}

/** `auto`, as without it, is a sandbox where the machine has one. */
export function sandboxOf(agent: Agent | undefined, config: ConfigRights | undefined): "auto" | "on" | "off" {
  const setting = isJsonObject(agent?.settings.json) ? own(agent.settings.json, "sandbox") : undefined;
  if (setting === "auto") return setting;
  return setting === "on" || setting === "off" ? setting : (config?.sandbox?.value ?? "auto");
}

/** Made when they are first needed: to know whether one works costs a process. */
export function createSandboxes({ workspace, env }: Pick<RightsOptions, "workspace" | "env">): {
  readonly get: (network: boolean) => Launch | undefined;
} {
  const made = new Map<boolean, Launch | undefined>();
  return {
    get(network) {
      if (!made.has(network)) {
        const place = { workspace: realpathSync(workspace), home: homedir(), path: env["PATH"] ?? "" };
        made.set(network, sandboxLaunch({ ...place, network, isSecret: isSecretFile }));
      }
      return made.get(network);
    },
  };
}

/** Why a run cannot start: an agent of it is to have a sandbox, and there is none. */
export function missingSandbox({
  plan,
  config,
  ...place
}: Pick<RightsOptions, "plan" | "workspace" | "env" | "config">): string | undefined {
  const agent = Object.values(plan.agents).find((it) => sandboxOf(it, config) === "on");
  if (agent === undefined || createSandboxes(place).get(false) !== undefined) return undefined;
  return (
    `agent \`${agent.name}\` has \`sandbox: on\`, and this machine has no bubblewrap (bwrap) that works: install it ` +
    "(apt-get install bubblewrap, dnf install bubblewrap) and allow user namespaces (on Ubuntu an AppArmor profile for bwrap), or write `sandbox: auto`"
  );
}

interface RightsSource {
  readonly plan: Plan;
  readonly permissions: Permissions;
  readonly config: ConfigRights | undefined;
}

/** The blocks around an agent step, each with its place. An agent, and a workflow that was called, widen nothing around. */
function rightsOf(attempt: Pick<Attempt, "step" | "path">, { plan, permissions, config }: RightsSource): AgentRights {
  const { body } = attempt.step;
  const [, ...inner] = workflowsOf(plan, attempt.path);
  const called = inner.map((key) => blockOf("workflow", plan.workflows[key]?.permissions, true));
  return permissions.forAgent(
    [
      ...(config?.rules ?? []),
      blockOf("workflow", plan.workflows[plan.root]?.permissions, false),
      ...called,
      blockOf("agent", agentOf(attempt, plan)?.permissions, true),
      blockOf("step", body.kind === "agent" ? body.permissions : undefined, inner.length > 0),
    ].flatMap((block) => block ?? []),
  );
}

function agentOf({ step: { body } }: Pick<Attempt, "step">, { agents }: Plan): Agent | undefined {
  return body.kind === "agent" && Object.hasOwn(agents, body.agent) ? agents[body.agent] : undefined;
}

function blockOf(layer: Block["layer"], rules: RuleData | undefined, bounded: boolean): Block | undefined {
  return rules && { layer, permissions: rules.json, bounded, ...rules.at, ...(rules.narrows && { narrows: true }) };
}

const harmless = new Set(["Read", "Grep", "Glob", "LS", "TodoWrite", "Task", "Skill"]);

/** `approval` of an agent: what is allowed is asked about all the same, unless it was approved for this run. */
function sterner(judge: Judge, agent: Agent | undefined): Judge {
  const approval = isJsonObject(agent?.settings.json) ? own(agent.settings.json, "approval") : undefined;
  if (approval !== "always" && approval !== "sensitive") return judge;
  return async (call) => {
    const verdict = await judge(call);
    const { layer } = verdict.rule;
    const isFree = approval === "sensitive" && harmless.has(call.tool);
    if (verdict.decision !== "allow" || isFree || layer === "command line" || layer === "approved") return verdict;
    return { ...verdict, decision: "ask", rule: { text: `approval: ${approval}`, layer: "agent" } };
  };
}

/** What hooks have to say: they may want a person asked, and answer for one, but never where this machine's rules ask. */
function answered(judge: Judge): Judge {
  return async (call) => {
    const first = await judge(call);
    const rule = { text: "a hook", layer: "hook" };
    const verdict: Verdict =
      first.decision === "allow" && call.asks === true ? { ...first, decision: "ask", rule } : first;
    if (verdict.decision !== "ask" || call.answer === undefined) return verdict;
    const answer = await call.answer();
    if (answer === undefined || (answer === "allow" && verdict.rule.layer === "managed")) return verdict;
    return { ...verdict, decision: answer, rule };
  };
}

interface Asking {
  readonly judge: Judge;
  readonly rights: AgentRights;
  readonly asker: Asker;
  readonly attempt: Pick<Attempt, "path" | "signal">;
  /** One question at a time. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Asks a person what the rules leave open. A yes holds for the rest of the agent's run. */
async function judgeAsking(call: Parameters<Judge>[0], asking: Asking): Promise<Verdict> {
  const { judge, rights, asker, attempt, inTurn } = asking;
  const first = await judge(call);
  if (first.decision !== "ask") return first;
  return inTurn(async () => {
    // The question before this one may have settled it.
    const verdict = await judge(call);
    if (verdict.decision !== "ask") return verdict;
    const what = verdict.toAllow.join(", ");
    const question = `Allow ${what}? (asked because of \`${verdict.rule.text}\`)`;
    const none = { fields: [], read: () => Promise.resolve(ok(null)), check: () => Promise.resolve([]) };
    const answer = await asker.ask({ step: attempt.path, question, ...none }, attempt.signal);
    if (answer === undefined) return verdict;
    const rule = { text: answer.decision === "approved" ? what : "a person said no", layer: "approved" };
    if (answer.decision !== "approved") return { ...verdict, decision: "deny", rule };
    rights.approve(verdict.toAllow);
    return { ...verdict, decision: "allow", rule };
  });
}

function countedEvent(permissions: Permissions): Extract<RunEvent, { type: "permissions.counted" }> | undefined {
  const counts = permissions.hits();
  if (counts.length === 0) return undefined;
  return {
    type: "permissions.counted",
    rules: counts.map(({ rule: { text, decision, layer, file, line }, hits }) => ({
      rule: text,
      decision,
      layer,
      ...(file !== undefined && { file }),
      ...(line !== undefined && { line }),
      hits,
    })),
  };
}
