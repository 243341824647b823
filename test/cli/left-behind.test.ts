import { existsSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  hasNamespaces,
  killAll,
  leftAfter,
  processesWith,
  rounds,
  stubborn,
  uniqueSleep,
  untilRunning,
} from "../process/leftovers.ts";
import { Place, type Running } from "./flow.ts";

/** A place that goes with its test. */
function placeOf(files: Readonly<Record<string, string>>, clean: (tidy: () => void) => void = onTestFinished): Place {
  const place = new Place(files);
  clean(() => place.remove());
  return place;
}

interface Stubborn {
  readonly place: Place;
  readonly time: string;
  /** How many processes the step leaves. */
  readonly count: number;
}

/** A workflow whose step `bad` has stubborn children, one that cleared its environment too, and is deaf itself. */
function stubbornRun(more: string, daemon: boolean, clean: (tidy: () => void) => void = onTestFinished): Stubborn {
  const time = uniqueSleep();
  clean(() => killAll(time));
  const script = [failsOnWord, stubborn(time), `env -i setsid sleep ${time} >/dev/null 2>&1 &`];
  if (daemon) script.push(`( env -i setsid sleep ${time} >/dev/null 2>&1 & )`);
  script.push("trap '' TERM INT HUP", "while :; do sleep 0.2; done");
  const flow = `steps:\n  bad: { run: . ./bad.sh, ${more} }\n`;
  const place = placeOf({ "bad.sh": script.join("\n"), "flow.yaml": flow }, clean);
  return { place, time, count: daemon ? 7 : 6 };
}

const minute = "timeout: 1m";
/** What ends the step, the exit code, and what is added to the step. */
const ways: readonly { name: string; end: (run: Running, place: Place) => void; code: number | null; more: string }[] =
  [
    {
      name: "a cancel, because another item failed",
      end: (_, place) => place.write("go", ""),
      code: 1,
      more: "foreach: [0, 1], parallel: 2, env: { ITEM: '${{ item }}' }",
    },
    { name: "its timeout", end: () => undefined, code: 1, more: "timeout: 10s" },
    { name: "SIGINT", end: (run) => run.kill("SIGINT"), code: 130, more: minute },
    { name: "kill -9 of flow", end: (run) => run.kill("SIGKILL"), code: null, more: minute },
  ];
/** The second item of a `foreach` fails when it is told to; elsewhere there is none. */
const failsOnWord = `if [ "\${ITEM:-0}" = 1 ]; then until [ -e go ]; do sleep 0.1; done; exit 1; fi`;

const modes = hasNamespaces ? ["group", "namespace"] : ["group"];

describe.each(modes)("with FLOW_SUPERVISE=%s, of a step with stubborn children", (mode) => {
  it.concurrent.each(ways)("nothing is left after $name", { timeout: 900_000 }, async (way) => {
    const tidy: (() => void)[] = [];
    const clean = (one: () => void): number => tidy.push(one);
    const round = async (): Promise<void> => {
      const { place, time, count } = stubbornRun(way.more, mode === "namespace", clean);
      const run = place.start(["run", "flow.yaml"], { env: { FLOW_SUPERVISE: mode }, patience: 120_000 });
      await untilRunning(`sleep\0${time}`, count);
      way.end(run, place);
      const { code } = await run.ended;
      expect(code).toBe(way.code);
      // After `kill -9` somebody else has to tidy up; otherwise flow did before it ended.
      expect(await leftAfter(time, code === null ? 2000 : 0)).toBe(0);
      if (code !== null) expect(place.events().at(-1)).toMatchObject({ type: "run.finished", exitCode: code });
    };
    try {
      for (let done = 0; done < rounds; done += 5) await Promise.all(Array.from({ length: 5 }, round));
    } finally {
      tidy.forEach((one) => one());
    }
  });

  it("nothing is left after SIGINT twice, which takes less than a second", async () => {
    const { place, time, count } = stubbornRun(minute, mode === "namespace");
    const run = place.start(["run", "flow.yaml"], { env: { FLOW_SUPERVISE: mode } });
    await untilRunning(`sleep\0${time}`, count);
    run.kill("SIGINT");
    await run.said("cancelling");
    await delay(100);
    const begun = performance.now();
    run.kill("SIGINT");
    expect((await run.ended).code).toBe(130);
    expect(performance.now() - begun).toBeLessThan(1000);
    expect(processesWith(time)).toEqual([]);
    expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled", exitCode: 130 });
  });

  it("the log says what kept them together", async () => {
    const place = placeOf({ "flow.yaml": "steps: { a: { run: 'true' } }\n" });
    expect((await place.flow(["run", "flow.yaml"], { env: { FLOW_SUPERVISE: mode } })).code).toBe(0);
    expect(place.events()[0]).toMatchObject({ type: "run.started", supervision: mode });
  });
});

describe("without a pid namespace", () => {
  it("a daemon that cleared its environment outlives its run: the documented case", async () => {
    const time = uniqueSleep();
    onTestFinished(() => killAll(time));
    const place = placeOf({
      "flow.yaml": `steps: { a: { run: '( env -i setsid sleep ${time} >/dev/null 2>&1 & )' } }\n`,
    });
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(processesWith(time).length).toBe(1);
  });
});

describe("FLOW_SUPERVISE", () => {
  it("that is no mode is refused, and so are namespaces that this machine cannot make", async () => {
    const place = placeOf({ "flow.yaml": "steps: { a: { run: 'true' } }\n" });
    const wrong = await place.flow(["run", "flow.yaml"], { env: { FLOW_SUPERVISE: "nanny" } });
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('FLOW_SUPERVISE is "nanny"; it can be group');
    const without = await place.flow(["run", "flow.yaml"], { env: { FLOW_SUPERVISE: "namespace", PATH: "/nowhere" } });
    expect(without.code).toBe(3);
    expect(without.stderr).toContain("no bubblewrap (bwrap) that works");
    expect(place.runs()).toEqual([]);
  });
});

describe("the temporary folder of a run that was killed", () => {
  const temp = (): string[] => (existsSync("/dev/shm") ? readdirSync("/dev/shm") : readdirSync(tmpdir()));

  it("goes with it, and a later start never takes that of a run that lives", async () => {
    const place = placeOf({ "flow.yaml": "steps: { a: { run: 'echo \"$FLOW_OUTPUT\" > where; sleep 30' } }\n" });
    const folderOf = async (run: Running): Promise<string> => {
      while (!existsSync(join(place.folder, "where")) || !place.read("where").endsWith("\n")) await delay(10);
      const [name = ""] = temp().filter((entry) => entry.includes(`-${run.pid}-`));
      expect(place.read("where")).toContain(`/${name}/`);
      rmSync(join(place.folder, "where"));
      return name;
    };
    const first = place.start(["run", "flow.yaml"]);
    const killed = await folderOf(first);
    const second = place.start(["run", "flow.yaml"]);
    const lives = await folderOf(second);
    first.kill("SIGKILL");
    await first.ended;
    for (let left = 100; left > 0 && temp().includes(killed); left--) await delay(20);
    expect(temp()).not.toContain(killed);
    place.write("quick.yaml", "steps: { a: { set: { b: 1 } } }\n");
    await place.flow(["run", "quick.yaml"]);
    expect(temp()).toContain(lives);
    second.kill("SIGINT");
    await second.ended;
    expect(temp()).not.toContain(lives);
  });
});
