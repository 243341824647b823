import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { isJsonObject, type JsonObject, own } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Plan, Scope, Step } from "../model/plan.ts";
import type { Rights, Verdict } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { splitRule } from "../permissions/notation.ts";
import { subjectKind } from "../permissions/subjects.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { canonicalToolName, judgedTools } from "../tools/names.ts";
import { agentsBelow } from "./agents-below.ts";
import { check } from "./check.ts";
import type { Conditions } from "./requests.ts";
import { createRights, type RightsWishes } from "./rights.ts";
import { createSandboxes } from "./sandboxes.ts";
import { wishesOf } from "./wishes.ts";

interface PermitSource extends RightsWishes {
  readonly plan: Plan;
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  /** `Tool(what)`: a command, a path, an address, a name. */
  readonly call: string;
}

/** The verdict for one agent. */
export interface Permit extends Verdict {
  readonly step: string;
  readonly agent: string;
  /** Of a sub-agent, or a member of a team: those it works for, the one of the step first. */
  readonly below?: readonly string[];
}

export type PermitResult =
  | { readonly kind: "judged"; readonly permits: readonly Permit[] }
  | { readonly kind: "invalid"; readonly diagnostics: readonly Diagnostic[]; readonly sources: SourceTexts }
  | { readonly kind: "usage"; readonly message: string };

export interface PermitRequest extends Pick<Conditions, "profile" | "allow" | "env"> {
  /** A workflow or agent file, relative to `cwd`, or the name of an agent. */
  readonly agent: string;
  /** `Bash(git push)`, `Write(src/a.ts)`. */
  readonly call: string;
  readonly cwd?: string;
}

/** What the rules make of a call by each agent of a file, or by one agent. Runs nothing. */
export async function permit({ agent, call, cwd = process.cwd(), ...request }: PermitRequest): Promise<PermitResult> {
  const env = request.env ?? process.env;
  const { plan, diagnostics, sources } = await check({ ...sourceOf(agent), cwd, env });
  if (!plan && diagnostics.some(({ code, at }) => code === "FLOW6001" && at.file === "-" && !isFile(agent)))
    return { kind: "usage", message: noSuchAgent(agent, call) };
  const refused = plan ? undefined : placeless(agent, diagnostics);
  if (refused !== undefined) return { kind: "usage", message: refused };
  if (!plan) return { kind: "invalid", diagnostics, sources };
  const workspace = workspaceOf(cwd);
  const wishes = await wishesOf(request, { cwd, workspace, env });
  if (!wishes.ok) return { kind: "usage", message: wishes.error };
  const permits = await judgeCall({ plan, workspace, call, env, ...wishes.value });
  return permits.ok ? { kind: "judged", permits: permits.value } : { kind: "usage", message: permits.error };
}

/** An agent by its name or file is asked about as the one step of a workflow. */
export function sourceOf(agent: string): {
  readonly file: string;
  readonly stdin?: Uint8Array;
  readonly asksAbout?: true;
} {
  if (isFile(agent)) return { file: agent };
  const text = `name: permit\nsteps: { agent: { agent: ${JSON.stringify(agent)}, prompt: "-" } }\n`;
  return { file: "-", stdin: Buffer.from(text), asksAbout: true };
}

/** What is wrong with an agent, where all of it stands in the workflow that nobody wrote: without places in it. */
export function placeless(agent: string, diagnostics: readonly Diagnostic[]): string | undefined {
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  if (isFile(agent) || errors.length === 0 || errors.some(({ at }) => at.file !== "-")) return undefined;
  const sentences = errors.map(({ code, message: whole, suggestion, related = [] }) => {
    const message = code === "FLOW6001" ? `there is no agent ${JSON.stringify(agent)} here` : whole;
    const places = related.map(({ at }) => ` (${at.file}:${at.line})`).join("");
    return `${message}${places}${suggestion === undefined ? "" : `; ${suggestion}`}`;
  });
  return sentences.join("\n");
}

