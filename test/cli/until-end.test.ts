import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Runs a program that waits for a promise as the commands wait for a run. */
function waitingFor(promise: string): { code: number | null; stderr: string } {
  const script = `
    void import("./src/cli/until-end.ts")
      .then(({ untilEnd }) => untilEnd(${promise}))
      .then(() => { process.exitCode = 4; });
  `;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: root,
    encoding: "utf8",
  });
  return { code: status, stderr };
}

it("a process that stops in the middle of a run ends with exit code 70 and says so", () => {
  const { code, stderr } = waitingFor("new Promise(() => undefined)");
  expect([code, stderr]).toEqual([70, expect.stringContaining("it stopped in the middle of the run") as string]);
});

it("a run that has ended decides on the exit code itself", () => {
  expect(waitingFor("Promise.resolve()")).toEqual({ code: 4, stderr: "" });
});
