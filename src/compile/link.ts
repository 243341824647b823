import { calls, type Reference } from "../expr/inspect.ts";
import type { Span } from "../model/diagnostic.ts";
import { nearest } from "../model/names.ts";
import type { Edge } from "../model/plan.ts";
import { didYouMean, type Report } from "./report.ts";
import type { EdgeShape, NeedShape, ScopeShape, StepShape, Use } from "./shape.ts";

/** A scope with its steps by name and its edges: what it takes to find, order and check references. */
export interface LinkedScope {
  readonly shape: ScopeShape;
  readonly parent: LinkedScope | undefined;
  /** The group whose scope this is. */
  readonly owner: StepShape | undefined;
  /** By lower-case id: expressions ignore case. */
  readonly indexOf: ReadonlyMap<string, number>;
  readonly edges: readonly Edge[];
  readonly inner: ReadonlyMap<string, LinkedScope>;
}

/** A reference to a step of an enclosing scope; there it becomes an edge of the group. */
interface Outward {
  readonly name: string;
  readonly hard: boolean;
  readonly at: Span;
}

/** Turns `needs`, `edges` and references into the edges of every scope, and reports names that mean nothing. */
export function linkScope(shape: ScopeShape, report: Report): LinkedScope {
  return linkInside(shape, {}, report).linked;
}

function linkInside(
  shape: ScopeShape,
  { parent, owner }: { readonly parent?: LinkedScope; readonly owner?: StepShape },
  report: Report,
): { linked: LinkedScope; outward: Outward[] } {
  const indexOf = new Map(shape.steps.map((step, index) => [step.id.toLowerCase(), index]));
  const edges: Edge[] = [];
  const inner = new Map<string, LinkedScope>();
  const linked: LinkedScope = { shape, parent, owner, indexOf, edges, inner };
  const outward: Outward[] = [];
  const written = Map.groupBy(shape.edges, (edge) => edge.to.text.toLowerCase());
  for (const edge of shape.edges) if (!indexOf.has(edge.to.text.toLowerCase())) reportUnknown(linked, edge.to, report);
  const exits = new Set(
    shape.steps.flatMap((step, index) => (step.needs.some((need) => need.step.text === "*") ? [index] : [])),
  );

  shape.steps.forEach((step, index) => {
    const pairs = new Map<number, Edge>();
    addWritten({
      linked,
      index,
      exits,
      needs: [...step.needs, ...(written.get(step.id.toLowerCase()) ?? [])],
      pairs,
      report,
    });
    const found = [...step.uses, ...edgeUses(step, written)].flatMap((use) => referencesOf(use, report));
    if (step.inner) {
      const inside = linkInside(step.inner, { parent: linked, owner: step }, report);
      inner.set(step.id, inside.linked);
      found.push(...inside.outward);
      const free = step.innerUses
        .flatMap((use) => referencesOf(use, report))
        .filter((it) => !inside.linked.indexOf.has(it.name.toLowerCase()));
      found.push(...free);
    } else found.push(...step.innerUses.flatMap((use) => referencesOf(use, report)));
    for (const reference of found) addReference({ linked, index, reference, pairs, outward, report });
    for (const reference of step.undoUses.flatMap((use) => referencesOf(use, report))) {
      if (resolve(linked, reference.name) === undefined) reportUnknownReference(linked, reference, report);
    }
    edges.push(...pairs.values());
  });
  for (const use of shape.outputUses) {
    for (const reference of referencesOf(use, report))
      if (resolve(linked, reference.name) === undefined) reportUnknownReference(linked, reference, report);
  }
  return { linked, outward };
}

/** The step a name means, seen from a scope: its own steps first, then those around it. */
export function resolve(
  scope: LinkedScope,
  name: string,
): { readonly scope: LinkedScope; readonly index: number; readonly step: StepShape } | undefined {
  for (let place: LinkedScope | undefined = scope; place; place = place.parent) {
    const index = place.indexOf.get(name.toLowerCase());
    const step = index === undefined ? undefined : place.shape.steps[index];
    if (index !== undefined && step) return { scope: place, index, step };
  }
  return undefined;
}

function edgeUses(step: StepShape, written: ReadonlyMap<string, readonly EdgeShape[]>): Use[] {
  return [...step.needs, ...(written.get(step.id.toLowerCase()) ?? [])].flatMap((need) => need.uses);
}

interface WrittenSource {
  readonly linked: LinkedScope;
  readonly index: number;
  /** Steps that need `*`. */
  readonly exits: ReadonlySet<number>;
  readonly needs: readonly NeedShape[];
  readonly pairs: Map<number, Edge>;
  readonly report: Report;
}

function addWritten({ linked, index, exits, needs, pairs, report }: WrittenSource): void {
  for (const need of needs) {
    const sources = sourcesOf(need, linked, exits);
    if (sources.length === 0 && need.step.text !== "*") reportUnknown(linked, need.step, report);
    for (const source of sources) {
      const first = pairs.get(source);
      const edge: Edge = {
        from: source,
        to: index,
        hard: true,
        origin: "written",
        ...(need.if && { if: need.if }),
        at: need.step.at,
      };
      if (first && need.step.text === "*" && !need.if) continue;
      if (first) reportTwice(linked, first, edge, report);
      pairs.set(source, first?.if ? first : edge);
    }
  }
}

