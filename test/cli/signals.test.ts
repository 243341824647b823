import { existsSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

/** A step that lives for a minute with a child of its own, and one that runs whatever happens. */
const waiting = `
name: waiting
steps:
  long:
    run: |
      sleep 61.25 &
      echo "$$ $!" > pids
      echo "the step runs" >&2
      wait
  tidy: { if: always(), needs: [long], run: echo tidied > tidied }
  never: { needs: [long], run: echo never > never }
`;
/** The same, with a step that hears no SIGTERM, so that only the second signal ends it soon. */
const stubborn = waiting
  .replace("sleep 61.25 &", "trap '' TERM; sleep 61.25 &")
  .replace("wait\n", "wait; wait; sleep 61.25\n");

let place: Place;
beforeEach(() => {
  place = new Place({ "waiting.yaml": waiting, "stubborn.yaml": stubborn });
});
afterEach(() => place.remove());

const stepRuns = async (): Promise<number[]> => {
  for (;;) {
    const pids = pidsOf();
    if (pids.length === 2) return pids;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

function pidsOf(): number[] {
  try {
    const text = place.read("pids");
    return text.endsWith("\n") ? text.trim().split(" ").map(Number) : [];
  } catch {
    return [];
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // What has ended stays in the table until its parent asks, and in a container that may be never.
  const stat = `/proc/${pid}/stat`;
  return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, "utf8"));
}

describe("a signal", () => {
  it.each([
    { signal: "SIGINT", exitCode: 130 },
    { signal: "SIGTERM", exitCode: 143 },
    { signal: "SIGHUP", exitCode: 143 },
  ] as const)(
    "$signal cancels the run, lets always() steps run, closes the log and exits $exitCode",
    async ({ signal, exitCode }) => {
      const run = place.start(["run", "waiting.yaml"]);
      const pids = await stepRuns();
      run.kill(signal);
      const { code, stdout, stderr } = await run.ended;
      expect(code).toBe(exitCode);
      expect(stdout).toBe("");
      expect(stderr).toContain(`flow: ${signal}: cancelling; once more ends everything at once\n`);
      expect(stderr).toContain("cancelled waiting");
      expect(place.read("tidied")).toBe("tidied\n");
      expect(() => place.read("never")).toThrow();
      const events = place.events();
      expect(events.find((event) => event.type === "step.finished" && event.step === "long")).toMatchObject({
        outcome: "cancelled",
      });
      expect(events.find((event) => event.type === "step.finished" && event.step === "tidy")).toMatchObject({
        outcome: "success",
      });
      expect(events.at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled", exitCode });
      expect(pids.filter(lives)).toEqual([]);
    },
  );

  it("that comes twice ends everything in less than a second, the log too", async () => {
    const run = place.start(["run", "stubborn.yaml"]);
    const pids = await stepRuns();
    run.kill("SIGINT");
    await run.said("cancelling");
    expect(pids.every(lives)).toBe(true);
    const before = performance.now();
    run.kill("SIGINT");
    const { code } = await run.ended;
    expect(performance.now() - before).toBeLessThan(1000);
    expect(code).toBe(130);
    expect(pids.filter(lives)).toEqual([]);
    expect(() => place.read("tidied")).toThrow();
    expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled", exitCode: 130 });
  });

  it("is answered while a workflow is awaited on standard input", async () => {
    const { stdout } = await place.shell(
      'mkfifo pipe; sleep 20 > pipe & writer=$!; "$NODE" "$FLOW" run - < pipe & sleep 1; kill -INT $!; wait $!; echo $?; kill $writer',
    );
    expect(stdout).toBe("130\n");
  });
});

describe("time", () => {
  it("that a step may take is kept: it is ended, and the run fails with exit 1", async () => {
    place.write("slow.yaml", "name: slow\nsteps: { slow: { run: 'sleep 61.25', timeout: 1s } }\n");
    const before = performance.now();
    const { code, stderr } = await place.flow(["run", "slow.yaml"]);
    expect(performance.now() - before).toBeLessThan(8000);
    expect(code).toBe(1);
    expect(stderr).toContain("timeout: it did not end within its timeout of 1 s");
    expect(stderr).toContain("slow.yaml:2:10");
  });

  it("that a run may take is kept: exit 4", async () => {
    place.write("slow.yaml", "name: slow\nlimits: { duration: 1s }\nsteps: { slow: { run: 'sleep 61.25' } }\n");
    const { code, stderr } = await place.flow(["run", "slow.yaml"]);
    expect(stderr).toContain("limits.duration");
    expect(code).toBe(4);
    expect(place.events().at(-1)).toMatchObject({ outcome: "failure", error: { kind: "budget" }, exitCode: 4 });
  });
});
