import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parse } from "yaml";

/** Where the list of bad inputs lies beside the project; its texts stay there. */
const list = fileURLToPath(new URL("../../shared/reference/bad-inputs.yaml", import.meta.url));

/** A test file and the beginning of the titles in it that show what is expected; or what has to be there first. */
type Cover = readonly [file: string, ...titles: string[]] | { readonly awaits: string };

const covers: { readonly [id: string]: Cover } = {
  "process-01": ["cli/left-behind.test.ts", "nothing is left after $name", "a daemon that cleared its environment"],
  "process-02": ["cli/left-behind.test.ts", "kill -9 of flow", "goes with it, and a later start never takes"],
  "process-04": ["cli/bounds.test.ts", "2 GiB of text"],
  "process-05": ["cli/bounds.test.ts", "300 MB of NUL"],
  "process-07": ["process/run.test.ts", "reads an empty stdin unless it is given one"],
  "process-08": [
    "process/run.test.ts",
    "may close its streams and run on",
    "may be ended by a signal",
    "no such program",
  ],
  "process-10": ["cli/signals.test.ts", "$signal cancels the run, lets always() steps run"],
  "process-11": ["cli/signals.test.ts", "that comes twice ends everything in less than a second"],
  "process-13": ["cli/streams.test.ts", "ends nothing and is not spoken of: | head -1"],
  "process-14": ["cli/bounds.test.ts", "sleeps while the clock on the wall jumps by %s day"],
  "process-16": ["cli/bounds.test.ts", "descriptors slows a run down", "descriptors is said, never a bug"],
  "process-17": ["cli/bounds.test.ts", "a thousand agents at once"],
  "log-01": ["engine/resume-any-prefix.test.ts", "a log cut at any byte is a valid state"],
  "log-02": ["engine/resume.test.ts", "is uncertain when it was running, and says so"],
  "log-04": ["cli/bounds.test.ts", "a log, that a step has %s, stops the run", "the right to write is said"],
  "log-05": ["runlog/lock.test.ts", "is had by one at a time", "of a process that is gone is taken over"],
  "log-07": ["cli/log.test.ts", "is not gone on with when a step forged a line of it"],
  "log-08": ["cli/resume.test.ts", "sees that the file was edited"],
  "log-10": ["runlog/crash.test.ts", "a log of 100 MB", "is read in little memory"],
  "log-11": ["runlog/read.test.ts", "drops a tail of NUL bytes", "reads what an editor on Windows made of it"],
  "ci-01": { awaits: "the commands that look at a CI configuration" },
  "ci-02": ["steps/hostile.test.ts", "payloads"],
  "ci-04": ["mcp/compile.test.ts", "fetched by a runner without a whole version is warned of"],
  "ci-05": { awaits: "tools with a declared schema" },
  "ci-07": { awaits: "the cache" },
  "mcp-01": ["mcp/connect.test.ts", "is given up when its time is over: %s"],
  "mcp-02": ["mcp/connect.test.ts", "is cut off when it floods its stdout, in bounded memory"],
  "mcp-04": [
    "cli/mcp.test.ts",
    "is refused when its tools are not those that were pinned",
    "are told apart by their servers",
  ],
  "mcp-05": ["cli/mcp.test.ts", "gains nothing by what its descriptions say"],
  "mcp-07": [
    "mcp/connect.test.ts",
    "is ended by a message that is too long",
    "has its large images left out, and told",
  ],
  "mcp-08": ["mcp/connect.test.ts", "lives with unknown, doubled and impossible ids"],
  "mcp-10": [
    "mcp/compile.test.ts",
    "is never started because a file of the project names it",
    "whose command is a command line is refused",
  ],
  "mcp-11": ["tools/web-fetch.test.ts", "does not reach %s"],
  "mcp-13": ["process/sandbox.test.ts", "there is no network, unless it is allowed"],
};

it("every bad input of processes, logs, CI and MCP has its test", ({ skip }) => {
  for (const [id, cover] of Object.entries(covers)) {
    if ("awaits" in cover) continue;
    const [file, ...titles] = cover;
    const text = readFileSync(new URL(file, import.meta.url), "utf8");
    const missing = titles.filter((title) => !text.includes(title));
    expect(missing, `${id} says that ${file} has it`).toEqual([]);
  }
  if (!existsSync(list)) return skip("the list of bad inputs does not lie beside this project");
  const entries = parse(readFileSync(list, "utf8")) as { id: string; area: string }[];
  const ids = entries.filter(({ area }) => ["process", "log", "ci", "mcp"].includes(area)).map(({ id }) => id);
  expect(Object.keys(covers).sort()).toEqual(ids.sort());
});