function sourcesOf(need: NeedShape, linked: LinkedScope, exits: ReadonlySet<number>): number[] {
  if (need.step.text === "*") return [...linked.shape.steps.keys()].filter((step) => !exits.has(step));
  const from = linked.indexOf.get(need.step.text.toLowerCase());
  return from === undefined ? [] : [from];
}

function reportTwice(linked: LinkedScope, first: Edge, second: Edge, report: Report): void {
  const ids = `\`${linked.shape.steps[first.from]?.id}\` and \`${linked.shape.steps[first.to]?.id}\``;
  const related = [{ message: "the first is here", at: first.at }];
  if (first.if || second.if)
    report("FLOW4002", second.at, `between ${ids} there is one edge, and it can have one condition`, {
      related,
      suggestion: "join the conditions with `&&` or `||`",
    });
  else report("FLOW4003", second.at, `the edge between ${ids} is written twice`, { severity: "warning", related });
}

interface ReferenceSource {
  readonly linked: LinkedScope;
  readonly index: number;
  readonly reference: Outward;
  readonly pairs: Map<number, Edge>;
  readonly outward: Outward[];
  readonly report: Report;
}

function addReference({ linked, index, reference, pairs, outward, report }: ReferenceSource): void {
  const source = linked.indexOf.get(reference.name.toLowerCase());
  if (source === index) {
    report(
      "FLOW5015",
      reference.at,
      `\`${reference.name}\` refers to itself: its own outputs exist only after it has run`,
      {
        suggestion: "in `outputs` and `until` its own values are `result`; the iteration before is `previous`",
      },
    );
  } else if (source !== undefined) {
    const first = pairs.get(source);
    if (!first)
      pairs.set(source, { from: source, to: index, hard: reference.hard, origin: "reference", at: reference.at });
    else if (first.origin === "reference" && reference.hard && !first.hard) pairs.set(source, { ...first, hard: true });
  } else if (linked.parent && resolve(linked.parent, reference.name)) outward.push(reference);
  else reportUnknownReference(linked, reference, report);
}

/** The steps an expression refers to: hard for outputs outside of `default(…)`, soft for everything else. */
function referencesOf(use: Use, report: Report): Outward[] {
  const found = use.references.flatMap((reference) => stepReference(use, reference, report));
  for (const call of calls(use.parsed)) {
    if (call.name !== "failure" || call.args.length === 0) continue;
    const [name] = call.args;
    const place = call.places[0] ?? call;
    // A literal's quotes are not part of the id.
    const inset = name === undefined ? 0 : 1;
    const at = use.span(place.offset + inset, place.length - 2 * inset);
    if (name === undefined)
      report("FLOW5009", at, "`failure()` takes the id of a step as a literal text, such as `failure('build')`");
    else found.push({ name, hard: false, at });
  }
  return found;
}

function stepReference(use: Use, reference: Reference, report: Report): Outward[] {
  if (reference.context !== "steps" || !use.place.contexts.has("steps")) return [];
  const [id, property] = reference.path;
  const at = use.span(reference.offset, reference.length);
  if (id?.kind !== "name") {
    report("FLOW5009", at, "`steps` is followed by the literal id of a step, such as `steps.build.outputs`", {
      suggestion: "name each step you mean; which steps a step waits for must be known before anything runs",
    });
    return [];
  }
  const hard =
    !reference.guarded &&
    (property === undefined || property.kind !== "name" || property.name.toLowerCase() === "outputs");
  return [{ name: id.name, hard, at: use.span(id.offset, id.length) }];
}

function reportUnknown(linked: LinkedScope, word: { readonly text: string; readonly at: Span }, report: Report): void {
  if (linked.parent && resolve(linked.parent, word.text)) {
    report("FLOW3004", word.at, `\`${word.text}\` is not a sibling: \`needs\` names steps of the same group`, {
      suggestion: "put `needs` on the group; a reference to an outer step's outputs orders the group by itself",
    });
    return;
  }
  if (isUnread(linked, word.text)) return;
  const names = linked.shape.steps.map((step) => step.id);
  report("FLOW3004", word.at, `there is no step \`${word.text}\``, () => didYouMean(nearest(word.text, names)));
}

function reportUnknownReference(linked: LinkedScope, { name, at }: Outward, report: Report): void {
  const group = groupHolding(linked, name);
  if (group !== undefined) {
    report("FLOW5008", at, `\`${name}\` is inside the group \`${group}\`, and its outputs end there`, {
      suggestion: `give \`${group}\` an \`outputs\` mapping and read \`steps.${group}.outputs\``,
    });
    return;
  }
  if (isUnread(linked, name)) return;
  const names: string[] = [];
  for (let place: LinkedScope | undefined = linked; place; place = place.parent)
    names.push(...place.shape.steps.map((step) => step.id));
  report("FLOW5008", at, `there is no step \`${name}\``, () => didYouMean(nearest(name, names)));
}

/** Whether there is such a step, with a mistake of its own that has been told: one mistake, one message. */
function isUnread(linked: LinkedScope, name: string): boolean {
  for (let place: LinkedScope | undefined = linked; place; place = place.parent)
    if (place.shape.unread.has(name.toLowerCase())) return true;
  return false;
}

/** The group among a scope's steps that has a step of this name inside. */
function groupHolding(linked: LinkedScope, name: string): string | undefined {
  const wanted = name.toLowerCase();
  for (let place: LinkedScope | undefined = linked; place; place = place.parent) {
    const group = place.shape.steps.find((step) =>
      step.inner?.steps.some((inner) => inner.id.toLowerCase() === wanted),
    );
    if (group) return group.id;
  }
  return undefined;
}
