import type { AgentEvent } from "../model/agent-event.ts";
import type { Block } from "../model/message.ts";
import { unreachable } from "../model/result.ts";
import { count, duration, excerpt, spent } from "./words.ts";

/** What a line of progress says of an agent. */
export function agentText(event: AgentEvent, verbose: number): string[] {
  switch (event.type) {
    case "agent.started": {
      const title = event.spawned === undefined ? "" : ` ${JSON.stringify(excerpt(event.spawned.title))}`;
      return [`start${title} agent=${event.name} model=${event.model}`];
    }
    case "agent.finished":
      if (event.parent !== null) return [childEnd(event)];
      if (event.outcome === "done" && verbose < 1) return [];
      // Why it failed is told by the step, or by its retry.
      return [`agent ${event.outcome} after ${event.turns} ${event.turns === 1 ? "turn" : "turns"}`];
    case "turn.started":
    case "message.delta":
      return [];
    case "message":
      return verbose < 2 ? [] : event.message.blocks.map((block) => `${event.message.role}: ${blockText(block)}`);
    case "model.retry":
      return [`${event.model} again in ${duration(event.delay)}: ${excerpt(event.error.message)}`];
    case "model.failed":
      return [`${event.model} failed: ${excerpt(event.error.message)}`];
    case "model.fallback":
      return [`${event.from} failed, ${event.model} is asked`];
    case "budget.reserved":
    case "budget.settled":
    case "budget.exceeded":
      // What was spent is told with the turn, a limit that stopped an agent by its end.
      return [];
    case "model.warning":
      return [`warning ${event.model}: ${excerpt(event.note)}`];
    case "context.compressed":
    case "guard":
    case "check.started":
    case "check.finished":
      return mindText(event, verbose);
    case "turn.finished":
      return verbose < 1 ? [] : [`turn ${event.turn} ${event.stop} ${duration(event.duration)}${spent(event.usage)}`];
    case "permission.judged":
      return event.decision === "allow" && verbose < 2 ? [] : [judgedText(event)];
    case "tool.started":
      return verbose < 1 ? [] : [`tool ${event.name} ${excerpt(JSON.stringify(event.args))}`];
    case "tool.finished":
      return verbose < 1 ? [] : [`tool ${event.name} ${toolEnd(event)}`];
    default:
      return unreachable(event);
  }
}

/** Nobody else says how a sub-agent ended: no step ends with it. */
function childEnd(event: Extract<AgentEvent, { type: "agent.finished" }>): string {
  const word = event.outcome === "done" ? "ok" : event.outcome;
  const why = event.outcome === "done" ? "" : ` ${excerpt(event.reason)}`;
  const turns = `${event.turns} ${event.turns === 1 ? "turn" : "turns"}`;
  return `${word} ${turns} ${duration(event.duration)}${spent(event.usage)}${why}`;
}

type MindEvent = Extract<AgentEvent, { type: "context.compressed" | "guard" | "check.started" | "check.finished" }>;

/** What the loop does of its own accord. */
function mindText(event: MindEvent, verbose: number): string[] {
  switch (event.type) {
    case "context.compressed": {
      const { before, after } = event.tokens;
      return [`context ${event.how}: ${count(before)} → ${count(after)} tok`];
    }
    case "guard":
      return verbose < 1 && event.action === "hint"
        ? []
        : [`guard ${event.rule} ${event.action}: ${excerpt(event.text)}`];
    case "check.started":
      return verbose < 1 ? [] : [`check ${event.count}`];
    case "check.finished":
      return event.status === "passed" && verbose < 1
        ? []
        : [`check ${event.count} ${event.status} ${duration(event.duration)}`];
    default:
      return unreachable(event);
  }
}

/** What was not allowed is said at once: it is what somebody has to change. */
function judgedText(event: Extract<AgentEvent, { type: "permission.judged" }>): string {
  const { decision, name, rule, layer, file, line, toAllow = [] } = event;
  const place = file === undefined ? "" : ` ${file}${line === undefined ? "" : `:${line}`}`;
  const source = `${excerpt(rule)} (${excerpt(`${layer}${place}`)})`;
  if (decision === "allow") return `${excerpt(name)} allowed by ${source}`;
  const verdict = decision === "deny" ? "denied" : "needs approval, so denied,";
  return `${excerpt(name)} ${verdict} by ${source}${toAllow.length === 0 ? "" : `; allow with ${toAllow.map(excerpt).join(", ")}`}`;
}

function toolEnd(event: Extract<AgentEvent, { type: "tool.finished" }>): string {
  const took = duration(event.duration);
  if (event.status === "error") return `error ${took}: ${excerpt(event.text)}`;
  const kept = event.file === undefined ? "" : `, the whole in ${event.file}`;
  return `ok ${took} ${count(event.text.length)} characters${kept}`;
}

function blockText(block: Block): string {
  switch (block.type) {
    case "text":
      return excerpt(block.text);
    case "thinking":
      return `(thinking) ${excerpt(block.text)}`;
    case "call":
      return `calls ${block.name} ${excerpt(block.raw)}`;
    case "image":
      return `image ${excerpt(block.mediaType)}`;
    case "result":
      return `${block.error === true ? "error" : "result"}: ${excerpt(block.blocks.map(blockText).join(" "))}`;
    default:
      return unreachable(block);
  }
}
