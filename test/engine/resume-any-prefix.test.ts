import { truncateSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { History } from "../../src/engine/resume.ts";
import { readForResume } from "../../src/runlog/reopen.ts";
import { ended, type Outcome, Project, readEvents, replies, twelve } from "./resuming.ts";

let whole: Project;
let first: Outcome;
let log: Buffer;
/** Byte offsets behind each line. */
let ends: readonly number[];

beforeAll(async () => {
  whole = new Project(twelve);
  first = await whole.run("twelve.yaml", { approve: ["ok"], form: ["why=tested"], by: "mei" });
  log = Buffer.from(whole.log);
  ends = [...log.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
});
afterAll(() => whole.remove());

test("the run whose log is cut has steps of every kind, and every kind of thing that can be reused", () => {
  expect(first).toEqual({
    outcome: "success",
    exitCode: 0,
    outputs: {
      plan: "Three things.",
      verdict: "ship",
      sub: "HELLO WORLD",
      items: ["x", "y", "z"],
      loop: "321",
      mapped: "RAW world",
      tolerated: "exit partial",
      approved: JSON.stringify({ often: 2, why: "tested", by: "mei", comment: "" }, undefined, 2),
      all: "inner of hello world made fine",
    },
  });
  expect(whole.count).toHaveLength(14);
});

test("a log cut at any byte is a valid state: the fold of its whole lines", { timeout: 120_000 }, async () => {
  const states = ends.map((end) => stateOf(log.subarray(0, end)));
  const copy = whole.cutAt(log.length);
  let lines = ends.length;
  for (let bytes = log.length; bytes >= 0; bytes--) {
    while (lines > 0 && (ends[lines - 1] ?? 0) > bytes) lines--;
    truncateSync(copy.logFile, bytes);
    const history = new History();
    const read = await readForResume(copy.runFolder, (line) => history.add(line));
    if (lines === 0) expect(read.ok).toBe(false);
    else {
      const torn = bytes - (ends[lines - 1] ?? 0);
      expect(read).toMatchObject({ ok: true, value: { end: { seq: lines, bytes: bytes - torn }, torn } });
      expect(JSON.stringify([...history.executions])).toBe(states[lines - 1]);
    }
  }
  copy.remove();
});

function stateOf(part: Buffer): string {
  const history = new History();
  for (const line of readEvents(part.toString())) history.add(line);
  return JSON.stringify([...history.executions]);
}

describe("a run resumed from a log cut", () => {
  test(
    "at each line ends as the whole one did, and nothing that had ended runs again",
    { timeout: 300_000 },
    async () => {
      await resumedAt(ends);
    },
  );

  test("at 200 other bytes does so, too", { timeout: 300_000 }, async () => {
    const random = seeded(20_261_121);
    await resumedAt(
      Array.from({ length: 200 }, () => (ends[0] ?? 0) + Math.floor(random() * (log.length - (ends[0] ?? 0)))),
    );
  });
});

async function resumedAt(offsets: readonly number[]): Promise<void> {
  const left = [...offsets];
  const next = async (): Promise<void> => {
    for (let bytes = left.pop(); bytes !== undefined; bytes = left.pop()) await resumedOnce(bytes);
  };
  await Promise.all([next(), next(), next(), next()]);
}

async function resumedOnce(bytes: number): Promise<void> {
  const before = readEvents(log.subarray(0, bytes).toString());
  const copy = whole.cutAt(bytes);
  copy.write("count", "");
  const result = await copy.resume();
  const isOver = before.at(-1)?.type === "run.finished";
  expect([bytes, result]).toEqual([bytes, isOver ? { ...first, outcome: "nothing to do" } : first]);
  const done = ended(before);
  expect([bytes, copy.count.filter((path) => done.has(path))]).toEqual([bytes, []]);
  const events = copy.events;
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  const paid = replies(before);
  expect([bytes, replies(events.slice(before.length)).filter((reply) => paid.includes(reply))]).toEqual([bytes, []]);
  copy.remove();
}

test("an answer is asked for once, wherever the log of a run that waited is cut", { timeout: 120_000 }, async () => {
  const asking = new Project({
    "ask.yaml": `
name: ask
steps:
  before: { run: 'echo "$FLOW_STEP" >> count' }
  gate:
    needs: [before]
    steps:
      ok: { approve: Go on? }
      then: { needs: [ok], run: 'echo "$FLOW_STEP" >> count; echo "$BY"', env: { BY: "\${{ steps.ok.outputs.by }}" } }
    outputs: { by: "\${{ steps.then.outputs.stdout }}" }
outputs: { by: "\${{ steps.gate.outputs.by }}" }
`,
  });
  expect(await asking.run("ask.yaml")).toEqual({ outcome: "waiting", exitCode: 5, outputs: {} });
  const approve = ["gate/ok"];
  const done = { outcome: "success", exitCode: 0, outputs: { by: "mei" } };
  expect(await asking.resume({ approve, by: "mei" })).toEqual(done);
  const text = Buffer.from(asking.log);
  const cuts = [...text.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
  for (const bytes of cuts.slice(0, -1)) {
    const copy = asking.cutAt(bytes);
    const hasAnswer = readEvents(text.subarray(0, bytes).toString()).some(
      (line) => line.type === "run.resumed" && line.answers !== undefined,
    );
    const next = await copy.resume();
    expect([bytes, next.outcome]).toEqual([bytes, hasAnswer ? "success" : "waiting"]);
    if (!hasAnswer) expect([bytes, await copy.resume({ approve, by: "mei" })]).toEqual([bytes, done]);
    const given = copy.events.filter(({ type }) => type === "approval.given");
    expect([bytes, given.length >= 1 && given.length <= 2]).toEqual([bytes, true]);
    expect(copy.events.filter(({ type }) => type === "approval.requested")).toHaveLength(1);
    copy.remove();
  }
  asking.remove();
});

/** Numbers in [0, 1), the same each time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
