import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration } from "../src/duration.js";

test("takes one unit", () => {
  assert.equal(parseDuration("90s"), 90_000);
});

test("adds several units up", () => {
  assert.equal(parseDuration("1h30m"), 5_400_000);
});

test("refuses what is no duration", () => {
  for (const text of ["", "soon", "5 minutes"]) {
    assert.throws(() => parseDuration(text), /not a duration/, JSON.stringify(text));
  }
});
