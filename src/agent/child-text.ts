import type { ToolOutput } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { RecordedChild, RecordedEnd } from "./recorded.ts";

/** What a parent is told of a child that works in the background. */
export function started({ id }: RecordedChild): Result<ToolOutput, string> {
  return said(`Started ${id}. Its report comes as a message; go on with something else, or answer to wait for it.`);
}

export function said(text: string): Result<ToolOutput, string> {
  return ok({ blocks: [{ type: "text", text }] });
}

/** What a child has come to, for a parent that waited. */
export function answerOf(child: RecordedChild, end: RecordedEnd): Result<ToolOutput, string> {
  if (end.outcome === "done") return said(`${answer(end)}\n\n${metaOf(child, end)}`);
  const words = end.text === "" ? "" : `\nIts last words: ${end.text}`;
  return err(`${child.agent} did not finish: ${end.reason}${words}\n\n${metaOf(child, end)}`);
}

/** What a child that nobody waited for says, with who says it. */
export function reportOf(child: RecordedChild, end: RecordedEnd): string {
  const text = end.outcome === "done" ? answer(end) : `It did not finish: ${end.reason}\n${end.text}`.trimEnd();
  return `[Report of the sub-agent ${child.name ?? child.id}, ${child.title}]\n${text}\n\n${metaOf(child, end)}`;
}

function answer({ text, output }: RecordedEnd): string {
  return output === undefined ? text : JSON.stringify(output);
}

/** Figures that are the same whenever the same replies are: no times. */
function metaOf({ id, agent }: RecordedChild, { outcome, turns, calls, usage }: RecordedEnd): string {
  const tokens = usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
  return `[agent_id: ${id}, agent: ${agent}, outcome: ${outcome}, turns: ${turns}, tool calls: ${calls}, tokens: ${tokens}]`;
}
