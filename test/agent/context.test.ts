import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Block, Message } from "../../src/model/message.ts";
import {
  findingsIn,
  inputLimit,
  isRealUser,
  middle,
  summarised,
  tokensOf,
  transcript,
  trimmed,
  withoutOrphans,
} from "../../src/agent/context.ts";
import { hints } from "../../src/agent/hints.ts";
import { unknownFacts } from "../../src/model/ports.ts";

const text = (value: string): Block => ({ type: "text", text: value });
const call = (id: string): Block => ({ type: "call", id, name: "Read", args: {}, raw: "{}" });
const result = (id: string, value: string): Block => ({ type: "result", id, blocks: [text(value)] });
const system: Message = { role: "system", blocks: [text("You work.")] };
const prompt: Message = { role: "user", blocks: [text("Do it.")] };
const summary: Message = { role: "user", blocks: [text("a summary")] };

/** One turn: a reply with calls and their results, or a reply and what was said to it. */
const turn: fc.Arbitrary<(id: string) => Message[]> = fc
  .record({ calls: fc.integer({ min: 0, max: 4 }), size: fc.integer({ min: 0, max: 3000 }), thinking: fc.boolean() })
  .map(({ calls, size, thinking }) => (id) => {
    const ids = Array.from({ length: calls }, (_, index) => `${id}_${index}`);
    const thought: Block[] = thinking ? [{ type: "thinking", text: "t".repeat(size), signature: "s" }] : [];
    const said = text("I look.");
    const answers = calls === 0 ? [text("go on")] : ids.map((each) => result(each, "r".repeat(size)));
    return [
      { role: "assistant", blocks: [...thought, said, ...ids.map(call)] },
      { role: "user", blocks: answers },
    ];
  });

const conversation: fc.Arbitrary<Message[]> = fc
  .record({ turns: fc.array(turn, { maxLength: 60 }), hasSystem: fc.boolean(), cut: fc.boolean() })
  .map(({ turns, hasSystem, cut }) => {
    const said = turns.flatMap((each, index) => each(`c${index}`));
    return [...(hasSystem ? [system] : []), prompt, ...(cut ? said.slice(0, -1) : said)];
  });

/** Every call has its result in the next message, and every result its call in the one before. */
function isPaired(messages: readonly Message[]): boolean {
  return messages.every((message, index) => {
    const idsOf = (other: Message | undefined, type: string): string[] =>
      (other?.blocks ?? []).flatMap((block) => (block.type === type && "id" in block ? [block.id] : []));
    const calls = idsOf(message, "call");
    const isLast = index === messages.length - 1;
    const answered = isLast || calls.every((id) => idsOf(messages[index + 1], "result").includes(id));
    return answered && idsOf(message, "result").every((id) => idsOf(messages[index - 1], "call").includes(id));
  });
}

