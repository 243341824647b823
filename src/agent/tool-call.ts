import { compileSchema } from "../jsonschema/compile.ts";
import type { SchemaIssue } from "../jsonschema/issue.ts";
import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import { graceOfTool } from "../model/grace.ts";
import type { Hooks } from "../model/hooks.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Block, Message } from "../model/message.ts";
import { nearest } from "../model/names.ts";
import type { Clock, Tool } from "../model/ports.ts";
import { elapsed } from "../model/ports.ts";
import { messageOf, type Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { parseArguments } from "./arguments.ts";
import { capped } from "./cap.ts";
import { admit, noted, withHooks } from "./hooked.ts";
import type { RunRights } from "./permission.ts";
import type { CallBlock } from "./turn.ts";

/** What the calls of one message run with. */
export interface CallSetting {
  readonly ids: TurnIds;
  /** Results from before the run was resumed, by the id of their call: these are not run. */
  readonly known: ReadonlyMap<string, Block>;
  readonly tools: readonly Tool[];
  /** Not on offer, and judged like them: the rules deny every call. */
  readonly withheld?: readonly Tool[] | undefined;
  /** Filled as tools are called, so that no schema is compiled twice. */
  readonly validators: Validators;
  /** Absent: everything on offer is allowed. */
  readonly rights?: RunRights | undefined;
  readonly hooks?: Hooks | undefined;
  /** Ends the agent once these calls are answered. */
  readonly halt: (reason: string) => void;
  readonly workspace: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Keeps a text that is too long for the model and gives the path the model may read it at. */
  readonly spill: (text: string) => string;
}

/** Tools whose parameters were compiled. */
export type Validators = WeakMap<Tool, ReturnType<typeof compileSchema>>;

/** Read-only calls that run at once. */
const parallelCalls = 16;
const maxListedErrors = 5;

/**
 * Runs the calls of one message and answers each of them, in the model's order, in one user message. Neighbouring
 * read-only calls run together, every other one alone and in its place. Whatever goes wrong becomes an error result
 * the model can read. A call that was refused has no `tool.started`: nothing of it ran.
 */
export async function* runCalls(
  calls: readonly CallBlock[],
  setting: CallSetting,
): AsyncGenerator<AgentEvent, Message> {
  const results = new Map<CallBlock, Block>();
  for (const call of calls) {
    const known = setting.known.get(call.id);
    if (known !== undefined) results.set(call, known);
  }
  const left = calls.filter((call) => !results.has(call));
  const prepared = await Promise.all(left.map(async (call) => ({ call, ready: await prepare(call, setting) })));
  for (const group of inGroups(prepared)) {
    const running: Promise<Finished>[] = [];
    for (const { call, ready } of group) {
      if (!ready.ok) running.push(Promise.resolve(refused(call, ready.error)));
      else if (setting.signal.aborted) running.push(Promise.resolve(refused(call, notRun)));
      else {
        const { tool } = ready.value;
        // Only now, right before it begins: a call before it may have changed what a path means.
        const { args, event, refusal, texts } = await admit(call, ready.value, { ...setting, fit: fitterOf(setting) });
        if (event) yield event;
        // Hooks and people take their time: it may be over by now.
        const no = refusal ?? (setting.signal.aborted ? notRun : undefined);
        if (no !== undefined) running.push(Promise.resolve(refused(call, no, tool.name)));
        else {
          yield { ...setting.ids, type: "tool.started", id: call.id, name: tool.name, args };
          running.push(execute(call, { tool, args, texts }, setting));
        }
      }
    }
    for await (const finished of asTheyFinish(running)) {
      // Cut off, and not at an end: it is made again on resume.
      if (setting.signal.aborted && finished.goesOn) continue;
      yield finalize(finished, setting, results);
    }
  }
  return { role: "user", blocks: calls.flatMap((call) => results.get(call) ?? []) };
}

const notRun = "not run: its agent was to end";

interface Ready {
  readonly tool: Tool;
  readonly args: JsonObject;
}
interface Prepared {
  readonly call: CallBlock;
  readonly ready: Result<Ready, string>;
}
interface Finished {
  readonly call: CallBlock;
  /** Of the tool, whatever the model called it. */
  readonly name: string;
  readonly text: Result<string, string>;
  readonly images?: readonly Block[];
  readonly goesOn?: boolean;
  readonly duration: number;
}

/** Arguments that a hook wrote are checked as the model's are. */
function fitterOf({ validators }: CallSetting): (tool: Tool, args: JsonObject) => Promise<Result<JsonObject, string>> {
  return async (tool, args) => {
    const validate = await validators.get(tool);
    const errors = validate?.ok === true ? validate.value(args) : [];
    return errors.length === 0 ? ok(args) : err(`its arguments do not fit any more:\n${listErrors(errors)}`);
  };
}

async function prepare(
  call: CallBlock,
  { tools, withheld = [], validators }: CallSetting,
): Promise<Result<Ready, string>> {
  const tool = findTool(call.name, tools) ?? findTool(call.name, withheld);
  if (tool === undefined) return err(unknownTool(call.name, tools));
  const args = parseArguments(call.raw);
  if (!args.ok) return err(`The arguments of \`${tool.name}\` were not used: ${args.error}. Call it again.`);
  const compiling = validators.get(tool) ?? compileSchema(tool.parameters);
  validators.set(tool, compiling);
  const validate = await compiling;
  if (!validate.ok) return err(`\`${tool.name}\` cannot be called: its parameters\n${listErrors(validate.error)}`);
  const named = withOurNames(args.value, tool);
  const errors = validate.value(named);
  if (errors.length === 0) return ok({ tool, args: named });
  return err(`The arguments of \`${tool.name}\` do not fit its parameters:\n${listErrors(errors)}`);
}

/** A call as it would be made, its arguments as they were written. */
export function callOf({ name, args }: CallBlock, tools: readonly Tool[]): Ready | undefined {
  const tool = findTool(name, tools);
  return tool && isJsonObject(args) ? { tool, args: withOurNames(args, tool) } : undefined;
}

/** By its own name, or else by what other programs call it. */
function findTool(name: string, tools: readonly Tool[]): Tool | undefined {
  return tools.find((tool) => tool.name === name) ?? tools.find(({ aliases }) => aliases?.names.includes(name));
}

/** Arguments by our names, where they are called what other programs call them. */
export function withOurNames(args: JsonObject, { aliases, parameters }: Tool): JsonObject {
  const own = isJsonObject(parameters["properties"]) ? parameters["properties"] : {};
  if (aliases === undefined) return args;
  const entries = Object.entries(args).map(([name, value]) => {
    const ours = Object.hasOwn(aliases.parameters, name) ? aliases.parameters[name] : undefined;
    const isForeign = ours !== undefined && !Object.hasOwn(own, name) && !Object.hasOwn(args, ours);
    return [isForeign ? ours : name, value] as const;
  });
  return Object.fromEntries(entries);
}

function unknownTool(name: string, tools: readonly Tool[]): string {
  const names = tools.map((tool) => tool.name).sort();
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name;
  const near = nearest(name, names);
  const hint = near === undefined ? "" : ` Did you mean \`${near}\`?`;
  const offer = names.length === 0 ? "No tool is on offer." : `On offer: ${names.join(", ")}.`;
  return `There is no tool \`${shown}\`.${hint} ${offer}`;
}

/** At most five, one a line, each with its place as a JSON pointer. */
export function listErrors(errors: readonly SchemaIssue[]): string {
  const lines = errors.slice(0, maxListedErrors).map(({ path, message }) => {
    const place = path.map((key) => `/${key}`).join("");
    return place === "" ? `- ${message}` : `- ${place}: ${message}`;
  });
  if (errors.length > maxListedErrors) lines.push(`- and ${errors.length - maxListedErrors} more`);
  return lines.join("\n");
}

function inGroups(prepared: readonly Prepared[]): Prepared[][] {
  const groups: Prepared[][] = [];
  for (const one of prepared) {
    const group = groups.at(-1);
    const isRead = isReadOnly(one) && group?.every(isReadOnly) === true && group.length < parallelCalls;
    if (group !== undefined && (isRead || (isConcurrent(one) && group.every(isConcurrent)))) group.push(one);
    else groups.push([one]);
  }
  return groups;
}

function isConcurrent({ ready }: Prepared): boolean {
  return ready.ok && ready.value.tool.concurrent === true;
}

function isReadOnly({ ready }: Prepared): boolean {
  return !ready.ok || ready.value.tool.readOnly;
}

function refused(call: CallBlock, why: string, name: string = call.name): Finished {
  return { call, name, text: err(why), duration: 0 };
}

async function execute(
  call: CallBlock,
  { tool, args, texts }: Ready & { readonly texts: readonly string[] },
  setting: CallSetting,
): Promise<Finished> {
  const { clock, signal, workspace, rights } = setting;
  const memory = rights && {
    seen: rights.seen,
    narrow: (rules: readonly string[]) => rights.narrow?.(rules),
    mayRead: (path: string) => rights.mayRead(path),
    ...(rights.launch && { launch: rights.launch }),
  };
  const start = clock.monotonic();
  const images: Block[] = [];
  let text: Result<string, string>;
  try {
    const output = await orAbandoned(tool.run(args, { workspace, signal, id: call.id, ...memory }), { clock, signal });
    text = output.ok ? ok(textOf(output.value.blocks)) : output;
    if (output.ok) images.push(...output.value.blocks.filter(isSmallImage).slice(0, maxImages));
  } catch (error) {
    text = err(`\`${tool.name}\` failed: ${messageOf(error)}`);
  }
  const duration = elapsed(clock, start);
  return {
    call,
    name: tool.name,
    text: await withHooks(call, { tool, args, text: noted(text, texts) }, setting),
    images,
    ...(tool.goesOn && { goesOn: true }),
    duration,
  };
}

/** Images of one result that a model is shown, and base64 characters of each: servers take no more. */
const maxImages = 20;
const maxImage = 5 * 1024 * 1024;

function isSmallImage(block: Block): boolean {
  return block.type === "image" && block.data.length <= maxImage;
}

/** The work's own end; after a cancel it is waited for only for the grace, so that a deaf tool cannot hold the run. */
function orAbandoned<T>(work: Promise<T>, { clock, signal }: Pick<CallSetting, "clock" | "signal">): Promise<T> {
  return new Promise((resolve, reject) => {
    let stopTimer: (() => void) | undefined;
    const onAbort = (): void => {
      stopTimer = clock.after(graceOfTool, () => reject(new Error("it did not stop when the run was cancelled")));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    const settled = (): void => {
      signal.removeEventListener("abort", onAbort);
      stopTimer?.();
    };
    work.finally(settled).then(resolve, reject);
  });
}

async function* asTheyFinish<T>(work: readonly Promise<T>[]): AsyncGenerator<T> {
  const waiting = new Map(work.map((promise, index) => [index, promise.then((value) => ({ index, value }))]));
  while (waiting.size > 0) {
    const { index, value } = await Promise.race(waiting.values());
    waiting.delete(index);
    yield value;
  }
}

function finalize(
  { call, name, text, images = [], duration }: Finished,
  setting: CallSetting,
  results: Map<CallBlock, Block>,
): AgentEvent {
  const { text: shown, file } = capped(text.ok ? text.value : text.error, setting.spill);
  const blocks: Block[] = [
    ...(text.ok && text.value === "" && images.length > 0 ? [] : [{ type: "text", text: shown } as const]),
    ...images,
  ];
  results.set(call, { type: "result", id: call.id, blocks, ...(text.ok ? {} : { error: true }) });
  return {
    ...setting.ids,
    type: "tool.finished",
    id: call.id,
    name,
    status: text.ok ? "completed" : "error",
    text: shown,
    ...(file === undefined ? {} : { file }),
    duration,
  };
}

function textOf(blocks: readonly Block[]): string {
  const texts = blocks.flatMap((block) => {
    if (block.type === "image" && !isSmallImage(block)) return ["(an image that is too large to be shown)"];
    return block.type === "text" ? [block.text] : [];
  });
  return texts.join("\n");
}
