import { usesStatus } from "../../expr/inspect.ts";
import type { Step, StepKind, Undo } from "../../model/plan.ts";
import { entry, type MapNode, type SourceNode } from "../../source/document.ts";
import type { NeedShape, ScopeShape, StepShape, Use } from "../shape.ts";
import { checkNames, optional, readLimits } from "./agent.ts";
import { readDuration } from "./duration.ts";
import { type Defaults, readBody, type StepBody } from "./body.ts";
import { readCondition, type Reader, readEntries, readTemplate, refuseExpressions } from "./expression.ts";
import { kindOf } from "./kind.ts";
import { readForeach, readRepeat, readRetry } from "./loops.ts";
import { asMap, asText, booleanOf, entriesOf, itemsOf, textOf } from "./nodes.ts";
import { filePlace, type Loops, stepPlace } from "./place.ts";

export interface StepsSource {
  readonly reader: Reader;
  readonly steps: SourceNode | undefined;
  readonly defaults: Defaults;
  /** The loops around these steps. */
  readonly loops: Loops;
}

/** The steps of a workflow or a group, in the order they are written. */
export function readSteps(source: StepsSource): StepShape[] {
  checkNames(source.reader.report, source.steps, "a step");
  return entriesOf(source.steps).flatMap(({ key, keyAt, value }) => {
    const node = asMap(value);
    const kind = node && kindOf(node);
    return node && kind ? [readStep({ ...source, id: key, idAt: keyAt, node, kind })] : [];
  });
}

/** Ids, in lower case, of the steps that {@link readSteps} left out. */
export function unreadSteps(node: SourceNode | undefined, read: readonly StepShape[]): ReadonlySet<string> {
  const known = new Set(read.map(({ id }) => id));
  return new Set(entriesOf(node).flatMap(({ key }) => (known.has(key) ? [] : [key.toLowerCase()])));
}

interface StepSource extends StepsSource {
  readonly id: string;
  readonly idAt: StepShape["idAt"];
  readonly node: MapNode;
  readonly kind: StepKind;
}

function readStep({ reader: fileReader, id, idAt, node, kind, defaults, loops }: StepSource): StepShape {
  const uses: Use[] = [];
  const innerUses: Use[] = [];
  const undoUses: Use[] = [];
  const reader: Reader = { ...fileReader, uses };
  const innerReader: Reader = { ...fileReader, uses: innerUses };
  const { report } = reader;
  const get = (key: string): SourceNode | undefined => entry(node, key)?.value;
  for (const key of ["name", "description", "retry", "limits", "rerun", "isolation", "join"])
    refuseExpressions(reader, get(key), `\`${key}\``);

  const read = readIf(reader, get("if"), loops);
  const matrix = get("matrix") !== undefined;
  const foreach = readForeach(reader, node, loops);
  const repeated = get("repeat") !== undefined;
  const itemLoops: Loops = { ...loops, item: loops.item || foreach !== undefined, matrix: loops.matrix || matrix };
  const bodyLoops: Loops = { ...itemLoops, iteration: loops.iteration || repeated };
  const body = readBody({ reader, node, kind, defaults, loops: bodyLoops, key: id });
  const inner =
    kind === "steps" ? readGroup({ reader: fileReader, node, defaults, loops: bodyLoops, innerReader }) : undefined;
  const outputs = get("outputs");
  const mapping = kind !== "steps" && outputs && asMap(outputs);
  if (mapping) checkNames(report, mapping, "an output");
  const undo = readUndo({ reader: { ...fileReader, uses: undoUses }, node, defaults, loops: itemLoops, id });
  const step: Step = {
    id,
    kind,
    ...optional("name", textOf(get("name"))),
    ...optional("description", textOf(get("description"))),
    at: idAt,
    ...(read && { if: { source: read.source, at: read.at, status: read.use ? usesStatus(read.use.parsed) : false } }),
    join: textOf(get("join")) === "any" ? "any" : "all",
    inputs: body.inputs,
    body: body.body,
    ...(mapping && { outputs: readEntries(reader, mapping, stepPlace("`outputs`", bodyLoops, ["result"])) }),
    ...optional("foreach", foreach),
    ...optional("repeat", readRepeat(innerReader, get("repeat"), bodyLoops)),
    ...optional("cache", readCache(reader, get("cache"), itemLoops)),
    ...optional("retry", readRetry(get("retry") ?? (body.takesDefaults ? defaults.retry : undefined), kind, report)),
    ...optional("timeout", readTimeout(reader, get("timeout") ?? (body.takesDefaults ? defaults.timeout : undefined))),
    continueOnError: booleanOf(get("continue-on-error")) ?? false,
    ...optional("undo", undo?.undo),
    limits: readLimits(get("limits"), report),
    ...(textOf(get("rerun")) === "never" && { rerun: "never" as const }),
    ...(textOf(get("isolation")) === "worktree" && { isolation: "worktree" as const }),
  };
  return {
    id,
    idAt,
    node,
    step,
    needs: readNeeds(reader, get("needs"), loops),
    uses,
    innerUses,
    undoUses,
    ...(read?.use && { condition: read.use }),
    ...optional("inner", inner),
    ...optional("agent", body.agent),
    ...optional("workflow", body.workflow),
    ...optional("team", body.team),
    ...optional("undoAgent", undo?.agent),
    ...optional("undoWorkflow", undo?.workflow),
  };
}

