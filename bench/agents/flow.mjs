/** Ours: a `foreach` over the agents by the built library, its log written as ever. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { count, folder, instructions, print, prompt, server, timed, turns } from "./client.mjs";

const { run } = await import(new URL("../../dist/index.js", import.meta.url).href);
await agents(1);
const { log, ...took } = await agents(count);
const events = readFileSync(log, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));
const calls = events.filter(({ type, status }) => type === "tool.finished" && status === "completed").length;
const texts = events.filter(({ type, text }) => type === "agent.finished" && text.trim().endsWith("word31")).length;
if (texts !== count || calls !== count * turns) throw new Error(`${texts} texts and ${calls} tool calls`);
print(took);

async function agents(number) {
  const { baseURL, apiKey, model } = server;
  const items = Array.from({ length: number }, (_, index) => index);
  const workflow = {
    name: "bench",
    // As with everybody, there is a key, which is looked for in everything that is written.
    model: { id: model, "base-url": baseURL, key: "BENCH_KEY" },
    limits: { parallel: number },
    steps: {
      work: {
        foreach: items,
        parallel: number,
        agent: { name: "keeper", instructions, tools: ["TodoWrite"] },
        prompt,
      },
    },
  };
  const file = join(folder, `w${number}.yaml`);
  writeFileSync(file, JSON.stringify(workflow));
  const env = { ...process.env, BENCH_KEY: apiKey };
  const { result, ...took } = await timed(() => run({ file, cwd: folder, env }));
  if (!result.started || result.end.outcome !== "success") throw new Error(JSON.stringify(result).slice(0, 2000));
  return { log: result.end.log, ...took };
}
