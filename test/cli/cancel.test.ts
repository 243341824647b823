import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { during, Place, type Running } from "./flow.ts";
import { ends, replies, task } from "./lineage.ts";
import { Repository } from "./repository.ts";

const within = <T>(files: Readonly<Record<string, string>>, work: (place: Place) => Promise<T>): Promise<T> =>
  during(new Place(files), work);

const waits = {
  "w.yaml": `
steps:
  made: { run: 'echo made >> told', undo: { run: 'echo undone >> told' } }
  waits-here: { needs: [made], run: 'until test -e go; do sleep 0.05; done' }
  last: { needs: [waits-here], if: "always()", run: 'echo last >> told' }
`,
};

async function waiting(place: Place): Promise<Running> {
  const running = place.start(["run", "w.yaml"]);
  await running.said("waits-here start");
  return running;
}

function orders(place: Place): string {
  return join(place.folder, ".flow/runs", place.runs().at(-1) ?? "", "orders");
}

describe.concurrent("flow cancel", () => {
  test.each([
    ["as Ctrl-C does: undo and always() steps run", [], "made\nlast\nundone\n"],
    ["with --now at once", ["--now"], "made\n"],
  ])("ends a run %s", (_, words, told) =>
    within(waits, async (place) => {
      const running = await waiting(place);
      const cancelled = await place.flow(["cancel", "latest", ...words]);
      const [run = ""] = place.runs();
      expect(cancelled).toMatchObject({ code: 0, stdout: `cancelled ${run}\n`, stderr: "" });
      expect((await running.ended).code).toBe(130);
      expect(place.read("told")).toBe(told);
      expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled", exitCode: 130 });
      expect(existsSync(orders(place))).toBe(false);
    }),
  );

  test("takes the path of a run, and finds it where --runs-dir says", () =>
    within(waits, async (place) => {
      const running = place.start(["run", "w.yaml", "--runs-dir", "elsewhere"]);
      await running.said("waits-here start");
      const [run = ""] = readdirSync(join(place.folder, "elsewhere"));
      expect((await place.flow(["cancel", "latest"])).stderr).toContain("there are no runs in ");
      const cancelled = await place.flow(["cancel", run.slice(0, -2), "--runs-dir", "elsewhere"]);
      expect(cancelled.stdout).toBe(`cancelled ${run}\n`);
      await running.ended;
    }));

  test("says what there is not to cancel", () =>
    within(waits, async (place) => {
      place.write("go", "");
      await place.flow(["run", "w.yaml"]);
      const [ended = ""] = place.runs();
      const refusal = async (...words: string[]): Promise<readonly [number | null, string]> => {
        const { code, stderr } = await place.flow(["cancel", ...words]);
        return [code, stderr];
      };
      expect(await refusal("latest")).toEqual([2, `flow: the run ${ended} has ended: success\n`]);
      expect(await refusal("nothing")).toEqual([2, expect.stringContaining('begins with "nothing"; the newest are')]);
      expect(await refusal("latest", "--alone")).toEqual([2, "flow: --alone goes with --agent\n"]);
      expect(await refusal("latest", "--now", "--agent", "a@1")).toEqual([
        2,
        "flow: --now is for a whole run, not for --agent\n",
      ]);
      const { code } = await place.flow(["cancel"]);
      expect(code).toBe(2);
    }));

  test.each([
    ["takes back what an interrupted run did, and tells its end", [], "made\nlast\nundone\n"],
    ["ends an interrupted run as it is with --now", ["--now"], "made\n"],
  ])("%s", (_, words, told) =>
    within(waits, async (place) => {
      const running = await waiting(place);
      running.kill("SIGKILL");
      await running.ended;
      const [run = ""] = place.runs();
      const alone = await place.flow(["cancel", "latest", "--agent", "a@1"]);
      expect([alone.code, alone.stderr]).toEqual([
        2,
        `flow: the run ${run} was interrupted: it can be cancelled as a whole\n`,
      ]);
      const cancelled = await place.flow(["cancel", "latest", ...words]);
      expect(cancelled).toMatchObject({ code: 0, stdout: `cancelled ${run}\n`, stderr: "" });
      expect(place.read("told")).toBe(told);
      expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled", exitCode: 130 });
      expect((await place.flow(["cancel", "latest"])).stderr).toBe(`flow: the run ${run} has ended: cancelled\n`);
    }),
  );

  test("takes back what a run did that waits for an answer", () =>
    within(waits, async (place) => {
      place.write("w.yaml", waits["w.yaml"].replace(/run: 'until[^']*'/, "approve: Go on?"));
      expect((await place.flow(["run", "w.yaml"])).code).toBe(5);
      const [run = ""] = place.runs();
      const alone = await place.flow(["cancel", "latest", "--agent", "a@1"]);
      expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("waits for an answer")]);
      expect((await place.flow(["cancel", "latest"])).stdout).toBe(`cancelled ${run}\n`);
      expect(place.read("told")).toBe("made\nlast\nundone\n");
      expect((await place.flow(["runs"])).stdout).toMatch(/cancelled/);
    }));

  test.each([
    ["was broken", "steps: { a: { rum: x } }"],
    [
      "says otherwise now",
      waits["w.yaml"].replace("echo made", "echo else").replace(/run: 'until[^']*'/, "approve: Go on?"),
    ],
    ["has other steps now", "steps: { other: { run: echo other >> told } }"],
  ])("takes back what a run did whose file %s", (_, text) =>
    within(waits, async (place) => {
      place.write("w.yaml", waits["w.yaml"].replace(/run: 'until[^']*'/, "approve: Go on?"));
      await place.flow(["run", "w.yaml"]);
      place.write("w.yaml", text);
      expect((await place.flow(["cancel", "latest"])).code).toBe(0);
      expect(place.read("told")).toBe("made\nlast\nundone\n");
    }),
  );

  test("lets the ways back end at the first signal, and ends everything at the second; another cancel waits for them", () =>
    within(waits, async (place) => {
      place.write(
        "w.yaml",
        waits["w.yaml"]
          .replace(/run: 'until[^']*'/, "approve: Go on?")
          .replace(
            "echo undone >> told",
            "echo undoing >> told; until test -e go; do sleep 0.05; done; echo undone >> told",
          ),
      );
      const waitsForGo = async (): Promise<void> => {
        while (!place.read("told").includes("undoing")) await new Promise((resolve) => setTimeout(resolve, 20));
      };
      await place.flow(["run", "w.yaml"]);
      const [run = ""] = place.runs();
      const running = place.start(["cancel", "latest"]);
      await waitsForGo();
      running.kill("SIGINT");
      await running.said("cancelling");
      const other = place.flow(["cancel", "latest"]);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      place.write("go", "");
      expect(await running.ended).toMatchObject({ code: 0, stdout: `cancelled ${run}\n` });
      // On a busy machine it may come when all is over.
      const { code, stdout, stderr } = await other;
      expect([
        [0, `cancelled ${run}\n`, ""],
        [2, "", `flow: the run ${run} has ended: cancelled\n`],
      ]).toContainEqual([code, stdout, stderr]);
      expect(place.read("told")).toBe("made\nlast\nundoing\nundone\n");
      await place.flow(["resume", "latest"]);
      rmSync(join(place.folder, "go"));
      place.write("told", "");
      const again = place.start(["cancel", "latest"]);
      await waitsForGo();
      again.kill("SIGINT");
      await again.said("cancelling");
      again.kill("SIGINT");
      expect((await again.ended).code).toBe(0);
      expect(place.read("told")).not.toContain("undone");
      expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled" });
    }));

  test("says which step was not taken back, and why", () =>
    within(waits, async (place) => {
      const asks = waits["w.yaml"].replace(/run: 'until[^']*'/, "approve: Go on?");
      place.write("w.yaml", asks.replace("echo undone >> told", "exit 3"));
      await place.flow(["run", "w.yaml"]);
      const failed = await place.flow(["cancel", "latest"]);
      expect([failed.code, failed.stderr]).toEqual([
        0,
        expect.stringMatching(/^flow: made was not taken back: .*3\n$/),
      ]);
      place.write("w.yaml", asks.replace("echo undone >> told", "echo undoing >> told; sleep 20"));
      await place.flow(["run", "w.yaml"]);
      const running = place.start(["cancel", "latest"]);
      while (!place.read("told").includes("undoing")) await new Promise((resolve) => setTimeout(resolve, 20));
      running.kill("SIGKILL");
      await running.ended;
      const again = await place.flow(["cancel", "latest"]);
      expect([again.code, again.stderr]).toEqual([
        0,
        "flow: made was not taken back: its undo began and has no end in the log\n",
      ]);
    }));

  test.each(["worktree.applying", "worktree.closed"])(
    "takes back changes of a worktree that were cut off at %s",
    (type) =>
      during(
        new Repository({
          "w.yaml": `
steps:
  w:
    isolation: worktree
    run: echo hello > made.txt
    undo: { run: 'git apply --reverse "$P"', env: { P: "\${{ steps.w.outputs.patch }}" } }
  ok: { needs: [w], approve: Go? }
`,
        }),
        async (place) => {
          await place.flow(["run", "w.yaml"]);
          const at = place.events().findIndex((event) => event.type === type);
          place.endLog(at + 1);
          if (type === "worktree.applying") rmSync(join(place.folder, "made.txt"));
          expect((await place.flow(["cancel", "latest"])).code).toBe(0);
          expect([place.status, existsSync(join(place.folder, "made.txt"))]).toEqual([[], false]);
          expect(place.events().at(-1)).toMatchObject({ type: "run.finished", outcome: "cancelled" });
          expect((await place.flow(["resume", "latest"])).code).toBe(5);
          expect(place.read("made.txt")).toBe("hello\n");
        },
      ),
  );

  test("that a run never heard is forgotten by its resume", () =>
    within(waits, async (place) => {
      const running = await waiting(place);
      running.kill("SIGKILL");
      await running.ended;
      const [run = ""] = place.runs();
      place.write(`.flow/runs/${run}/orders/old.json`, '{"cancel":"run"}');
      place.write("go", "");
      expect((await place.flow(["resume", "latest"])).code).toBe(0);
    }));

  test("does not wait for a process that is stopped, which never hears of it", () =>
    within(waits, async (place) => {
      const running = await waiting(place);
      running.kill("SIGSTOP");
      const cancelled = await place.flow(["cancel", "latest"]);
      expect([cancelled.code, cancelled.stderr]).toEqual([3, expect.stringContaining("does not hear")]);
      expect(readdirSync(orders(place))).toEqual([]);
      place.write("go", "");
      running.kill("SIGCONT");
      expect((await running.ended).code).toBe(0);
    }));

  test.each(["no JSON", "[]", "{}", '{"cancel":"all"}', '{"cancel":"agent"}', '{"cancel":"agent","agent":"none@1"}'])(
    "does not understand %s, which changes nothing",
    (text) =>
      within(waits, async (place) => {
        const running = await waiting(place);
        const order = join(orders(place), "some.json");
        place.write(order.slice(place.folder.length), text);
        while (existsSync(order)) await new Promise((resolve) => setTimeout(resolve, 20));
        place.write("go", "");
        expect((await running.ended).code).toBe(0);
      }),
  );
});

