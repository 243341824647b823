import type { Conversations } from "../agent/recorded.ts";
import type { Past } from "../engine/resume.ts";
import type { LogLine } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import type { Plan } from "../model/plan.ts";
import type { Models } from "./models.ts";

/** Everything a run is made with, checked. */
export interface StartOptions {
  readonly plan: Plan;
  /** Checked values of the root workflow's inputs. */
  readonly inputs: JsonObject;
  readonly secrets: { readonly [name: string]: string };
  readonly models: Models | undefined;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly runsDir: string | undefined;
  /** The file of replies that stands for every model, as it was given. */
  readonly script: string | undefined;
  readonly parallel: number | undefined;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
  /** Whether an expression of the workflow asks for `hashFiles`. */
  readonly hashesFiles: boolean;
  /** Sees every event after the log has it. */
  readonly onEvent: ((line: LogLine) => void) | undefined;
  /** Aborted with the signal's name: the run is cancelled. */
  readonly signal: AbortSignal;
  /** Aborted: everything ends at once. */
  readonly kill: AbortSignal;
}

/** What a run was before it was resumed. */
export interface Before {
  readonly past: Past;
  readonly agents: Conversations;
  /** When it began, RFC 3339. */
  readonly started: string;
}
