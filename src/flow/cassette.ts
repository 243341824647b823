import { existsSync } from "node:fs";
import path from "node:path";
import type { MemberRun, Replayed } from "../agent/agent-ports.ts";
import { isTeamCall, messagesOf } from "../agent/team/calls.ts";
import type { SpawnedBy } from "../model/agent-event.ts";
import { askedAs } from "../model/ids.ts";
import type { LogLine } from "../model/event.ts";
import type { Message } from "../model/message.ts";
import type { ModelRequest } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { Cassette, type Take } from "../providers/replay.ts";
import { readWholeLog } from "../runlog/read.ts";
import { requestHash } from "../agent/request.ts";
import { locateRun, type RunsPlace } from "./read-run.ts";

/** Texts of the request masked as the log's are. */
export type MaskRequest = (request: ModelRequest) => ModelRequest;

/** Makes a log the models of another run. `name` is how somebody called it. */
export async function openCassette(file: string, name: string, masked: MaskRequest): Promise<Result<Cassette, string>> {
  const log = await readWholeLog(file);
  if (!log.ok) return err(`${name} cannot be replayed: ${log.error.message}`);
  if (log.value.lines[0]?.type !== "run.started") return err(`${name} is not the log of a run`);
  const { lines } = log.value;
  const takes = takesIn(lines);
  const resumed = lines.findIndex(({ type }) => type === "run.resumed");
  const isMixed = lines.some(
    (line, at) => resumed >= 0 && at > resumed && line.type === "agent.started" && line.spawned,
  );
  return ok(
    new Cassette({
      name,
      takes,
      ...(isMixed && { caveat: otherIds }),
      masked,
      hash: (request) => requestHash(request, masked),
    }),
  );
}

const otherIds = "that run was resumed while sub-agents worked, which have other ids since";

/**
 * Whose reports each agent run of a log read, and before which of its turns; and in which order the members of teams
 * began. Undefined of a run that was resumed: its agent runs have other ids in a replay.
 */
export async function courseOf(file: string): Promise<Replayed | undefined> {
  const log = await readWholeLog(file);
  if (!log.ok || log.value.lines.some(({ type }) => type === "run.resumed")) return undefined;
  const read = new Map<string, readonly string[]>();
  const begun = new Map<string, MemberRun[]>();
  for (const line of log.value.lines) {
    if (line.type === "turn.started")
      read.set(`${line.agent} ${line.turn}`, read.get(`${line.agent} ${line.turn}`) ?? []);
    else if (line.type === "message" && line.from) read.set(`${line.agent} ${line.turn}`, line.from);
    else if (line.type === "team.member.updated" && line.change.state === "working") {
      const { member, change } = line;
      const { task } = change;
      const runs = begun.get(line.agent) ?? [];
      begun.set(line.agent, [...runs, { member, ...(typeof task === "string" && { task }), messages: [] }]);
    } else if (line.type === "agent.started" && line.parent !== null && line.spawned)
      identify(begun.get(line.parent) ?? [], line.agent, line.spawned);
  }
  return {
    readings: (agent, turn) => read.get(`${agent} ${turn}`),
    memberRuns: (lead) => begun.get(lead) ?? [],
  };
}

/** A member does one thing after the other: an agent run of it is that of what it began last. */
function identify(runs: MemberRun[], id: string, { call, name }: SpawnedBy): void {
  const at = isTeamCall(call) ? runs.findLastIndex(({ member }) => member === name) : -1;
  const run = runs[at];
  if (run !== undefined) runs[at] = { ...run, id, messages: messagesOf(call) };
}

/** The log of a run as every command names one, or a log file: it may be kept under any name, beside the tests that use it. */
export function locateLog(name: string, place: RunsPlace): Result<string, string> {
  const { cwd = process.cwd() } = place;
  if (!name.endsWith(".jsonl")) {
    const folder = locateRun(name, place);
    return folder.ok ? ok(path.join(folder.value, "log.jsonl")) : folder;
  }
  const file = path.resolve(cwd, name);
  return existsSync(file) ? ok(file) : err(`there is no log ${name}`);
}

/** One agent run as the log tells it. */
interface Told {
  /** What it asks as: the path of its step, and behind it its name where another agent spawned it. */
  readonly place: string;
  readonly tools: readonly string[];
  messages: Message[];
  /** False once the conversation was made shorter: what is sent then is not in the log. */
  isWhole: boolean;
  asked: Pick<Take, "model" | "request"> | undefined;
}

export function takesIn(lines: readonly LogLine[]): Take[] {
  const told = new Map<string, Told>();
  const takes: Take[] = [];
  for (const line of lines) takes.push(...takesOf(line, told));
  return takes;
}

function takesOf(line: LogLine, told: Map<string, Told>): Take[] {
  switch (line.type) {
    case "agent.started": {
      const before = told.get(line.continues ?? "");
      const messages = [...(before?.messages ?? [])];
      const place = askedAs(line);
      told.set(line.agent, { place, tools: line.tools, messages, isWhole: before?.isWhole ?? true, asked: undefined });
      return [];
    }
    case "turn.started":
    case "model.fallback": {
      const agent = told.get(line.agent);
      if (agent !== undefined) agent.asked = { model: line.model, request: line.request };
      return [];
    }
    case "model.failed":
      return takeOf(line, told.get(line.agent), {
        type: "failed",
        failure: { kind: failureKind(line.error.kind), message: line.error.message, transient: false },
      });
    case "message": {
      const agent = told.get(line.agent);
      const { message, stop, usage } = line;
      const take =
        stop === undefined || usage === undefined ? [] : takeOf(line, agent, { type: "reply", message, stop, usage });
      agent?.messages.push(message);
      return take;
    }
    case "context.compressed": {
      const agent = told.get(line.agent);
      if (agent === undefined) return [];
      agent.isWhole = false;
      return line.how === "summarised" ? [summaryTake(line, agent)] : [];
    }
    default:
      return [];
  }
}

function takeOf({ turn }: { readonly turn: number }, agent: Told | undefined, answer: Take["answer"]): Take[] {
  if (agent?.asked === undefined) return [];
  const { place, asked, tools, messages, isWhole } = agent;
  return [{ step: place, turn, ...asked, tools, ...(isWhole && { sent: [...messages] }), answer }];
}

/** The agent that summarises sends no events of its own: its reply stands, behind a heading, in what it was for. */
function summaryTake(line: Extract<LogLine, { how: "summarised" }>, { place, asked }: Told): Take {
  const [first] = line.message.blocks;
  const text = first?.type === "text" ? first.text.slice(first.text.indexOf("\n") + 1) : "";
  const message: Message = { role: "assistant", blocks: [{ type: "text", text }] };
  const { turn, request, usage } = line;
  const answer = { type: "reply", message, stop: "end", usage } as const;
  return { step: `${place}/compact`, turn, model: asked?.model ?? "", request, tools: [], answer };
}

type Kind = Extract<Take["answer"], { type: "failed" }>["failure"]["kind"];

function failureKind(kind: string): Kind {
  return failureKinds.find((known) => known === kind) ?? "provider_error";
}

const failureKinds: readonly Kind[] = ["rate_limit", "unavailable", "timeout", "overflow", "refused", "internal"];