const tree = {
  "w.yaml": `
model: scripted/replies.yaml
permissions: { "*": allow }
agents:
  middle: { instructions: M., subagents: [bottom] }
  bottom: { instructions: B., tools: [LS] }
steps: { a: { agent: { prompt: Lead., tools: [LS], subagents: [middle], limits: { depth: 2 } } } }
`,
  "replies.yaml": replies({
    a: [`{ calls: [${task("middle")}] }`, "{ text: ok }", "{ text: heard }"],
    middle: [`{ calls: [${task("bottom")}] }`, "{ text: ok }"],
    bottom: ["{ delay: 2s, text: late }"],
  }),
};

describe.concurrent("flow cancel --agent", () => {
  test.each([
    ["with all that it spawned", [], ["a@1.1.1 cancelled", "a@1.1 cancelled", "a@1 done"]],
    ["alone", ["--alone"], ["a@1.1 cancelled", "a@1.1.1 done", "a@1 done"]],
  ])("ends one agent %s, and the rest goes on", (_, words, expected) =>
    within(tree, async (place) => {
      const running = place.start(["run", "w.yaml", "-v"]);
      await running.said("a>bottom@1.1.1 start");
      const cancelled = await place.flow(["cancel", "latest", "--agent", "a@1.1", ...words]);
      const [run = ""] = place.runs();
      expect(cancelled).toMatchObject({ code: 0, stdout: `cancelled a@1.1 of ${run}\n`, stderr: "" });
      expect((await running.ended).code).toBe(0);
      const ended = ends(place.events()).map((end) => end.split(" "));
      expect(ended.map(([id, , outcome]) => `${id} ${outcome}`)).toEqual(expected);
    }),
  );

  test("names the nearest agent for one that is not there, and says of one that has ended how", () =>
    within(tree, async (place) => {
      place.write("replies.yaml", tree["replies.yaml"].replace("- { text: ok }", "- { delay: 5s, text: ok }"));
      const running = place.start(["run", "w.yaml", "-v"]);
      await running.said("a>bottom@1.1.1 ok");
      const [unknown, ended] = await Promise.all(
        ["a@1.1.2", "a@1.1.1"].map((agent) => place.flow(["cancel", "latest", "--agent", agent])),
      );
      expect([unknown?.code, unknown?.stderr]).toEqual([2, expect.stringContaining('"a@1.1.2"; did you mean a@1.1')]);
      expect([ended?.code, ended?.stderr]).toEqual([2, "flow: the agent run a@1.1.1 has ended: done\n"]);
      running.kill("SIGINT");
      await running.ended;
    }));
});
