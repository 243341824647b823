import { homedir } from "node:os";
import { untilAborted } from "../model/abort.ts";
import type { RunEvent } from "../model/event.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { Agent, Plan, RuleData } from "../model/plan.ts";
import type { Answer, Asker, Attempt, Judge, Rights, Verdict } from "../model/ports.ts";
import { messageOf, ok, type Result } from "../model/result.ts";
import {
  type AgentRights,
  type Block,
  createPermissions,
  type Permissions,
  type Profile,
} from "../permissions/index.ts";
import { canonicalToolName, judgedTools } from "../tools/names.ts";
import { isSecretFile } from "../tools/secret-files.ts";
import type { Managed } from "./managed-read.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { workflowsOf } from "./workflows-of.ts";

/** What whoever starts a run says of its agents' rights. */
export interface RightsWishes {
  readonly profile?: Profile;
  /** Rules that hold for this run: `Bash(git push)`. */
  readonly allow: readonly string[];
  /** What this machine restricts. */
  readonly managed?: Pick<Managed, "rules" | "sandbox">;
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
  readonly sandboxes: Sandboxes;
}

/** Whose rights they are. */
type Subject = Pick<Attempt, "step" | "path" | "signal" | "workspace">;

/** The rights of a run's agents. */
export interface RunPermissions {
  /** What an agent step may do. */
  readonly of: (attempt: Subject) => Rights;
  /** Judges the author's own words; undefined where no managed rule is in force. */
  readonly managed: Judge | undefined;
  /** What the rules decided; undefined when there was nothing to decide. */
  readonly counted: () => Extract<RunEvent, { type: "permissions.counted" }> | undefined;
}

/** The error is a rule of the command line that is none. */
export function createRights(options: RightsOptions): Result<RunPermissions, string> {
  const { plan, asker, sandboxes, workspace } = options;
  const ownTools = Object.values(plan.workflows).flatMap(({ tools }) =>
    Object.keys(isJsonObject(tools?.json) ? tools.json : {}),
  );
  const made = createPermissions({
    vocabulary: { tools: [...judgedTools, ...ownTools], canonical: canonicalToolName, isSecret: isSecretFile },
    ownTools,
    workspace: options.workspace,
    home: homedir(),
    ...(options.profile && { profile: options.profile }),
    allowed: options.allow,
    ...(options.managed && { managed: options.managed.rules }),
  });
  if (!made.ok) return made;
  const permissions = made.value;
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = queue.then(work);
    // Whatever becomes of one question, the next is asked.
    queue = turn.catch(() => undefined);
    return turn;
  };
  const yeses = new Set<string>();
  const grant = (attempt: Subject, parent?: Granted): Rights => {
    const agent = agentOf(attempt, plan);
    const granted = rightsOf(attempt, { plan, permissions, config: options.config }, parent?.rights);
    const isFree = sandboxes.wishOf(agent) === "off" && parent?.isBoxed !== true;
    const own = attempt.workspace ?? workspace;
    const launch = isFree
      ? undefined
      : sandboxes.commands(own, granted.network, own === workspace ? undefined : workspace);
    const rights = sternerRights(granted, agent);
    const judge = answered(rights.judge);
    return {
      ...rights,
      judge: asker
        ? (call) =>
            judgeAsking(call, { judge, rights, asker, attempt, inTurn, yeses, who: parent && whoOf(agent, parent) })
        : judge,
      child: (spawned, name) => grant(spawned, { rights, isBoxed: !isFree, name }),
      sandbox: isFree ? "off" : launch === undefined ? "unavailable" : "on",
      ...(launch && { launch }),
    };
  };
  return ok({
    of: (attempt) => grant(attempt),
    managed: permissions.managed,
    counted: () => countedEvent(permissions),
  });
}

/** Several may be one agent, and have names of their own. */
function whoOf(agent: Agent | undefined, { name }: Granted): string | undefined {
  return name === undefined || name === agent?.name ? agent?.name : `${name} (${agent?.name})`;
}

/** What a child stays within. */
interface Granted {
  readonly rights: AgentRights;
  readonly isBoxed: boolean;
  /** What the parent calls it. */
  readonly name: string | undefined;
}

interface RightsSource {
  readonly plan: Plan;
  readonly permissions: Permissions;
  readonly config: ConfigRights | undefined;
}

