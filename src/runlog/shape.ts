import type { Event } from "../model/event.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { isBlob } from "./fields.ts";

type Is = (value: unknown) => boolean;
type Shape = { readonly [field: string]: Is };

const isText: Is = (value) => typeof value === "string";
const isNumber: Is = (value) => typeof value === "number";
const isNumberOrNull: Is = (value) => value === null || isNumber(value);
const isList: Is = (value) => Array.isArray(value);
const has = (shape: Shape): Is => {
  const fields = Object.entries(shape);
  return (value) =>
    isJsonObject(value) && fields.every(([field, is]) => is(Object.hasOwn(value, field) ? value[field] : undefined));
};
const optional =
  (is: Is): Is =>
  (value) =>
    value === undefined || is(value);
const listOf =
  (is: Is): Is =>
  (value) =>
    Array.isArray(value) && value.every(is);
const oneOf =
  (...texts: readonly string[]): Is =>
  (value) =>
    typeof value === "string" && texts.includes(value);
const orBlob =
  (is: Is): Is =>
  (value) =>
    isBlob(value) || is(value);

const isSpan = has({ file: isText, line: isNumber, column: isNumber, endColumn: isNumber });
const isFailure = optional(has({ kind: isText, message: isText, position: optional(isSpan), step: optional(isText) }));
const isUsage = has({ input: isNumber, output: isNumber, cacheRead: isNumber, cacheWrite: isNumber });
const isSeen = has({ expression: isText });
const reasons: { readonly [kind: string]: Is } = {
  condition: has({ condition: isText, saw: listOf(isSeen) }),
  needs: has({ step: isText, outcome: isText, message: isText }),
  edge: has({ step: isText, condition: isText, saw: listOf(isSeen) }),
  empty: () => true,
  cancelled: () => true,
};
const isReason: Is = (value) =>
  isJsonObject(value) &&
  typeof value["kind"] === "string" &&
  Object.hasOwn(reasons, value["kind"]) &&
  reasons[value["kind"]]?.(value) === true;
const blocks: { readonly [type: string]: Is } = {
  text: has({ text: isText }),
  thinking: has({ text: isText }),
  image: has({ mediaType: isText, data: isText }),
  call: has({ name: isText, raw: isText }),
  result: (value) => isJsonObject(value) && listOf(isBlock)(value["blocks"]),
};
const isBlock: Is = (value) =>
  isJsonObject(value) &&
  typeof value["type"] === "string" &&
  Object.hasOwn(blocks, value["type"]) &&
  blocks[value["type"]]?.(value) === true;
const isPlan: Is = (value) => has({ root: isText })(value) && isJsonObject((value as JsonObject)["workflows"]);

const isOutcome = oneOf("success", "failure", "cancelled");
const isRunOutcome = oneOf("success", "failure", "cancelled", "waiting", "empty");
const isAgain = oneOf("from", "uncertain", "undone", "failed", "cancelled", "waiting", "definition", "given", "needs");
const step: Shape = { step: isText };
const agent: Shape = { ...step, agent: isText };
const turn: Shape = { ...agent, turn: isNumber };

const isTask = has({ id: isText, subject: isText, description: isText, status: isText, dependsOn: listOf(isText) });

