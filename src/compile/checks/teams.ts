import type { Span } from "../../model/diagnostic.ts";
import { isReservedName } from "../../model/ids.ts";
import { entry } from "../../source/document.ts";
import { agentsOf, type LinkedWorkflow, stepsOf } from "../linked.ts";
import type { MemberLink } from "../link-agents.ts";
import { asMap, numberOf } from "../read/nodes.ts";
import type { AgentShape, StepShape, TeamShape, Word } from "../shape.ts";
import type { Check, CheckSource } from "./check.ts";

/** Names in a team that stand for something else. */
const taken: ReadonlySet<string> = new Set(["lead", "all", "team"]);

/** Members that can work: names of their own, agents that may be used, and no team inside itself. */
export const checkTeams: Check = (source) => {
  const { workflow } = source;
  const circles = new Set<string>();
  for (const agent of agentsOf(workflow)) {
    checkDepth(agent, source);
    const members = workflow.crews.get(agent)?.members ?? [];
    if (agent.team) checkTeam({ team: agent.team, members }, source);
    checkCircles(agent, { members, circles }, source);
  }
  // A step's own team is its alone: the same agent as a member leads what its file says, or nobody.
  for (const { step } of stepsOf(workflow.scope)) {
    if (!step.team) continue;
    checkDepth(step, source);
    checkTeam({ team: step.team, members: workflow.teams.get(step) ?? [] }, source);
  }
};

function checkDepth({ node, team }: AgentShape | StepShape, { report }: CheckSource): void {
  const limits = asMap(entry(node, "limits")?.value);
  const depth = limits && entry(limits, "depth");
  if (depth && numberOf(depth.value) === 0 && team)
    report("FLOW2008", depth.keyAt, "`limits.depth: 0` lets nobody work below it, and `team` names who would", {
      suggestion: "remove one of them",
    });
}

interface Question {
  readonly team: TeamShape;
  readonly members: readonly MemberLink[];
}

function checkTeam({ team, members }: Question, source: CheckSource): void {
  const { report } = source;
  const seen = new Map<string, Span>();
  for (const { name, terms, agent } of team.members) {
    const first = seen.get(name.text.toLowerCase());
    checkName(name, agent, source);
    if (first)
      report("FLOW6004", name.at, `two members are called \`${name.text}\``, {
        related: [{ message: "the first is here", at: first }],
        suggestion: `give this one a name of its own: \`{ agent: ${agent.text}, name: ${agent.text}-2 }\``,
      });
    seen.set(name.text.toLowerCase(), first ?? name.at);
    if (terms.paths && terms.mode === "read")
      report("FLOW2008", name.at, `\`mode: read\` changes nothing, and \`paths\` says where \`${name.text}\` may`, {
        suggestion: "remove one of them",
      });
    for (const path of terms.paths ?? []) checkPath(path, name, source);
  }
  for (const { shape, member } of members) {
    checkMember(shape, member.agent, source);
    if (member.terms.plan && shape.team)
      report(
        "FLOW2008",
        member.name.at,
        `\`${member.name.text}\` leads a team of its own, and sends no plan to this one's lead`,
        {
          suggestion: "remove `plan: required` here, and let its own members send theirs",
        },
      );
  }
}

function checkName({ text, at }: Word, agent: Word, { report }: CheckSource): void {
  const suggestion = `give it another: \`{ agent: ${agent.text}, name: … }\``;
  const refused = `a member cannot be called \`${text}\``;
  if (isReservedName(text)) report("FLOW3003", at, `${refused}: JavaScript objects inherit that name`, { suggestion });
  else if (taken.has(text.toLowerCase()))
    report("FLOW6004", at, `${refused}: in a team that stands for something else`, { suggestion });
}

interface Round {
  readonly members: readonly MemberLink[];
  /** Those told already: each agent of a circle is in it. */
  readonly circles: Set<string>;
}

function checkCircles(lead: AgentShape, { members, circles }: Round, { report, workflow }: CheckSource): void {
  for (const { shape, member } of members) {
    const way = wayTo(lead, shape, workflow);
    if (!way) continue;
    const circle = JSON.stringify(way.map(({ agent }) => agent.name).sort());
    if (circles.has(circle)) continue;
    circles.add(circle);
    const names = [lead, ...way].map(({ agent }) => `\`${agent.name}\``).join(" -> ");
    report("FLOW6022", member.agent.at, `a team cannot contain itself: ${names}`);
  }
}

function checkPath(path: string, { at, text }: Word, { report }: CheckSource): void {
  if (!path.startsWith("/") && !path.startsWith("~") && !path.split("/").includes("..")) return;
  report("FLOW2008", at, `\`${path}\` is no place in the workspace, so \`${text}\` could change nothing there`, {
    suggestion: "write paths from the workspace, such as `docs`",
  });
}

function checkMember({ agent, disabled }: AgentShape, { at }: Word, { report, defaults }: CheckSource): void {
  const configured = defaults?.disabled(agent.name);
  if (configured) {
    const related = [{ message: "it is disabled here", at: configured }];
    report("FLOW6004", at, `agent \`${agent.name}\` is disabled by the configuration`, { related });
  } else if (disabled) report("FLOW6004", at, `agent \`${agent.name}\` is disabled in its file`);
  else if (agent.mode === "primary")
    report("FLOW6004", at, `agent \`${agent.name}\` is only for steps (\`mode: primary\`)`, {
      suggestion: "set `mode: all` in its file",
    });
}

/** The agents from a member on, each a member of the one before, by which a team comes back to its lead. */
function wayTo(lead: AgentShape, from: AgentShape, { crews }: LinkedWorkflow): readonly AgentShape[] | undefined {
  const ways: AgentShape[][] = [[from]];
  const seen = new Set<AgentShape>();
  for (let way = ways.shift(); way; way = ways.shift()) {
    const last = way.at(-1);
    if (last === lead) return way;
    if (last === undefined || seen.has(last)) continue;
    seen.add(last);
    for (const { shape } of crews.get(last)?.members ?? []) ways.push([...way, shape]);
  }
  return undefined;
}
