import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/flow/clock.ts";

describe("the machine's clock", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const days = 24 * 60 * 60 * 1000;

  it("waits for longer than one timer takes", () => {
    const called = vi.fn<() => void>();
    systemClock.after(60 * days, called);
    vi.advanceTimersByTime(60 * days - 1);
    expect(called).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(called).toHaveBeenCalledOnce();
  });

  it("can be stopped in every part of a long wait", () => {
    const called = vi.fn<() => void>();
    const stop = systemClock.after(60 * days, called);
    vi.advanceTimersByTime(40 * days);
    stop();
    vi.advanceTimersByTime(40 * days);
    expect(called).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});
