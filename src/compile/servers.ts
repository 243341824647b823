import { nearest } from "../model/names.ts";
import { entry, type MapNode } from "../source/document.ts";
import type { ConfiguredServers } from "./defaults.ts";
import type { ProjectServers } from "./project-servers.ts";
import { asText, itemsOf } from "./read/nodes.ts";
import { didYouMean, oneOf, type Report } from "./report.ts";
import type { ServerShape } from "./server-shape.ts";
import type { AgentShape, Word, WorkflowShape } from "./shape.ts";

/** A server that a step is given. */
export interface ServerUse {
  readonly shape: ServerShape;
  /** It is the agent's own: nobody else is given the same one, and it ends with the agent. */
  readonly own: boolean;
}

export interface ServersQuestion {
  /** The step, or its `undo`. */
  readonly owner: MapNode;
  readonly agent: AgentShape | undefined;
  readonly workflow: WorkflowShape;
  readonly around: ServersAround;
  readonly report: Report;
}

/** What is known to every workflow: of the configurations, and the project's `.mcp.json`. */
export interface ServersAround {
  readonly configured: ConfiguredServers | undefined;
  readonly project: ProjectServers | undefined;
}

/** The servers a step needs: those its agent names or defines, and those whose tools it names. */
export function serversOf(question: ServersQuestion): readonly ServerUse[] {
  const { agent, workflow, around, report } = question;
  const uses = new Map<string, ServerUse>();
  for (const word of namedServers(question)) {
    if (uses.has(word.text)) continue;
    const own = agent?.servers.own.get(word.text);
    const near = own ?? workflow.servers.get(word.text);
    const shape = near ?? serverAround(word.text, around);
    if (shape === undefined) {
      const known = [...workflow.servers.keys(), ...namesAround(around)];
      // Other programs pass over what of an agent's file is not set up here.
      const isForeign =
        agent?.foreign !== undefined && agent.tools.concat(agent.servers.names).some(({ at }) => at === word.at);
      reportUnknown(word, { known, report, severity: isForeign ? "warning" : "error" });
    } else if (shape !== "broken") {
      uses.set(word.text, { shape, own: own !== undefined });
      if (near === undefined) checkSecrets(word, shape, { workflow, report });
    }
  }
  return [...uses.values()];
}

/** The nearest definition of a name that no workflow defines itself. */
function serverAround(name: string, { configured, project }: ServersAround): ServerShape | "broken" | undefined {
  return configured?.before.get(name) ?? project?.find(name) ?? configured?.behind.get(name);
}

function namesAround({ configured, project }: ServersAround): readonly string[] {
  return [...(configured?.before.keys() ?? []), ...(project?.names ?? []), ...(configured?.behind.keys() ?? [])];
}

/** A configuration reads secrets; that a workflow uses them is for the workflow to say. */
function checkSecrets(
  { text, at }: Word,
  { file, secrets }: ServerShape,
  { workflow, report }: Pick<ServersQuestion, "workflow" | "report">,
): void {
  const declared = new Set(workflow.secrets.map((secret) => secret.text.toLowerCase()));
  for (const secret of secrets.filter((name) => !declared.has(name.toLowerCase())))
    report(
      "FLOW8005",
      at,
      `the MCP server \`${text}\` of ${file} reads the secret \`${secret}\`, which is not declared here`,
      {
        suggestion: `declare it: \`secrets: [${secret}]\``,
      },
    );
}

/** What a step, or an `undo`, names as servers, whether they are there or not. */
export function namedServers({ owner, agent }: Pick<ServersQuestion, "owner" | "agent">): Word[] {
  const toolStep = asText(entry(owner, "tool")?.value);
  if (toolStep) return serverOfTool({ text: toolStep.value, at: toolStep.at });
  if (agent === undefined) return [];
  const list = entry(owner, "tools")?.value;
  const tools = list
    ? itemsOf(list).flatMap((item) => {
        const text = asText(item);
        return text ? [{ text: text.value, at: text.at }] : [];
      })
    : agent.tools;
  const own = [...agent.servers.own.keys()].map((text) => ({ text, at: agent.agent.at }));
  return [...own, ...agent.servers.names, ...tools.flatMap(serverOfTool)];
}

/** `mcp__server`, `mcp__server__*` and `mcp__server__tool` name a server: no name of one holds `__`. */
function serverOfTool({ text, at }: Word): Word[] {
  if (!text.startsWith("mcp__")) return [];
  const [server = ""] = text.slice("mcp__".length).split("__");
  return [{ text: server, at }];
}

interface Unknown {
  readonly known: readonly string[];
  readonly severity: "error" | "warning";
  readonly report: Report;
}

function reportUnknown({ text, at }: Word, { known, severity, report }: Unknown): void {
  const left = severity === "warning" ? "; what it offers is left out" : "";
  const message = `there is no MCP server \`${text}\`: neither in this file's \`mcp\`, nor in a configuration's, nor in the project's \`.mcp.json\`${left}`;
  report("FLOW6012", at, message, () => {
    const near = nearest(text, known);
    if (near !== undefined) return { ...didYouMean(near), severity };
    if (known.length > 0) return { suggestion: `known here: ${oneOf(known)}`, severity };
    return { suggestion: `define it: \`mcp: { ${text}: { command: …, args: […] } }\``, severity };
  });
}