describe("a conversation that is summarised", () => {
  it("keeps its pairs, its first message and its end, and has no more than it had", () => {
    const property = fc.property(conversation, fc.integer({ min: 0, max: 20_000 }), (messages, room) => {
      const stretch = middle(messages, room);
      if (stretch === undefined) return;
      const shorter = summarised(messages, stretch, summary);
      expect(isPaired(shorter)).toBe(true);
      expect(shorter.slice(0, stretch.from)).toEqual(messages.slice(0, stretch.from));
      expect(shorter.slice(0, stretch.from).some(isRealUser)).toBe(true);
      expect(shorter[stretch.from]).toEqual(summary);
      // Pairs were kept whole, so nothing had to become text.
      expect(shorter.slice(stretch.from + 1)).toEqual(messages.slice(stretch.to));
      const kept = messages.length - stretch.to;
      expect(kept).toBeGreaterThanOrEqual(4);
      expect(kept).toBeLessThanOrEqual(11);
      expect(shorter.length).toBeLessThan(messages.length);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it("has at most the tokens there is room for, or only its last four messages", () => {
    const property = fc.property(conversation, fc.integer({ min: 0, max: 20_000 }), (messages, room) => {
      const stretch = middle(messages, room);
      if (stretch === undefined) return;
      const kept = messages.slice(stretch.to);
      // A border moved outward takes in the message with the calls.
      expect(tokensOf(kept.slice(1)) <= room || kept.length <= 5).toBe(true);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it.each([
    [0, undefined],
    [5, undefined],
    [7, { from: 2, to: 4 }],
    [21, { from: 2, to: 18 }],
    [100, { from: 2, to: 92 }],
  ])("of %i messages behind the prompt has the middle %o", (count, stretch) => {
    const said = Array.from({ length: count }, (_, index): Message[] => [
      { role: "assistant", blocks: [call(`c${index}`)] },
      { role: "user", blocks: [result(`c${index}`, "r")] },
    ]).flat();
    expect(middle([system, prompt, ...said.slice(0, count)], 10_000)).toEqual(stretch);
  });

  it("gives up after twenty tries, and then what is parted becomes text", () => {
    const odd = Array.from({ length: 60 }, (_, index): Message => ({
      role: "user",
      blocks: [result(`c${index}`, `r${index}`)],
    }));
    const messages = [prompt, ...odd];
    const stretch = middle(messages, 10_000);
    expect(stretch).toEqual({ from: 1, to: 61 - 10 - 20 });
    const shorter = summarised(messages, { from: 1, to: 31 }, summary);
    expect(isPaired(shorter)).toBe(true);
    expect(shorter[2]?.blocks[0]).toMatchObject({ type: "text", text: expect.stringContaining("r30") as string });
  });
});

describe("a conversation that is trimmed", () => {
  it("keeps its pairs, gets no longer, and is the same when it is trimmed twice", () => {
    const property = fc.property(conversation, fc.integer({ min: 0, max: 130 }), (messages, upTo) => {
      const shorter = trimmed(messages, upTo);
      expect(tokensOf(shorter)).toBeLessThanOrEqual(tokensOf(messages));
      expect(isPaired(shorter)).toBe(isPaired(messages));
      expect(trimmed(shorter, upTo)).toEqual(shorter);
      expect(shorter.every(({ blocks }) => blocks.length > 0)).toBe(true);
      expect(shorter.slice(upTo).every((message, index) => message === messages[upTo + index])).toBe(true);
    });
    fc.assert(property, { numRuns: 300 });
  });

  it("has placeholders for results of more than 200 characters, and no old thinking", () => {
    const messages: Message[] = [
      { role: "assistant", blocks: [{ type: "thinking", text: "hm" }, text("I look."), call("a"), call("b")] },
      { role: "user", blocks: [result("a", "x".repeat(201)), result("b", "y".repeat(200))] },
      { role: "assistant", blocks: [{ type: "thinking", text: "hm" }, text("So.")] },
    ];
    expect(trimmed(messages, 2)).toEqual([
      { role: "assistant", blocks: [text("I look."), call("a"), call("b")] },
      { role: "user", blocks: [result("a", hints.leftOut(201)), messages[1]?.blocks[1]] },
      messages[2],
    ]);
  });

  it("still says where the whole of a cut result lies", () => {
    const cut = `${"x".repeat(300)}\n[cut: 10 of 20 lines are shown; the whole is in files/1.txt]`;
    const [message] = trimmed([{ role: "user", blocks: [result("a", cut)] }], 1);
    expect(JSON.stringify(message)).toContain("the whole is in files/1.txt");
  });
});

describe("calls and results without each other", () => {
  it("become text, those of the last message excepted", () => {
    const messages: Message[] = [
      { role: "assistant", blocks: [call("a"), call("b")] },
      { role: "user", blocks: [result("b", "here"), result("c", "lost")] },
      { role: "assistant", blocks: [call("d")] },
    ];
    expect(withoutOrphans(messages)).toEqual([
      { role: "assistant", blocks: [text(hints.orphanCall("Read", "{}")), call("b")] },
      { role: "user", blocks: [result("b", "here"), text(hints.orphanResult("lost"))] },
      { role: "assistant", blocks: [call("d")] },
    ]);
  });

  it("never remain, whatever the conversation", () => {
    const block = fc.oneof(
      fc.constantFrom("a", "b", "c").map(call),
      fc.constantFrom("a", "b", "c").map((id) => result(id, "r")),
      fc.constant(text("t")),
    );
    const message = fc.record({
      role: fc.constantFrom("user" as const, "assistant" as const),
      blocks: fc.array(block),
    });
    fc.assert(
      fc.property(fc.array(message), (messages) => {
        expect(isPaired(withoutOrphans(messages))).toBe(true);
      }),
    );
  });
});

describe("what fits", () => {
  it.each([
    [{ window: 1000, maxOutput: 200 }, undefined, 800],
    [{ window: 1000, maxOutput: 200 }, 100, 900],
    [{ window: 1000, maxOutput: 1000 }, undefined, 500],
    [{ window: 1000 }, undefined, 1000],
    [{}, 100, undefined],
  ])("of %o when %s tokens are asked for is %s", (facts, asked, limit) => {
    expect(inputLimit({ ...unknownFacts, ...facts }, asked)).toBe(limit);
  });
});

describe("findings", () => {
  it("are the lines the agent marked, each once, also out of an earlier summary, and nobody else's", () => {
    expect(
      findingsIn([
        { role: "assistant", blocks: [text("Finding: a\nx\nFinding: b")] },
        { role: "user", blocks: [text("Finding: not mine"), result("a", "Finding: nor this")] },
        { role: "user", blocks: [text(`${hints.pins}\nFinding: c`)] },
        { role: "assistant", blocks: [text("Finding: a")] },
      ]),
    ).toEqual(["Finding: a", "Finding: b", "Finding: c"]);
  });
});

describe("the transcript for a summary", () => {
  it("has every text and call, and is cut in the middle when it is too long", () => {
    const messages: Message[] = [
      { role: "assistant", blocks: [text("first"), call("a")] },
      { role: "user", blocks: [result("a", "ä".repeat(100_000))] },
      ...Array.from({ length: 20 }, (): Message => ({ role: "user", blocks: [text("ö".repeat(1_000))] })),
      { role: "assistant", blocks: [text("last")] },
    ];
    expect(transcript(messages.slice(0, 1), 1_000)).toBe("assistant: first\nassistant calls Read: {}\n");
    const cut = transcript(messages, 1_000);
    expect(Buffer.byteLength(cut)).toBeLessThan(4_300);
    expect(cut).toMatch(/^assistant: first\n[^]*were left out here[^]*assistant: last\n$/);
  });
});
