import { describe, expect, it } from "vitest";
import { set } from "../../src/steps/set.ts";
import { attempt } from "./attempt.ts";

describe("a set step", () => {
  it("answers at once with its values, as result and as outputs", () => {
    const values = { a: 1, b: [null, { c: "x" }] };
    expect(set(attempt("set", { kind: "set" }, { set: values }))).toEqual({
      outcome: "success",
      result: values,
      outputs: values,
    });
  });
});
