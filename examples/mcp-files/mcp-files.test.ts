import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place, project } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/mcp-files");
  symlinkSync(join(project, "node_modules"), join(place.folder, "node_modules"));
});
afterAll(() => place.remove());

const workflow = "examples/mcp-files/flow.yaml";

describe("the example mcp-files", () => {
  it("reads the notes through one server, which both steps share", async () => {
    const { code, stdout } = await place.flow(["run", workflow, "--json"]);
    expect(code).toBe(0);
    const { outputs } = JSON.parse(stdout) as { outputs: { folder: string; promises: object[] } };
    expect(outputs.folder).toContain(join(place.folder, "examples/mcp-files/notes"));
    expect(outputs.promises).toEqual([
      { who: "Ada", what: "send the draft by Wednesday" },
      { who: "Grace", what: "book the room" },
    ]);
    const events = place.events();
    expect(events.filter(({ type }) => type === "mcp.started")).toHaveLength(1);
    const [agent] = events.flatMap((event) => (event.type === "agent.started" ? [event.tools] : []));
    expect(agent).toEqual(["mcp__notes__list_directory", "mcp__notes__read_text_file"]);
  });

  it("can be pinned, and runs as it did", async () => {
    expect(await place.flow(["mcp", "lock", workflow])).toMatchObject({ code: 0 });
    expect(Object.keys((JSON.parse(place.read("flow.lock")) as { mcp: object }).mcp)).toEqual([`${workflow}#notes`]);
    expect(await place.flow(["run", workflow])).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining("not pinned"),
    });
  });
});
