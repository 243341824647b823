import { afterEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { leftAfter, uniqueSleep } from "../process/leftovers.ts";
import { Place } from "./flow.ts";
import { startModelServer } from "./model-server.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

function placeWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place(files);
  places.push(place);
  return place;
}

function eventsOf<T extends LogLine["type"]>(place: Place, type: T): Extract<LogLine, { type: T }>[] {
  return place.events().filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

/** Cuts the log behind its last event that `last` holds for, as `kill -9` would. */
function cutBehind(place: Place, last: (event: LogLine) => boolean): string {
  const run = place.runs().at(-1) ?? "";
  const at = place.events().findLastIndex(last);
  const lines = place
    .log()
    .split("\n")
    .slice(0, at + 1);
  place.write(`.flow/runs/${run}/log.jsonl`, `${lines.join("\n")}\n`);
  return run;
}

describe("the check of an agent step", () => {
  const files = {
    "flow.yaml": `
model: scripted/replies.yaml
env: { A: from the workflow }
steps:
  mend:
    agent: { prompt: Mend it., tools: [] }
    check:
      run: |
        echo run >> runs.txt
        echo "A=$A B=$B" >&2
        test "$(wc -l < runs.txt)" -ge 2 || exit 7
      max: 1
    env: { B: "$(touch injected)" }
outputs: { text: "\${{ steps.mend.outputs.text }}" }
`,
    "replies.yaml": 'steps: { mend: [{ text: Done. }, { text: "then: ${{ message }}" }] }\n',
  };

  it("gets the step's environment as values and never as code, and its output goes back", async () => {
    const place = placeWith(files);
    const { code, stdout } = await place.flow(["run", "flow.yaml"]);
    expect(stdout).toContain("A=from the workflow B=$(touch injected)");
    expect(stdout).toContain("[exited with 7]");
    expect(code).toBe(0);
    expect(() => place.read("injected")).toThrow();
    expect(eventsOf(place, "check.finished").map(({ count, status }) => [count, status])).toEqual([
      [1, "failed"],
      [2, "passed"],
    ]);
  });

  it.each([
    ["behind its failure", "failed", 2],
    ["behind its success", "passed", 2],
  ])("that had ended is not run again after a crash %s", async (_, status, runs) => {
    const place = placeWith(files);
    await place.flow(["run", "flow.yaml"]);
    const before = place.read("runs.txt");
    expect(before).toBe("run\n".repeat(2));
    const run = cutBehind(place, (event) => event.type === "check.finished" && event.status === status);
    if (status === "failed") place.write("runs.txt", "run\n");
    const { code, stdout } = await place.flow(["resume", run]);
    expect([code, stdout.includes("then: ")]).toEqual([0, true]);
    expect(place.read("runs.txt")).toBe("run\n".repeat(runs));
    expect(eventsOf(place, "message").filter(({ usage }) => usage !== undefined)).toHaveLength(2);
  });

  it("ends with its whole tree when the step's time is up", async () => {
    const time = uniqueSleep();
    const place = placeWith({
      "flow.yaml": `model: scripted/replies.yaml\nsteps:\n  mend:\n    agent: { prompt: Go., tools: [] }\n    check: { run: 'sleep ${time} & touch begun; wait' }\n    timeout: 800ms\n    retry: 0\n`,
      "replies.yaml": "steps: { mend: [{ text: Done. }] }\n",
    });
    const { code } = await place.flow(["run", "flow.yaml"]);
    expect(code).toBe(1);
    expect(eventsOf(place, "agent.finished")).toMatchObject([{ outcome: "timeout" }]);
    expect(place.read("begun")).toBe("");
    expect(await leftAfter(time, 2_000)).toBe(0);
  });

  it("masks secrets in what the model is told", async () => {
    const place = placeWith({
      "flow.yaml":
        'secrets: [TOKEN]\nmodel: scripted/replies.yaml\nsteps:\n  mend:\n    agent: { prompt: Go., tools: [] }\n    check: { run: \'echo "it is $TOKEN"; exit 1\', max: 1 }\n    env: { TOKEN: "${{ secrets.TOKEN }}" }\n',
      "replies.yaml": 'steps: { mend: [{ text: Done. }, { text: "${{ message }}" }] }\n',
    });
    await place.flow(["run", "flow.yaml"], { env: { TOKEN: "s3cret-value" } });
    expect(place.log()).toContain("it is ***");
    expect(place.log()).not.toContain("s3cret-value");
  });
});

describe("instructions of the project", () => {
  const files = {
    "flow.yaml":
      "model: scripted/replies.yaml\nsteps:\n  ask: { agent: { instructions: Own., prompt: Go., tools: [] } }\n  fail: { needs: ask, run: test -e ok }\n",
    "replies.yaml": "steps: { ask: [{ text: Here. }] }\n",
  };
  const system = (place: Place): unknown => {
    const first = eventsOf(place, "message").findLast(({ message }) => message.role === "system");
    return first?.message.blocks.map((block) => (block.type === "text" ? block.text : block));
  };

  it("stand behind the agent's own, the nearest last, one file a folder", async () => {
    const place = placeWith({
      ...files,
      "AGENTS.md": "top\n",
      "CLAUDE.md": "not this\n",
      "a/GEMINI.md": "middle\n",
      "a/b/CLAUDE.md": "near\n",
      "a/b/flow.yaml": files["flow.yaml"],
      "a/b/replies.yaml": files["replies.yaml"],
    });
    await place.flow(["run", "flow.yaml"], { cwd: "a/b" });
    expect(system(place)).toEqual([
      "Own.",
      "Instructions from AGENTS.md:\n\ntop",
      "Instructions from a/GEMINI.md:\n\nmiddle",
      "Instructions from a/b/CLAUDE.md:\n\nnear",
    ]);
  });

  it.each([
    ["none", "none", ["Own."]],
    ["a list", "[docs/STYLE.md]", ["Own.", "Instructions from docs/STYLE.md:\n\nstyle"]],
  ])("are %s when the agent says so", async (_, written, texts) => {
    const place = placeWith({
      ...files,
      "AGENTS.md": "top\n",
      "docs/STYLE.md": "style\n",
      "flow.yaml": files["flow.yaml"].replace("tools: []", `tools: [], instructions-files: ${written}`),
    });
    await place.flow(["run", "flow.yaml"]);
    expect(system(place)).toEqual(texts);
  });

  it("fail the step when a file that is named is not there, or lies outside", async () => {
    for (const path of ["docs/NONE.md", "../outside.md", "/etc/hostname"]) {
      const place = placeWith({
        ...files,
        "flow.yaml": files["flow.yaml"].replace("tools: []", `tools: [], instructions-files: [${path}]`),
      });
      const { code, stderr } = await place.flow(["run", "flow.yaml"]);
      expect([code, stderr]).toEqual([1, expect.stringContaining(`\`${path}\` is not a file in`) as string]);
    }
  });

  it("are part of what the cache goes by", async () => {
    const place = placeWith({
      ...files,
      "AGENTS.md": "first\n",
      ok: "",
      "flow.yaml": files["flow.yaml"].replace("ask: {", "ask: { cache: true,"),
    });
    const runs = async (): Promise<number> => {
      expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
      return eventsOf(place, "agent.started").length;
    };
    expect([await runs(), await runs()]).toEqual([1, 0]);
    place.write("AGENTS.md", "second\n");
    expect([await runs(), await runs()]).toEqual([1, 0]);
  });

  it("run the agent again on resume when they changed, and only then", async () => {
    const place = placeWith({ ...files, "AGENTS.md": "first\n" });
    await place.flow(["run", "flow.yaml"]);
    const run = place.runs()[0] ?? "";
    await place.flow(["resume", run]);
    expect(eventsOf(place, "agent.started")).toHaveLength(1);
    place.write("AGENTS.md", "second\n");
    place.write("ok", "");
    const { code } = await place.flow(["resume", run]);
    expect(code).toBe(0);
    expect(eventsOf(place, "agent.started")).toHaveLength(2);
    expect(system(place)).toEqual(["Own.", "Instructions from AGENTS.md:\n\nsecond"]);
  });
});

describe("`options` of an agent", () => {
  it("go to the provider as they are", async () => {
    const server = await startModelServer([{ match: {}, response: { content: "Here." } }]);
    try {
      const place = placeWith({
        "flow.yaml": `model: { id: small, base-url: "${server.url}" }\nsteps:\n  ask: { agent: { prompt: Go., tools: [], options: { service_tier: flex } } }\n`,
      });
      const { code, stderr } = await place.flow(["run", "flow.yaml"]);
      expect([code, stderr]).toEqual([0, stderr]);
      expect((await server.requests())[0]?.body).toMatchObject({ service_tier: "flex" });
    } finally {
      server.close();
    }
  });
});

describe("a prompt larger than the window", () => {
  it("fails before anything is sent, and says by how much", async () => {
    const place = placeWith({
      "flow.yaml": `inputs: { text: { default: "${"word ".repeat(2000)}" } }\nmodel: scripted/replies.yaml\nsteps:\n  ask: { agent: { tools: [] }, prompt: "\${{ inputs.text }}" }\n`,
      "replies.yaml": "window: 1000\nsteps: { ask: [{ text: Here. }] }\n",
    });
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(stderr).toContain("has about 2,5");
    expect(code).toBe(1);
    expect(eventsOf(place, "turn.started")).toEqual([]);
  });
});