/** What readers rely on, by the type of the event. */
const shapes: { readonly [Type in Event["type"]]: Is } = {
  "run.started": has({
    log: isNumber,
    run: isText,
    workflow: isText,
    name: isText,
    workspace: isText,
    supervision: optional(isText),
    plan: orBlob(isPlan),
  }),
  "run.resumed": has({
    plan: optional(orBlob(isPlan)),
    changes: optional(isList),
    from: optional(isText),
    set: optional(isList),
  }),
  "run.waiting": has({ steps: listOf(isText) }),
  "permissions.counted": has({ rules: listOf(has({ rule: isText, layer: isText, hits: isNumber })) }),
  "run.finished": has({
    outcome: isRunOutcome,
    error: isFailure,
    usage: isUsage,
    duration: isNumber,
    exitCode: isNumber,
  }),
  "team.started": has({ ...agent, name: isText, parallel: isNumber }),
  "team.member.added": has({ ...agent, member: has({ name: isText, agent: isText }) }),
  "team.member.updated": has({ ...agent, member: isText, change: isJsonObject }),
  "team.member.removed": has({ ...agent, member: isText }),
  "team.task.added": has({ ...agent, task: isTask }),
  "team.task.updated": has({ ...agent, task: isText, by: isText, change: isJsonObject }),
  "team.message": has({
    ...agent,
    message: has({ id: isText, from: isText, to: isText, kind: isText, content: isText }),
  }),
  "team.woken": has({ ...agent, count: isNumber }),
  "team.finished": has({ ...agent, end: isText, reason: isText }),
  "step.ready": has(step),
  "step.started": has({ ...step, kind: isText }),
  "step.attempt.started": has({ ...step, attempt: isNumber, again: optional(isAgain) }),
  "step.attempt.finished": has({
    ...step,
    attempt: isNumber,
    outcome: isOutcome,
    error: isFailure,
    duration: isNumber,
  }),
  "step.retrying": has({ ...step, attempt: isNumber, delay: isNumber, error: isFailure }),
  "step.reused": has({ ...step, end: isNumber }),
  "step.cached": has({ ...step, key: isText, run: isText, stored: isText }),
  "step.uncached": has({
    ...step,
    key: isText,
    why: oneOf("first", "changed", "damaged", "refresh"),
    changed: optional(listOf(isText)),
    than: optional(has({ run: isText, stored: isText })),
  }),
  "step.undo.started": has(step),
  "step.undone": has({ ...step, outcome: isOutcome, error: isFailure, duration: isNumber }),
  "step.skipped": has({ ...step, reason: isReason }),
  "step.finished": has({ ...step, outcome: isOutcome, conclusion: isOutcome, error: isFailure, duration: isNumber }),
  "approval.requested": has({ ...step, question: isText, deadline: optional(isText) }),
  "approval.given": has({ ...step, decision: isText, by: isText, comment: isText }),
  "mcp.started": has({ ...step, server: isText, offers: isNumber, duration: isNumber }),
  "mcp.warning": has({ ...step, server: isText, note: isText }),
  "worktree.opened": has({ ...step, worktree: isText, folder: isText, base: isText }),
  "worktree.applying": has({ ...step, worktree: isText, patch: isText, from: isText, to: isText }),
  "worktree.closed": has({
    ...step,
    worktree: isText,
    status: oneOf("applied", "empty", "conflict", "kept", "lost"),
    patch: optional(isText),
    files: listOf(isText),
    conflicts: optional(listOf(isText)),
    duration: isNumber,
  }),
  "worktree.removed": has({ run: isText, worktree: isText, patch: optional(isText) }),
  "agent.started": has({
    ...agent,
    name: isText,
    model: isText,
    provider: isText,
    sandbox: optional(oneOf("on", "off", "unavailable")),
  }),
  "agent.finished": has({
    ...agent,
    outcome: isText,
    reason: orBlob(isText),
    turns: isNumber,
    usage: isUsage,
    duration: isNumber,
  }),
  "turn.started": has(turn),
  message: has({ ...turn, message: orBlob(has({ role: isText, blocks: listOf(isBlock) })) }),
  "message.delta": has(turn),
  "model.retry": has({ ...turn, model: isText, attempt: isNumber, delay: isNumber, error: isFailure }),
  "model.failed": has({ ...turn, model: isText, attempt: isNumber, error: isFailure }),
  "model.fallback": has({ ...turn, from: isText, model: isText }),
  "model.warning": has({ ...turn, model: isText, note: isText }),
  "turn.finished": has({ ...turn, stop: isText, usage: isUsage, duration: isNumber }),
  "budget.reserved": has({ ...turn, tokens: isNumber, cost: isNumberOrNull }),
  "budget.settled": has({ ...turn, tokens: isNumber, cost: isNumberOrNull }),
  "budget.exceeded": has({ ...turn, limit: isText, of: isText, most: isNumber, spent: isNumberOrNull }),
  "permission.judged": has({ ...turn, name: isText, decision: isText, rule: isText, layer: isText }),
  "tool.started": has({ ...turn, name: isText }),
  "tool.finished": has({ ...turn, name: isText, status: isText, text: orBlob(isText), duration: isNumber }),
  "context.compressed": has({ ...turn, how: isText, tokens: has({ before: isNumber, after: isNumber }) }),
  guard: has({ ...turn, rule: isText, action: isText, text: orBlob(isText) }),
  "hook.finished": has({
    step: isText,
    event: isText,
    command: isText,
    status: isText,
    text: orBlob(isText),
    duration: isNumber,
  }),
  "check.started": has({ ...turn, count: isNumber }),
  "check.finished": has({ ...turn, count: isNumber, status: isText, text: orBlob(isText), duration: isNumber }),
  diagnostic: has({ diagnostic: has({ code: isText, severity: isText, message: isText, at: isSpan }) }),
};

/** Whether a line of a known type holds what such an event holds: the quick look for readers that must not stumble. */
export function isWellFormed(line: { readonly type: Event["type"] }): boolean {
  return shapes[line.type](line);
}
