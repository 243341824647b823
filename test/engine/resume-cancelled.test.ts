import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, Project, readEvents } from "./resuming.ts";

const leaves = 'echo "$FLOW_STEP" >> count';
const undo = `undo: { run: '${leaves}' }`;

/** What can be taken back lies at every place a step can lie at; the last one fails. */
const saga = {
  "saga.yaml": `
name: saga
steps:
  first: { run: '${leaves}; echo "made=it" >> "$FLOW_OUTPUT"', ${undo} }
  each: { needs: [first], foreach: [x, y, z], parallel: 2, run: '${leaves}', ${undo} }
  loop: { needs: [first], repeat: { until: iteration == 3, max: 5 }, run: '${leaves}', ${undo} }
  group:
    needs: [first]
    steps:
      a: { run: '${leaves}', ${undo} }
      b: { needs: [a], run: '${leaves}', if: "steps.a.conclusion == 'success'", ${undo} }
  rounds:
    needs: [first]
    foreach: [p, q]
    steps:
      c: { run: '${leaves}', ${undo} }
  called: { needs: [first], workflow: ./sub.yaml, timeout: 1m }
  plain: { needs: [first], run: '${leaves}' }
  last: { needs: [each, loop, group, rounds, called, plain], run: '${leaves}; test -e well' }
  told: { needs: [last], if: "always()", run: 'echo told >> count' }
`,
  "sub.yaml": `
name: sub
steps:
  d: { run: '${leaves}', ${undo} }
  e: { needs: [d], run: '${leaves}' }
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
  const before = [...ended(readEvents(log.subarray(0, bytes).toString()))];
  const copy = whole.cutAt(bytes);
  copy.write("count", "");
  const { outcome } = await copy.resume({ signal: AbortSignal.abort("SIGINT") });
  const isTold = before.includes("told");
  const undone = before.filter((path) => !["plain", "called/e", "last", "told"].includes(path));
  expect([bytes, outcome, copy.count.toSorted()]).toEqual([
    bytes,
    "cancelled",
    [...undone.map((path) => `${path}/undo`), ...(isTold ? [] : ["told"])].toSorted(),
  ]);
  copy.write("count", "");
  copy.write("well", "");
  expect([bytes, (await copy.resume()).outcome]).toEqual([bytes, "success"]);
  const again = copy.count;
  expect([bytes, undone.filter((path) => !again.includes(path))]).toEqual([bytes, []]);
  copy.remove();
}
