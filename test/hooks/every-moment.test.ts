import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import type { HookEvent } from "../../src/model/hooks.ts";
import { Place } from "../cli/flow.ts";

/** One agent that asks for a command, for one that fails, and for one that nobody may run; and answers. */
async function runWith(hooks: object, check: (place: Place, ended: number | null) => void): Promise<void> {
  const call = (command: string): string => `{ calls: [{ name: Bash, args: { command: "${command}" } }] }`;
  const place = new Place({
    "flow.config.yaml": `hooks: ${JSON.stringify(hooks)}\n`,
    "flow.yaml": `name: hooked
model: scripted/r.yaml
permissions: { Bash: { "*": allow, "touch asked": ask } }
steps: { a: { agent: { name: worker, instructions: You work., tools: [Bash] }, prompt: go } }
`,
    "r.yaml": `agents:
  worker:
    - ${call("touch made")}
    - ${call("exit 3")}
    - ${call("touch asked")}
    - { text: first answer }
    - { text: second answer }
    - { text: third answer }
`,
  });
  try {
    const { code, stderr } = await place.flow(["run", "flow.yaml"]);
    expect(stderr, stderr).not.toContain("a bug of flow");
    check(place, code);
  } finally {
    place.remove();
  }
}

function made({ folder }: Place, file: string): boolean {
  return existsSync(join(folder, file));
}

function of<T extends LogLine["type"]>(place: Place, type: T): Extract<LogLine, { type: T }>[] {
  return place.events().filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

interface Way {
  readonly name: string;
  readonly hook: object;
  readonly status: string;
  /** Whether it counts as a no before what it guards. */
  readonly isNo: boolean;
}

const said = (output: object): string => `cat >/dev/null; echo '${JSON.stringify(output)}'`;
const ways: readonly Way[] = [
  {
    name: "exits with 0 and says no in JSON",
    hook: { command: said({ decision: "block", reason: "not now" }) },
    status: "blocked",
    isNo: true,
  },
  { name: "exits with 0 and says nothing", hook: { command: "true" }, status: "passed", isNo: false },
  { name: "exits with 2", hook: { command: "echo 'not now' >&2; exit 2" }, status: "blocked", isNo: true },
  { name: "exits with 1", hook: { command: "echo 'not now' >&2; exit 1" }, status: "failed", isNo: false },
  { name: "is not there", hook: { command: "./no-such-guard" }, status: "broken", isNo: true },
  { name: "takes longer than its timeout", hook: { command: "sleep 20", timeout: 0.2 }, status: "broken", isNo: true },
  {
    name: "is not there, with `on_error: allow`",
    hook: { command: "./no-such-guard", on_error: "allow" },
    status: "broken",
    isNo: false,
  },
  {
    name: "takes longer than its timeout, with `on_error: allow`",
    hook: { command: "sleep 20", timeout: 0.2, on_error: "allow" },
    status: "broken",
    isNo: false,
  },
];

interface Guard {
  /** How it is seen that it said no. */
  readonly refused: (place: Place) => boolean;
  /** Of the run then; 6 otherwise, for the call that nobody is there to allow. */
  readonly code: number;
}

const guards: { readonly [event in HookEvent]?: Guard } = {
  StepStart: { refused: (place) => of(place, "agent.started").length === 0, code: 6 },
  // An answer behind three calls that were all refused rests on nothing.
  PreToolUse: { refused: (place) => !made(place, "made"), code: 1 },
  // Whoever answers no in a person's place has answered.
  PermissionRequest: {
    refused: (place) => of(place, "tool.finished").every(({ text }) => !String(text).includes("needs a person")),
    code: 0,
  },
  // It says no until the script has no answers left.
  Stop: { refused: (place) => of(place, "agent.finished")[0]?.text !== "first answer", code: 3 },
};
/** Moments that have come when they are told of. */
const told = ["SessionStart", "SessionEnd", "PostToolUse", "PostToolUseFailure", "StepEnd"] as const;

describe.each(ways)("a hook that $name", ({ hook, status, isNo }) => {
  const configured = (event: HookEvent): object => ({ [event]: [{ hooks: [{ type: "command", ...hook }] }] });

  const guarded = isNo ? "stops" : "lets pass";
  it.concurrent.each(Object.entries(guards))(`${guarded} what %s guards`, (event, { refused, code }) =>
    runWith(configured(event as HookEvent), (place, ended) => {
      expect([event, ...new Set(of(place, "hook.finished").map((it) => it.status))]).toEqual([event, status]);
      expect([event, refused(place), ended]).toEqual([event, isNo, isNo ? code : 6]);
    }),
  );

  it.concurrent("changes nothing at the moments that are only told", () =>
    runWith(Object.assign({}, ...told.map(configured)) as object, (place) => {
      const heard = of(place, "hook.finished");
      expect(new Set(heard.map((it) => it.event))).toEqual(new Set(told));
      expect([...new Set(heard.map((it) => it.status))]).toEqual([status]);
      expect(made(place, "made")).toBe(true);
      expect(of(place, "agent.finished")[0]).toMatchObject({ text: "first answer", outcome: "denied" });
    }));
});
