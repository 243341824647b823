/** What fitting a long conversation into a window costs, without the model that writes the summary. */
import { findingsIn, middle, summarised, tokensOf, trimmed, untouched } from "../src/agent/context.ts";
import type { Message } from "../src/model/message.ts";

const count = Number(process.argv[2] ?? 5_000);
const rounds = Number(process.argv[3] ?? 21);

const text = "The quick brown fox jumps over the lazy dog, once more. ".repeat(20);
const prompt: Message = { role: "user", blocks: [{ type: "text", text: "Read all of it." }] };
const said = Array.from({ length: count }, (_, index): Message => {
  const id = `call_${index >> 1}`;
  return index % 2 === 0
    ? {
        role: "assistant",
        blocks: [
          { type: "text", text: "I read on." },
          { type: "call", id, name: "Read", args: {}, raw: "{}" },
        ],
      }
    : { role: "user", blocks: [{ type: "result", id, blocks: [{ type: "text", text }] }] };
});
const messages = [prompt, ...said];
const summary: Message = { role: "user", blocks: [{ type: "text", text: "A summary." }] };

const begun = process.cpuUsage();
const took = Array.from({ length: rounds }, () => {
  const start = performance.now();
  tokensOf(messages);
  const shorter = trimmed(messages, messages.length - untouched);
  tokensOf(shorter);
  const trim = performance.now();
  const stretch = middle(shorter, 20_000);
  if (stretch === undefined) throw new Error("there is nothing to summarise");
  findingsIn(shorter.slice(stretch.from, stretch.to));
  tokensOf(summarised(shorter, stretch, summary));
  return { trim: trim - start, summarise: performance.now() - trim };
});

const cpu = process.cpuUsage(begun).user / 1_000 / rounds;

const median = (values: readonly number[]): string =>
  (values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0).toFixed(2);
console.log(
  `${messages.length} messages, ${(JSON.stringify(messages).length / 1e6).toFixed(1)} MB, median of ${rounds}`,
);
console.log(`trimming       ${median(took.map(({ trim }) => trim))} ms`);
console.log(`summarising    ${median(took.map(({ summarise }) => summarise))} ms, without the model`);
console.log(`both           ${cpu.toFixed(2)} ms of processor time, mean of all rounds`);
