import { own } from "../model/json.ts";
import type { StepResult } from "../model/outcome.ts";
import type { Attempt } from "../model/ports.ts";

/** The kind `set`: its values are its result. It answers at once, so that a chain of them waits for nothing. */
export function set({ inputs }: Attempt): StepResult {
  const values = own(inputs, "set") ?? {};
  return { outcome: "success", result: values, outputs: values };
}
