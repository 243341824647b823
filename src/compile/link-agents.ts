import { nearest } from "../model/names.ts";
import type { CompileDefaults } from "./defaults.ts";
import { type AgentFile, everyone, type NamedAgents } from "./agent-shelf.ts";
import { readAgent } from "./read/agent.ts";
import { didYouMean, oneOf, type Report, type ReportExtra } from "./report.ts";
import type { AgentShape, MemberShape, StepShape, TeamShape, Word, WorkflowShape } from "./shape.ts";

/** Whom an agent may spawn, and whom it leads. */
export interface Crew {
  readonly subagents: readonly AgentLink[];
  readonly members: readonly MemberLink[];
}

/** A member of a team with its agent. */
export interface MemberLink extends AgentLink {
  readonly member: MemberShape;
}

/** An agent by the name that another has for it. */
export interface AgentLink {
  readonly name: Word;
  readonly shape: AgentShape;
}

export interface AgentLinksOptions {
  readonly report: Report;
  readonly disabled: CompileDefaults["disabled"];
  /** Told of every file, when it is read. */
  readonly onFile: (file: AgentFile) => void;
}

/** The agents of a library: each file is read once, and every name resolved. */
export interface AgentLinks {
  /** The agent of a step, or of its `undo`. */
  of(link: StepShape["agent"], workflow: WorkflowShape): AgentShape | undefined;
  /** The crews of these agents in a workflow, of those they name, and so on. */
  crews(agents: Iterable<AgentShape>, workflow: WorkflowShape): ReadonlyMap<AgentShape, Crew>;
  /** What a step's own `team` names; none where it has none. */
  team(step: StepShape, workflow: WorkflowShape): readonly MemberLink[];
}

