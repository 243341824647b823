import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Mail } from "../../src/agent/mail.ts";

const quiet = new AbortController().signal;

describe("letters for an agent", () => {
  it("are read once, all that came, in the order they came", () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.string({ minLength: 1 }), { maxLength: 4 })), (batches) => {
        const mail = new Mail();
        const read = batches.flatMap((batch) => {
          for (const text of batch) mail.put({ from: text, text });
          const taken = mail.take();
          expect(taken === undefined).toBe(batch.length === 0);
          return taken ? [taken.message.blocks] : [];
        });
        const texts = batches
          .filter((batch) => batch.length > 0)
          .map((batch) => [{ type: "text", text: batch.join("\n\n") }]);
        expect(read).toEqual(texts);
        expect(mail.isOpen).toBe(false);
      }),
    );
  });

  it("are waited for as long as somebody owes one, and no longer", async () => {
    const mail = new Mail();
    mail.expect("a");
    mail.expect("b");
    const arrived = mail.arrival(quiet).then(() => "arrived");
    expect(await Promise.race([arrived, Promise.resolve("waits")])).toBe("waits");
    mail.forgo("a");
    mail.put({ from: "b", text: "hi" });
    expect([await arrived, mail.take()?.from, mail.isOpen]).toEqual(["arrived", ["b"], false]);
    await mail.arrival(quiet);
    const cancel = new AbortController();
    mail.expect("c");
    const cut = mail.arrival(cancel.signal);
    cancel.abort();
    await cut;
  });

  it("of a replay are read when they were: those that are due, in that order, and no others", async () => {
    const mail = new Mail();
    for (const from of ["a", "b", "c"]) mail.expect(from);
    mail.put({ from: "c", text: "third" });
    mail.put({ from: "b", text: "second" });
    const settled = mail.settled(["a", "b"], quiet);
    expect(mail.take([])).toBeUndefined();
    mail.put({ from: "a", text: "first" });
    await settled;
    expect(mail.take(["a", "b"])).toMatchObject({
      from: ["a", "b"],
      message: { blocks: [{ text: "first\n\nsecond" }] },
    });
    expect(mail.take()?.from).toEqual(["c"]);
  });
});