function isFile(agent: string): boolean {
  return agent === "-" || (/\.ya?ml$/.test(agent) && !/(?:^|\/)agents\//.test(agent));
}

function noSuchAgent(agent: string, call: string): string {
  const quoted = `'${call.replaceAll("'", "'\\''")}'`;
  return (
    `there is no agent ${JSON.stringify(agent)} in a file of its own; for one that is written in a workflow name that ` +
    `file: flow permit WORKFLOW.yaml ${quoted} (\`flow agents\` lists the others)`
  );
}

/** What the rules say of a call, for every agent step of a plan and whoever may work below it. Nothing runs. */
async function judgeCall(source: PermitSource): Promise<Result<readonly Permit[], string>> {
  const call = readCall(source.call);
  if (!call.ok) return call;
  // Nothing is run here, and to know whether a sandbox works costs a process.
  const sandboxes = { ...createSandboxes(source), commands: () => undefined };
  const rights = createRights({ ...source, sandboxes, asker: undefined });
  if (!rights.ok) return rights;
  const { plan } = source;
  const unknown = unknownTool(call.value.tool, plan);
  if (unknown !== undefined) return err(unknown);
  const permits: Permit[] = [];
  const refused = await refusedByTool(call.value, source.workspace);
  const judge = async (rights: Pick<Rights, "judge">): Promise<Verdict> => {
    const verdict = await rights.judge(call.value);
    return verdict.decision === "deny" || refused === undefined ? verdict : refused;
  };
  const signal = new AbortController().signal;
  const root = plan.workflows[plan.root]?.scope;
  for (const { step, path } of root ? agentSteps(root, plan, "") : []) {
    if (step.body.kind !== "agent") continue;
    const agent = plan.agents[step.body.agent];
    const own = rights.value.of({ step, path, signal });
    permits.push({ step: path, agent: agent?.name ?? step.body.agent, ...(await judge(own)) });
    for (const { above, ...it } of agent ? agentsBelow({ step, path, signal, agent, rights: own }, plan) : [])
      permits.push({ step: path, agent: it.agent.name, below: above, ...(await judge(it.rights)) });
  }
  return permits.length > 0 ? ok(permits) : err("no step of it runs an agent");
}

/** What a tool for files does for nobody, whatever the rules say. */
async function refusedByTool({ tool, args }: ReadCall, workspace: string): Promise<Verdict | undefined> {
  const path = own(args, "file_path");
  // `Write` alone asks about the tool as such.
  if (typeof path !== "string" || path === ".") return undefined;
  const [{ placeOf }, { writablePlace }] = await Promise.all([
    import("../tools/workspace-path.ts"),
    import("../tools/write-file.ts"),
  ]);
  const place = await (tool === "Write" || tool === "Edit" ? writablePlace : placeOf)(workspace, path);
  if (place.ok) return undefined;
  return { decision: "deny", rule: { text: place.error, layer: "default" }, toAllow: [] };
}

/** The tools of a server have its name, and nobody asks the server here. */
function unknownTool(tool: string, { workflows }: Plan): string | undefined {
  const own = Object.values(workflows).flatMap(({ tools }) =>
    isJsonObject(tools?.json) ? Object.keys(tools.json) : [],
  );
  const known = [...judgedTools, ...own];
  if (known.includes(tool) || tool.startsWith("mcp__")) return undefined;
  const near = nearest(tool, known);
  return `no rule speaks of \`${tool}\`: there is no such tool that is judged${near === undefined ? "" : `; did you mean \`${near}\`?`}`;
}

interface ReadCall {
  readonly tool: string;
  readonly args: JsonObject;
}

function readCall(text: string): Result<ReadCall, string> {
  const split = splitRule(text);
  if (split === undefined)
    return err(`${JSON.stringify(text)} is not a call; write it as \`Bash(git push)\` or \`Write(src/a.ts)\``);
  const tool = canonicalToolName(split.tool) ?? split.tool;
  const what = split.pattern ?? "";
  switch (subjectKind(tool)) {
    case "command":
      return ok({ tool, args: { command: what } });
    case "path":
      return ok({ tool, args: { file_path: what === "" ? "." : what } });
    case "url":
      return ok({ tool, args: { url: what } });
    case "name":
      return ok({ tool, args: { subagent_type: what, skill: what } });
    default:
      return ok({ tool, args: {} });
  }
}

/** Every step that runs an agent, in the order of the file, sub-workflows where they are called. */
export function* agentSteps(
  scope: Scope,
  plan: Plan,
  around: string,
): Generator<{ readonly step: Step; readonly path: string }> {
  for (const step of scope.steps) {
    const path = around === "" ? step.id : `${around}/${step.id}`;
    if (step.kind === "agent") yield { step, path };
    const inner =
      step.scope && ("inline" in step.scope ? step.scope.inline : plan.workflows[step.scope.workflow]?.scope);
    if (inner) yield* agentSteps(inner, plan, path);
  }
}