/** The blocks around an agent step, each with its place. An agent, and a workflow that was called, widen nothing around. */
function rightsOf(
  attempt: Subject,
  { plan, permissions, config }: RightsSource,
  parent: AgentRights | undefined,
): AgentRights {
  const { body } = attempt.step;
  const [, ...inner] = workflowsOf(plan, attempt.path);
  const called = inner.map((key) => blockOf("workflow", plan.workflows[key]?.permissions, true));
  return permissions.forAgent(
    [
      ...(config?.rules ?? []),
      blockOf("workflow", plan.workflows[plan.root]?.permissions, false),
      ...called,
      blockOf("agent", agentRules(attempt, plan, parent), true),
      blockOf("step", body.kind === "agent" ? body.permissions : undefined, inner.length > 0),
    ].flatMap((block) => block ?? []),
    parent,
    attempt.workspace,
  );
}

/** What an agent of flow's own permits is meant for whoever spawns it; by itself it gets what anybody gets. */
function agentRules(attempt: Subject, plan: Plan, parent: AgentRights | undefined): RuleData | undefined {
  const { body } = attempt.step;
  const rules = agentOf(attempt, plan)?.permissions;
  const isOwn = body.kind === "agent" && body.agent.startsWith("built-in/");
  return rules && isOwn && parent === undefined ? { ...rules, narrows: true } : rules;
}

function agentOf({ step: { body } }: Pick<Attempt, "step">, { agents }: Plan): Agent | undefined {
  return body.kind === "agent" && Object.hasOwn(agents, body.agent) ? agents[body.agent] : undefined;
}

function blockOf(layer: Block["layer"], rules: RuleData | undefined, bounded: boolean): Block | undefined {
  return rules && { layer, permissions: rules.json, bounded, ...rules.at, ...(rules.narrows && { narrows: true }) };
}

const harmless = new Set(["Read", "Grep", "Glob", "LS", "TodoWrite", "Task", "Skill"]);

function sternerRights(rights: AgentRights, agent: Agent | undefined): AgentRights {
  const inFolder: AgentRights["in"] = (workspace) => sternerRights(rights.in(workspace), agent);
  return { ...rights, judge: sterner(rights.judge, agent), in: inFolder };
}

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
  /** Of a sub-agent: who asks. */
  readonly who: string | undefined;
  /** Rules that somebody said yes to before, for whichever agent of the run. */
  readonly yeses: Set<string>;
}

/** Asks a person what the rules leave open. A yes holds for the rest of the run, and lifts no denial of another agent. */
async function judgeAsking(call: Parameters<Judge>[0], asking: Asking): Promise<Verdict> {
  const { judge, rights, asker, attempt, inTurn, who, yeses } = asking;
  const first = await judge(call);
  if (first.decision !== "ask") return first;
  const { signal = attempt.signal } = call;
  const answered = inTurn(async (): Promise<Verdict> => {
    if (signal.aborted) return first;
    // The question before this one may have settled it.
    const verdict = await judge({ ...call, counts: false });
    if (verdict.decision !== "ask") return verdict;
    const { toAllow } = verdict;
    const what = toAllow.join(", ");
    if (toAllow.length > 0 && toAllow.every((text) => yeses.has(text))) {
      rights.approve(toAllow);
      return { ...verdict, decision: "allow", rule: { text: what, layer: "approved" } };
    }
    const question = `${who === undefined ? "Allow" : `Sub-agent ${who}: allow`} ${what}? (asked because of \`${verdict.rule.text}\`)`;
    const none = { fields: [], read: () => Promise.resolve(ok(null)), check: () => Promise.resolve([]) };
    let answer: Answer | undefined;
    try {
      const asked = asker.ask({ about: "permission", step: attempt.path, question, ...none }, signal);
      answer = await untilAborted(asked, signal);
    } catch (error) {
      return {
        ...verdict,
        decision: "deny",
        rule: { text: `a person could not be asked: ${messageOf(error)}`, layer: "approved" },
      };
    }
    if (answer === undefined) return verdict;
    const rule = { text: answer.decision === "approved" ? what : "a person said no", layer: "approved" };
    if (answer.decision !== "approved") return { ...verdict, decision: "deny", rule };
    rights.approve(toAllow);
    for (const text of toAllow) yeses.add(text);
    return { ...verdict, decision: "allow", rule };
  });
  return (await untilAborted(answered, signal)) ?? first;
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
