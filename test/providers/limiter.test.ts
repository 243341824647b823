import { describe, expect, it } from "vitest";
import { noUsage } from "../../src/model/message.ts";
import type { ModelClient, ModelDelta } from "../../src/model/ports.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { limited, Limiter } from "../../src/providers/limiter.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { drain, requestWith } from "./drain.ts";

const done: ModelDelta = { type: "done", stop: "end", usage: noUsage };
const refusal = (retryAfter?: number): ModelDelta => ({
  type: "failed",
  failure: { kind: "rate_limit", message: "slow", transient: true, ...(retryAfter !== undefined && { retryAfter }) },
});

/** A client whose calls end when the test says so. */
function held(): { client: ModelClient; begun: string[]; end: (agent: string, delta: ModelDelta) => void } {
  const ends = new Map<string, (delta: ModelDelta) => void>();
  const begun: string[] = [];
  const client: ModelClient = {
    provider: "p",
    facts: unknownFacts,
    async *stream({ agent }) {
      begun.push(agent);
      yield await new Promise<ModelDelta>((resolve) => ends.set(agent, resolve));
    },
  };
  return { client, begun, end: (agent, delta) => ends.get(agent)?.(delta) };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a provider's limiter", () => {
  it("lets so many call at once, the first in line first", async () => {
    const { client, begun, end } = held();
    const polite = limited(client, new Limiter(2, new FakeClock()));
    const calls = ["a", "b", "c", "d"].map((agent) => drain(polite, requestWith("", { agent })));
    await settled();
    expect(begun).toEqual(["a", "b"]);
    end("b", done);
    await settled();
    expect(begun).toEqual(["a", "b", "c"]);
    for (const agent of ["a", "c"]) end(agent, done);
    await settled();
    end("d", done);
    expect((await Promise.all(calls)).map((call) => call.end?.type)).toEqual(["done", "done", "done", "done"]);
  });

  it("keeps no timer for somebody who has gone while everybody waits", async () => {
    const { client, begun, end } = held();
    const clock = new FakeClock();
    const polite = limited(client, new Limiter(2, clock));
    const gone = new AbortController();
    const first = drain(polite, requestWith("", { agent: "a" }));
    await settled();
    end("a", refusal(25_000));
    await first;
    const second = drain(polite, requestWith("", { agent: "b" }), { signal: gone.signal });
    await settled();
    expect(clock.pending).toBe(1);
    gone.abort();
    expect((await second).end).toMatchObject({ type: "failed", failure: { kind: "cancelled" } });
    expect([clock.pending, begun]).toEqual([0, ["a"]]);
  });

  it("makes everybody wait after a 429, and halves how many may call until calls succeed", async () => {
    const { client, begun, end } = held();
    const clock = new FakeClock();
    const polite = limited(client, new Limiter(4, clock));
    const call = (agent: string): Promise<unknown> => drain(polite, requestWith("", { agent }));
    const first = call("a");
    await settled();
    end("a", refusal(20_000));
    await first;
    const others = ["b", "c", "d", "e"].map(call);
    await settled();
    expect(begun).toEqual(["a"]);
    clock.fireNext();
    await settled();
    expect([clock.monotonic(), begun]).toEqual([20_000, ["a", "b", "c"]]);
    end("b", done);
    await settled();
    expect(begun).toEqual(["a", "b", "c", "d", "e"]);
    for (const agent of ["c", "d", "e"]) end(agent, done);
    await Promise.all(others);
  });

  it("pauses by itself when the server does not say how long, and never beyond a minute", async () => {
    for (const [wait, expected] of [
      [undefined, 3_000],
      [600_000, 60_000],
    ] as const) {
      const { client, end } = held();
      const clock = new FakeClock();
      const polite = limited(client, new Limiter(1, clock));
      const first = drain(polite, requestWith("", { agent: "a" }));
      await settled();
      end("a", refusal(wait));
      await first;
      const second = drain(polite, requestWith("", { agent: "b" }));
      await settled();
      clock.fireNext();
      await settled();
      end("b", done);
      await second;
      expect(clock.monotonic()).toBe(expected);
    }
  });

  it("gives up its place in the line when it is cancelled", async () => {
    const { client, begun, end } = held();
    const polite = limited(client, new Limiter(1, new FakeClock()));
    const abort = new AbortController();
    const first = drain(polite, requestWith("", { agent: "a" }));
    const second = drain(polite, requestWith("", { agent: "b" }), { signal: abort.signal });
    const third = drain(polite, requestWith("", { agent: "c" }));
    await settled();
    abort.abort();
    expect((await second).end).toMatchObject({ failure: { kind: "cancelled" } });
    end("a", done);
    await first;
    await settled();
    expect(begun).toEqual(["a", "c"]);
    end("c", done);
    await third;
  });
});
