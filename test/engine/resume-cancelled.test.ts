import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, Project, readEvents } from "./resuming.ts";

const leaves = 'echo "$FLOW_STEP" >> count';
const undo = `undo: { run: '${leaves}' }`;

/** What can be taken back lies at every place a step can lie at, and reads what every kind of place gives; the last one fails. */
const saga = {
  "saga.yaml": `
name: saga
inputs: { never: { type: boolean, default: false } }
steps:
  first: { run: '${leaves}; echo "made=it" >> "$FLOW_OUTPUT"', ${undo} }
  value: { set: { list: [x, y, z], made: "\${{ steps.first.outputs.made }}" } }
  each:
    foreach: "\${{ steps.value.outputs.list }}"
    parallel: 2
    run: '${leaves}'
    env: { I: "\${{ item }}" }
    ${undo}
  loop: { needs: [first], repeat: { until: iteration == 3, max: 5 }, run: '${leaves}', ${undo} }
  group:
    needs: [first]
    steps:
      a: { run: '${leaves}', ${undo} }
      none: { steps: { nothing: { if: inputs.never, run: '${leaves}' } } }
      inner: { set: { all: "\${{ steps.a.outputs.stdout }} and" } }
      b: { run: '${leaves}', env: { X: "\${{ steps.inner.outputs.all }}" }, if: "steps.a.conclusion == 'success'", ${undo} }
    outputs: { all: "\${{ steps.inner.outputs.all }}" }
  after: { run: '${leaves}', env: { X: "\${{ steps.group.outputs.all }}" }, ${undo} }
  rounds:
    needs: [first]
    foreach: [p, q]
    steps:
      v: { set: { it: "\${{ item }}!" } }
      c: { run: '${leaves}', env: { X: "\${{ steps.v.outputs.it }}" }, ${undo} }
  turns:
    needs: [first]
    repeat: { until: iteration == 2, max: 3 }
    steps: { t: { run: '${leaves}', ${undo} } }
  called: { workflow: ./sub.yaml, with: { made: "\${{ steps.value.outputs.made }}" }, timeout: 1m }
  kept: { cache: true, steps: { k: { run: '${leaves}; echo kept' } }, outputs: { k: "\${{ steps.k.outputs.stdout }}" } }
  of-kept: { run: '${leaves}', env: { X: "\${{ steps.kept.outputs.k }} \${{ steps.called.outputs.d }}" }, ${undo} }
  bad: { needs: [first], run: 'exit 3' }
  rescue: { if: "failure('bad')", run: '${leaves}', env: { X: "\${{ steps.bad.conclusion }}" }, ${undo} }
  plain: { needs: [first], run: '${leaves}' }
  last:
    needs: [each, loop, after, rounds, turns, of-kept, rescue, plain]
    run: '${leaves}; test -e well'
  told: { needs: [last], if: "always()", run: 'echo told >> count' }
`,
  "sub.yaml": `
name: sub
inputs: { made: { type: string } }
steps:
  s: { set: { x: "\${{ inputs.made }}" } }
  d: { run: '${leaves}; echo d', env: { X: "\${{ steps.s.outputs.x }}" }, ${undo} }
  e: { needs: [d], run: '${leaves}' }
outputs: { d: "\${{ steps.d.outputs.stdout }}" }
`,
};

let whole: Project;
let log: Buffer;

beforeAll(async () => {
  whole = new Project(saga);
  expect(await whole.run("saga.yaml")).toMatchObject({ outcome: "failure" });
  log = Buffer.from(whole.log);
});
afterAll(() => whole.remove());

describe("a resume that is cancelled before it begins", () => {
  test(
    "starts no step, takes back what was done and tells the end; and what it left can be resumed",
    { timeout: 300_000 },
    async () => {
      const events = readEvents(log.toString());
      const undoing = events.findIndex((event) => event.type === "step.undo.started");
      const ends = [...log.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
      const left = ends.slice(0, undoing);
      const next = async (): Promise<void> => {
        for (let bytes = left.pop(); bytes !== undefined; bytes = left.pop()) await cancelledAt(bytes);
      };
      await Promise.all([next(), next(), next(), next()]);
    },
  );
});

async function cancelledAt(bytes: number): Promise<void> {
  const events = readEvents(log.subarray(0, bytes).toString());
  const before = [...ended(events)];
  const copy = whole.cutAt(bytes);
  copy.write("count", "");
  const { outcome } = await copy.resume({ signal: AbortSignal.abort("SIGINT") });
  const hasFailed = events.some((event) => event.type === "step.attempt.finished" && event.step === "bad");
  // `always()` and `failure()` hold after a cancel as well.
  const cleanup = [
    ...(before.includes("told") ? [] : ["told"]),
    ...(hasFailed && !before.includes("rescue") ? ["rescue", "rescue/undo"] : []),
  ];
  const undone = before.filter((path) => !["plain", "called/e", "kept/k", "last", "told"].includes(path));
  expect([bytes, outcome, copy.count.toSorted()]).toEqual([
    bytes,
    "cancelled",
    [...undone.map((path) => `${path}/undo`), ...cleanup].toSorted(),
  ]);
  const order = copy.count;
  for (const [sooner, later] of [
    ["told", "first/undo"],
    ["after/undo", "group/b/undo"],
    ["group/b/undo", "group/a/undo"],
    ["group/a/undo", "first/undo"],
    ["of-kept/undo", "called/d/undo"],
    ["loop#2/undo", "loop#1/undo"],
    ["turns#2/t/undo", "turns#1/t/undo"],
    ["rescue/undo", "first/undo"],
  ] as const)
    if (order.includes(sooner) && order.includes(later))
      expect([bytes, sooner, order.indexOf(sooner) < order.indexOf(later)]).toEqual([bytes, sooner, true]);
  copy.write("count", "");
  copy.write("well", "");
  expect([bytes, (await copy.resume()).outcome]).toEqual([bytes, "failure"]);
  const again = copy.count;
  expect([bytes, undone.filter((path) => !again.includes(path))]).toEqual([bytes, []]);
  copy.remove();
}