/** `disabled`: where a configuration says that nobody may use an agent of that name. */
export function createAgentLinks({ report, disabled, onFile }: AgentLinksOptions): AgentLinks {
  const shapes = new Map<string, AgentShape | undefined>();
  const named = new Map<AgentShape, NamedAgents>();

  return {
    of(link, workflow) {
      if (!link) return undefined;
      if ("inline" in link) return link.inline;
      const { agents, refusedAgents: refused } = workflow.file;
      return resolve(link.name, { inline: workflow.agents, files: agents, refused, workflow });
    },
    crews(agents, workflow) {
      const found = new Map<AgentShape, Crew>();
      const queue = [...agents];
      for (let next = queue.shift(); next; next = queue.shift()) {
        if (found.has(next)) continue;
        const crew = crewOf(next, workflow);
        found.set(next, crew);
        queue.push(...[...crew.subagents, ...crew.members].map(({ shape }) => shape));
      }
      return found;
    },
    team(step, workflow) {
      const { files, refused } = workflow.file.namedAgents.get(step.node) ?? nobody;
      return membersOf(step.team, { inline: workflow.agents, files, refused, workflow });
    },
  };

  /** A file's agent knows those of files; one that a workflow defines also the others that it defines. */
  function crewOf(agent: AgentShape, workflow: WorkflowShape): Crew {
    const ofFile = named.get(agent);
    const names = ofFile ?? workflow.file.namedAgents.get(agent.node) ?? nobody;
    const inline = ofFile ? new Map<string, AgentShape>() : workflow.agents;
    const scope: NameScope = { inline, ...names, workflow, ...(agent.foreign && { foreign: true }) };
    const all = agent.subagents.find(({ text }) => text === everyone);
    const written = agent.subagents.filter((word) => word !== all);
    const subagents = linksOf(written, scope).filter((link) => isSpawned(agent, link));
    const others = all ? linksOf(unnamed(scope, written, all), scope) : [];
    return {
      subagents: [
        ...subagents,
        ...others.filter(({ shape }) => shape !== agent && isOpen(shape) && !disabled(shape.agent.name)),
      ],
      members: membersOf(agent.team, scope),
    };
  }

  /** Whoever is named can be spawned; in another program's file one who cannot is left out. */
  function isSpawned(agent: AgentShape, { name: { text, at }, shape }: AgentLink): boolean {
    const obstacle = obstacleTo(agent, shape);
    if (obstacle === undefined) return true;
    const severity = agent.foreign ? "warning" : "error";
    const left = agent.foreign ? ", and is left out" : "";
    report("FLOW6004", at, `agent \`${text}\` ${obstacle.is}${left}`, { severity, ...obstacle.extra });
    return false;
  }

  function obstacleTo(agent: AgentShape, shape: AgentShape): Obstacle | undefined {
    const { name, mode } = shape.agent;
    const disabledAt = disabled(name);
    const related = disabledAt && [{ message: "it is disabled here", at: disabledAt }];
    if (name === agent.agent.name)
      return {
        is: "is the one that names it: below an agent nobody of its name is spawned",
        extra: { suggestion: "remove it from `subagents`" },
      };
    if (related) return { is: "is disabled by the configuration", extra: { related } };
    if (shape.disabled) return { is: "is disabled in its file" };
    if (mode !== "primary") return undefined;
    return {
      is: "is only for steps (`mode: primary`), so nobody spawns it",
      extra: { suggestion: "set `mode: all` in its file" },
    };
  }

  function linksOf(words: readonly Word[], scope: NameScope): AgentLink[] {
    return words.flatMap((name) => {
      const shape = resolve(name, scope);
      return shape ? [{ name, shape }] : [];
    });
  }

  function membersOf(team: TeamShape | undefined, scope: NameScope): MemberLink[] {
    return (team?.members ?? []).flatMap((member) => {
      const shape = resolve(member.agent, scope);
      return shape ? [{ name: member.name, shape, member }] : [];
    });
  }

  function resolve(
    { text, at }: Word,
    { inline, files, refused, workflow, foreign }: NameScope,
  ): AgentShape | undefined {
    const defined = inline.get(text);
    if (defined) return defined;
    const file = files.get(text);
    if (file) return read(file);
    if (text.includes("${{") || refused.has(text)) return undefined;
    const places = `neither in this file's \`agents\`, nor as ${text}.yaml or ${text}.md in an \`agents\` folder, nor in one of another program`;
    report("FLOW6001", at, `there is no agent \`${text}\`: ${places}${foreign ? "; it is left out" : ""}`, () => ({
      ...agentMeant(text, [...inline.keys(), ...workflow.file.agentsNearby()]),
      ...(foreign && { severity: "warning" }),
    }));
    return undefined;
  }

  function read(file: AgentFile): AgentShape | undefined {
    if (shapes.has(file.key)) return shapes.get(file.key);
    const { key, stem: name, document, body, dialect, foreign } = file;
    const source = { key, name, document, ...(body && { body }) };
    const isReadable = dialect === undefined || foreign !== undefined;
    const shape = isReadable
      ? readAgent({ ...source, node: foreign?.node ?? document.root, ...(foreign && { foreign }) }, report)
      : undefined;
    shapes.set(key, shape);
    if (shape) named.set(shape, file.named);
    onFile(file);
    return shape;
  }
}

interface NameScope extends NamedAgents {
  readonly inline: ReadonlyMap<string, AgentShape>;
  readonly workflow: WorkflowShape;
  /** Another program's file names: it may know agents that are not here. */
  readonly foreign?: true;
}

interface Obstacle {
  readonly is: string;
  readonly extra?: ReportExtra;
}

const nobody: NamedAgents = { files: new Map(), refused: new Set() };

/** All that can be found and was not named besides. */
function unnamed({ inline, files }: NameScope, written: readonly Word[], all: Word): Word[] {
  const known = new Set(written.map(({ text }) => text));
  const names = new Set([...inline.keys(), ...files.keys()]);
  return [...names].filter((text) => !known.has(text)).map((text) => ({ text, at: all.at }));
}

/** Whom nobody named is spawned only where that is nobody's loss. */
function isOpen({ agent: { mode }, disabled, hidden }: AgentShape): boolean {
  return mode !== "primary" && !disabled && !hidden;
}

function agentMeant(text: string, known: readonly string[]): ReturnType<typeof didYouMean> {
  const near = nearest(text, known);
  if (near !== undefined || known.length === 0) return didYouMean(near);
  return { suggestion: `known here: ${oneOf(known)}` };
}
