import type { JsonObject } from "../model/json.ts";
import type { AgentOutcome, Usage } from "../model/message.ts";

/** How one agent run ended. */
export interface AgentResult {
  readonly outcome: AgentOutcome;
  /** One sentence: why it ended like this. */
  readonly reason: string;
  /** Turns that began, the last text-only one at the turn cap included. */
  readonly turns: number;
  readonly usage: Usage;
  /** The last text of the model; of a failed turn, what had arrived. */
  readonly text: string;
  /** Present only when the outcome is `done` and there is an `output` schema. */
  readonly output?: JsonObject;
}

export type Ending = Pick<AgentResult, "outcome" | "reason" | "output">;
