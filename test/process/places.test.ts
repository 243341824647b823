import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { Places } from "../../src/model/places.ts";

const never = new AbortController().signal;

describe("a place for a process", () => {
  it("is had at once while there is one, then in the order of asking", async () => {
    const places = new Places(2);
    const came: string[] = [];
    const ask = (name: string): Promise<(() => void) | undefined> =>
      places.take(never).then((leave) => (came.push(name), leave));
    const [first, second] = await Promise.all([ask("a"), ask("b")]);
    const waiting = [ask("c"), ask("d")];
    await Promise.resolve();
    expect(came).toEqual(["a", "b"]);
    second?.();
    const third = await waiting[0];
    expect(came).toEqual(["a", "b", "c"]);
    first?.();
    const fourth = await waiting[1];
    expect(came).toEqual(["a", "b", "c", "d"]);
    third?.();
    fourth?.();
    await Promise.all([ask("e"), ask("f")]);
    expect(came.slice(4)).toEqual(["e", "f"]);
  });

  it("is not taken by who was cancelled while waiting, and nobody behind is forgotten", async () => {
    const places = new Places(1);
    const leave = await places.take(never);
    const cancel = new AbortController();
    const cancelled = places.take(cancel.signal);
    const next = places.take(never);
    cancel.abort();
    expect(await cancelled).toBeUndefined();
    leave?.();
    const nextLeave = await next;
    expect(nextLeave).toBeDefined();
    nextLeave?.();
    expect(await places.take(never)).toBeDefined();
  });

  it.skipIf(process.platform !== "linux")("is one of as many as the limit on open files allows, never none", () => {
    const source = `const { placesHere } = await import(${JSON.stringify(new URL("../../src/process/places.ts", import.meta.url).href)}); console.log(placesHere())`;
    const count = (limit: number): number => {
      const script = `ulimit -n ${limit}; exec "$0" --input-type=module-typescript -e "$1"`;
      return Number(execFileSync("bash", ["-c", script, process.execPath, source], { encoding: "utf8" }));
    };
    expect(count(1024)).toBeGreaterThan(100);
    expect(count(1024)).toBeLessThan(1024 / 4);
    expect(count(40)).toBe(1);
  });
});
