import type { ModelDelta, ModelFacts } from "../model/ports.ts";
import type { CallOptions } from "./call.ts";
import type { Quirks } from "./endpoints.ts";
import type { KnownModel } from "./known-models.ts";

/** A model on a server, whichever of the two protocols it speaks. */
export interface ServerOptions extends CallOptions {
  /** As the log names it. */
  readonly provider: string;
  readonly quirks: Quirks;
  readonly facts: ModelFacts;
  readonly thinking?: KnownModel["thinking"];
}

export function overWindow({ window }: ModelFacts): Extract<ModelDelta, { type: "failed" }> {
  const message = `the request was longer than the model's window of ${window} tokens, and the server cut it in silence`;
  return { type: "failed", failure: { kind: "overflow", message, transient: false } };
}
