import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

const folder = "examples/docs-audit";
const workflow = `${folder}/flow.yaml`;
const report = `${folder}/report.md`;

let place: Place;
beforeAll(() => {
  place = new Place({ ".gitignore": ".flow/\n", "package.json": "{}\n", "docs/page.md": "" });
  place.git("init", "-q");
  place.copy(folder);
  place.git("add", "-A");
  place.git("commit", "-q", "-m", "as it is in the repository");
});
afterAll(() => place.remove());

const audits = (): Record<string, string> =>
  Object.fromEntries(
    place.events().flatMap((event) => (event.type === "agent.finished" ? [[event.step, event.outcome]] : [])),
  );

describe("the example docs-audit", () => {
  it("reports what was found, and says which page was not audited", async () => {
    const { code, stderr } = await place.flow(["run", workflow]);
    expect([code, stderr]).toEqual([4, expect.stringContaining("audit[2] max_turns") as string]);
    expect(audits()).toEqual({ "audit[0]": "done", "audit[1]": "done", "audit[2]": "max_turns", "audit[3]": "done" });
    expect(place.read(report)).toBe(`# Findings: 2 (3 of 4 pages audited)

- options.md, missing: \`--quiet\` prints nothing. The program has no such option.
- start.md, dead-link: Bells are in \`alarms.md\`. There is no such page.

Not audited:

- settings.md (max_turns: stopped after 6 turns (\`limits.turns\`))
`);
    expect(place.git("status", "--porcelain")).toBe("");
  });

  it("audits pages side by side, with real searches", () => {
    const events = place.events();
    const seen = events.flatMap((event) =>
      event.type === "agent.started" || event.type === "agent.finished" ? [event.type] : [],
    );
    expect(seen.slice(0, 3)).toEqual(["agent.started", "agent.started", "agent.started"]);
    const greps = events.flatMap((event) => (event.type === "tool.finished" && event.name === "Grep" ? [event] : []));
    expect(greps.find(({ step }) => step === "audit[1]")?.text).toContain("--timer)");
    expect(greps.find(({ step }) => step === "audit[2]")?.text).toContain("KETTLE_PORT:-8090");
  });

  it("denies what lies outside of the audited folder, and the agent ends well all the same", () => {
    const events = place.events();
    const denied = events.flatMap((event) =>
      event.type === "permission.judged" && event.decision === "deny" ? [event] : [],
    );
    expect(denied).toMatchObject([{ step: "audit[0]", name: "Read", rule: "Read(*)", layer: "workflow" }]);
    const refused = events.flatMap((event) =>
      event.type === "tool.finished" && event.status === "error" ? [event] : [],
    );
    expect(refused).toMatchObject([{ step: "audit[0]", id: denied[0]?.id }]);
    expect(refused[0]?.text).toContain("is denied by the rule `Read(*)`");
  });

  it.each(["Read(package.json)", "Grep(.)", "Write(examples/docs-audit/kettle/docs/start.md)", "Bash(ls)"])(
    "does not permit %s",
    async (call) => {
      const { code, stdout } = await place.flow(["permit", workflow, call]);
      expect([code, stdout]).toEqual([6, expect.not.stringMatching(/^allow/) as string]);
    },
  );

  it("goes on with the page that was missing alone, and writes the report anew", async () => {
    const agent = `${folder}/agents/auditor.md`;
    const text = place.read(agent);
    place.write(agent, text.replace("turns: 6", "turns: 12"));
    const { code, stdout } = await place.flow(["resume", "latest"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("# Findings: 5 (4 of 4 pages audited)") as string]);
    expect(place.read(report)).toContain("- settings.md, wrong: `KETTLE_PORT` is 8080 by default. It is 8090.");
    expect(place.read(report)).not.toContain("Not audited");
    const started = place.events().flatMap((event) => (event.type === "agent.started" ? [event.step] : []));
    expect(started.sort()).toEqual(["audit[0]", "audit[1]", "audit[2]", "audit[2]", "audit[3]"]);
    place.write(agent, text);
  });

  it("comes to the same from another folder of the repository", async () => {
    const { code } = await place.flow(["run", `../${workflow}`], { cwd: "docs" });
    expect([code, place.read(report)]).toEqual([4, expect.stringContaining("# Findings: 2 (3 of 4 pages audited)") as string]);
  });

  it("takes back a finding that is no longer so, and counts a new page that nobody audited", async () => {
    place.write(`${folder}/kettle/docs/alarms.md`, "# Alarms\n\nThere are none.\n");
    const { code } = await place.flow(["run", workflow]);
    expect(code).not.toBe(0);
    expect(place.read(report)).toContain("# Findings: 1 (2 of 5 pages audited)");
    expect(place.read(report)).toMatch(
      /Not audited:\n\n- alarms\.md \(.*\n- settings\.md \(max_turns.*\n- start\.md \(/,
    );
  });
});
