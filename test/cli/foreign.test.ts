import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "flow.yaml": "name: foreign\nsteps: { a: { agent: worker, prompt: go } }\n",
    "r.yaml":
      'agents: { worker: [{ calls: [{ name: Bash, args: { command: "echo one" } }, { name: Bash, args: { command: date } }] }, { text: done }] }\n',
  });
});
afterEach(() => place.remove());

async function verdicts(matter: string, ...args: string[]): Promise<string[]> {
  place.write(".claude/agents/worker.md", `---\nname: worker\ndescription: x\n${matter}\n---\nYou work.\n`);
  await place.flow(["run", "flow.yaml", "--script", "r.yaml", ...args]);
  return place.events().flatMap((event) => (event.type === "permission.judged" ? [event.decision] : []));
}

describe("what a Claude Code file says of permissions", () => {
  it("gives nothing that the run does not", async () => {
    expect(await verdicts("tools: Bash(echo *)")).toEqual(["ask", "deny"]);
    expect(await verdicts("tools: Bash\npermissionMode: bypassPermissions")).toEqual(["ask", "ask"]);
  });

  it("takes away what the run would give", async () => {
    expect(await verdicts("tools: Bash(echo *)", "--profile", "full")).toEqual(["allow", "deny"]);
    expect(await verdicts("disallowedTools: Bash(date)", "--profile", "full")).toEqual(["allow", "deny"]);
    expect(await verdicts("tools: Bash, Read\npermissionMode: plan", "--profile", "full")).toEqual([]);
  });
});
