import { nearest } from "../model/names.ts";
import { entry, type MapNode } from "../source/document.ts";
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
  readonly project: ProjectServers | undefined;
  readonly report: Report;
}

/** The servers a step needs: those its agent names or defines, and those whose tools it names. */
export function serversOf(question: ServersQuestion): readonly ServerUse[] {
  const { agent, workflow, project, report } = question;
  const uses = new Map<string, ServerUse>();
  for (const word of namedServers(question)) {
    if (uses.has(word.text)) continue;
    const own = agent?.servers.own.get(word.text);
    const shape = own ?? workflow.servers.get(word.text) ?? project?.find(word.text);
    if (shape === undefined) reportUnknown(word, [...workflow.servers.keys(), ...(project?.names ?? [])], report);
    else if (shape !== "broken") uses.set(word.text, { shape, own: own !== undefined });
  }
  return [...uses.values()];
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

function reportUnknown({ text, at }: Word, known: readonly string[], report: Report): void {
  const message = `there is no MCP server \`${text}\`: neither in this file's \`mcp\`, nor in the project's \`.mcp.json\``;
  report("FLOW6012", at, message, () => {
    const near = nearest(text, known);
    if (near !== undefined) return didYouMean(near);
    if (known.length > 0) return { suggestion: `known here: ${oneOf(known)}` };
    return { suggestion: `define it: \`mcp: { ${text}: { command: …, args: […] } }\`` };
  });
}