function readIf(reader: Reader, node: SourceNode | undefined, loops: Loops): ReturnType<typeof readCondition> {
  return node && readCondition(reader, node, stepPlace("`if`", loops, [], true));
}

function readGroup({
  reader,
  node,
  defaults,
  loops,
  innerReader,
}: {
  reader: Reader;
  node: MapNode;
  defaults: Defaults;
  loops: Loops;
  innerReader: Reader;
}): ScopeShape {
  const steps = readSteps({ reader, steps: entry(node, "steps")?.value, defaults, loops });
  const outputs = asMap(entry(node, "outputs")?.value);
  checkNames(reader.report, outputs, "an output");
  const outputUses: Use[] = [];
  const entries = outputs
    ? readEntries({ ...innerReader, uses: outputUses }, outputs, stepPlace("`outputs`", loops))
    : [];
  innerReader.uses.push(...outputUses);
  return {
    steps,
    unread: unreadSteps(entry(node, "steps")?.value, steps),
    edges: [],
    outputs: entries.map((it, index) => ({ ...it, at: outputs?.entries[index]?.keyAt ?? node.at })),
    outputUses,
  };
}

/** `needs`: an id, a list of ids and `{ step, if }`, or `*`. */
function readNeeds(reader: Reader, node: SourceNode | undefined, loops: Loops): NeedShape[] {
  return itemsOf(node).flatMap((item) => {
    const text = asText(item);
    if (text) {
      refuseExpressions(reader, text, "`needs`");
      return [{ step: { text: text.value, at: text.at }, uses: [] }];
    }
    const map = asMap(item);
    const step = asText(map && entry(map, "step")?.value);
    if (!map || !step) return [];
    const uses: Use[] = [];
    const written = entry(map, "if")?.value;
    const read = written && readCondition({ ...reader, uses }, written, stepPlace("an edge's `if`", loops));
    return [
      { step: { text: step.value, at: step.at }, ...(read && { if: { source: read.source, at: read.at } }), uses },
    ];
  });
}

function readCache(reader: Reader, node: SourceNode | undefined, loops: Loops): Step["cache"] {
  if (!node || booleanOf(node) === false) return undefined;
  const map = asMap(node);
  const place = stepPlace("`cache`", loops);
  const key = map && entry(map, "key")?.value;
  const files = map && entry(map, "files")?.value;
  return {
    ...(key && { key: readTemplate(reader, key, place) }),
    files: files ? readTemplate(reader, files, place) : { type: "data", json: [] },
  };
}

function readTimeout(reader: Reader, node: SourceNode | undefined): Step["timeout"] {
  if (!node) return undefined;
  const text = textOf(node);
  if (text?.includes("${{")) return readTemplate(reader, node, filePlace("`timeout`", ["inputs", "vars"]));
  return readDuration(node, reader.report);
}

interface UndoSource {
  readonly reader: Reader;
  readonly node: MapNode;
  readonly defaults: Defaults;
  readonly loops: Loops;
  readonly id: string;
}
interface Undone extends Pick<StepBody, "agent" | "workflow"> {
  readonly undo: Undo;
}

function readUndo({ reader, node, defaults, loops, id }: UndoSource): Undone | undefined {
  const written = asMap(entry(node, "undo")?.value);
  const kind = written && kindOf(written);
  if (!written || !kind) return undefined;
  const { inputs, body, agent, workflow } = readBody({
    reader,
    node: written,
    kind,
    defaults,
    loops,
    key: `${id}.undo`,
  });
  return {
    undo: { kind, inputs, body, at: written.at },
    ...optional("agent", agent),
    ...optional("workflow", workflow),
  };
}
