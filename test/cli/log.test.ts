import { chmodSync, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readLog } from "../../src/runlog/read.ts";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "ok.yaml":
      "name: ok\nsteps: { a: { run: 'echo ran > ran; echo hi' } }\noutputs: { a: '${{ steps.a.outputs.stdout }}' }\n",
  });
});
afterEach(() => place.remove());

describe("the folder of runs", () => {
  it("lies in the workspace, is nobody else's to read and ignores itself", async () => {
    place.write("a/b/x", "");
    await place.flow(["run", "../../ok.yaml"], { cwd: "a/b" });
    expect(place.runs()).toHaveLength(1);
    expect(place.read(".flow/.gitignore")).toBe("*\n");
    expect(statSync(join(place.folder, ".flow/runs", place.runs()[0] ?? "")).mode & 0o077).toBe(0);
    expect(place.events()[0]).toMatchObject({ workflow: "ok.yaml", workspace: place.folder });
  });

  it("is named by FLOW_RUNS_DIR, and by --runs-dir before it", async () => {
    await place.flow(["run", "ok.yaml"], { env: { FLOW_RUNS_DIR: "from-env" } });
    await place.flow(["run", "ok.yaml", "--runs-dir", "from-flag"], { env: { FLOW_RUNS_DIR: "from-env" } });
    expect([place.runs("from-env").length, place.runs("from-flag").length]).toEqual([1, 1]);
    expect(existsSync(join(place.folder, ".flow"))).toBe(false);
    expect(place.events("from-flag").at(-1)).toMatchObject({ outcome: "success" });
  });

  it("that cannot be made is exit 3, and nothing runs", async () => {
    place.write("file", "");
    const { code, stdout, stderr } = await place.flow(["run", "ok.yaml", "--runs-dir", "file/runs"]);
    expect(stderr).toMatch(/^flow: cannot lock the run .*ENOTDIR.*\n$/);
    expect([code, stdout]).toEqual([3, ""]);
    expect(existsSync(join(place.folder, "ran"))).toBe(false);
  });

  it("that is read-only is exit 3, and nothing runs", async ({ skip }) => {
    if (process.getuid?.() === 0) skip("root may write everywhere");
    place.write("closed/x", "");
    chmodSync(join(place.folder, "closed"), 0o500);
    const { code, stderr } = await place.flow(["run", "ok.yaml", "--runs-dir", "closed"]);
    expect(stderr).toContain("EACCES");
    expect(code).toBe(3);
    expect(existsSync(join(place.folder, "ran"))).toBe(false);
  });
});

describe("the log of a run", () => {
  it("can be read after kill -9, up to the last thing that happened", async () => {
    place.write(
      "long.yaml",
      "name: long\nsteps:\n  a: { run: echo one }\n  b: { needs: [a], run: 'echo here >&2; exec sleep 61.25' }\n",
    );
    const run = place.start(["run", "long.yaml"]);
    await run.said("b          start run");
    run.kill("SIGKILL");
    expect(await run.ended).toMatchObject({ signal: "SIGKILL" });
    const folder = join(place.folder, ".flow/runs", place.runs()[0] ?? "");
    const kinds: string[] = [];
    for await (const record of readLog(folder)) kinds.push(record.kind === "line" ? record.line.type : record.kind);
    expect(kinds.slice(0, 2)).toEqual(["run.started", "step.started"]);
    expect(kinds.filter((kind) => kind === "step.finished")).toHaveLength(1);
    expect(kinds).not.toContain("run.finished");
  });

  it("is not gone on with when a step forged a line of it, which is named", async () => {
    const forged = `{"seq":4,"time":"2026-11-22T00:00:00.000Z","type":"step.attempt.finished","step":"b","attempt":1,"outcome":"success","duration":1}`;
    place.write(
      "forge.yaml",
      `steps:\n  a: { run: 'cat forged >> .flow/runs/*/log.jsonl' }\n  b: { needs: [a], run: 'echo b >> ran; exit 1' }\n`,
    );
    place.write("forged", `${forged}\n`);
    expect((await place.flow(["run", "forge.yaml"])).code).toBe(1);
    const { code, stderr } = await place.flow(["resume", "latest"]);
    expect(stderr).toMatch(/log\.jsonl:5: expected seq 5, found 4/);
    expect(code).toBe(2);
    expect(place.read("ran")).toBe("b\n");
  });

  it("stops the run when the disk is full, and stays readable", async ({ skip }) => {
    place.write(
      "chatty.yaml",
      `name: chatty
steps:
  a: { run: "head -c 40000 /dev/zero | tr '\\\\0' x" }
  b: { needs: [a], run: "head -c 40000 /dev/zero | tr '\\\\0' y" }
  c: { needs: [b], run: "echo ran > ran" }
`,
    );
    const { code, stderr } = await place.shell("ulimit -f 64 && trap '' XFSZ && flow run chatty.yaml");
    if (stderr.includes("ulimit")) skip("this shell cannot limit the size of files");
    expect(stderr).toMatch(/^ {2}failed {2}log: cannot write .*EFBIG/m);
    expect(stderr).not.toMatch(/ b +ok/);
    expect(code).toBe(3);
    expect(existsSync(join(place.folder, "ran"))).toBe(false);
    expect(place.events().map((event) => event.type)).toContain("run.started");
  });

  it("keeps long outputs beside it: 200 MB cost neither the memory nor the log", async () => {
    place.write(
      "flood.yaml",
      `name: flood
steps:
  flood: { run: "head -c 200000000 /dev/zero | tr '\\\\0' x" }
outputs: { code: "\${{ steps.flood.outputs['exit-code'] }}" }
`,
    );
    const { code, stdout } = await place.flow(["run", "flood.yaml", "-q"], { node: ["--max-old-space-size=96"] });
    expect(code).toBe(0);
    expect(stdout).toContain("code: 0");
    const folder = join(place.folder, ".flow/runs", place.runs()[0] ?? "");
    expect(statSync(join(folder, "log.jsonl")).size).toBeLessThan(100_000);
    const [spilled] = readdirSync(join(folder, "files"));
    expect(statSync(join(folder, "files", spilled ?? "")).size).toBeGreaterThan(60_000_000);
    expect(place.events().find((event) => event.type === "step.finished")).toMatchObject({
      outputs: { size: expect.any(Number) as number },
    });
  });

  it("has no gaps and fits its schema in runs of every kind of end", async () => {
    place.write(
      "many.yaml",
      `name: many
inputs: { list: { type: array, default: [1, 2, 3] } }
steps:
  values: { set: { x: "\${{ length(inputs.list) }}", y: { deep: ["\${{ inputs.list[0] }}"] } } }
  off: { if: "inputs.list[0] == 2", run: echo never }
  soft: { run: exit 3, continue-on-error: true }
  last: { if: always(), needs: ["*"], run: 'echo "v=1" >> "$FLOW_OUTPUT"' }
outputs: { v: "\${{ steps.last.outputs.v }}" }
`,
    );
    const { code, stdout, stderr } = await place.flow(["run", "many.yaml"]);
    expect(stderr).toContain("2 ok, 0 failed, 1 skipped, 1 failed but allowed to");
    expect(stdout).toBe("v: 1\n");
    expect(code).toBe(0);
    expect(place.events().length).toBeGreaterThan(12);
  });
});
