import { describe, expect, it } from "vitest";
import { Places } from "../../src/model/places.ts";

describe("places", () => {
  it("are not waited for by who has gone, before or meanwhile, and go to the next in line", async () => {
    const places = new Places(1);
    const leave = await places.take(undefined);
    const gone = new AbortController();
    const [first, second] = [places.take(gone.signal), places.take(undefined)];
    gone.abort();
    expect(await first).toBeUndefined();
    expect(await places.take(gone.signal)).toBeUndefined();
    leave?.();
    const next = await second;
    expect(next).toBeTypeOf("function");
    next?.();
    expect(await places.take(gone.signal)).toBeUndefined();
    expect(await places.take(undefined)).toBeTypeOf("function");
  });
});
