import type { Diagnostic } from "../model/diagnostic.ts";
import type { Conversations } from "../agent/conversations.ts";
import type { Past } from "../engine/resume.ts";
import type { GivenAnswer, LogLine } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import type { Plan } from "../model/plan.ts";
import type { Asker } from "../model/ports.ts";
import type { Spending } from "../model/spending.ts";
import type { Approvals } from "../steps/approvals.ts";
import type { RecordedWorktrees } from "../worktree/recorded.ts";
import type { Setting } from "./config.ts";
import type { Managed } from "./managed-read.ts";
import type { Models } from "./models.ts";
import type { LogWatch } from "./requests.ts";
import type { RunPermissions } from "./rights.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { Supervision } from "./supervision.ts";

/** Everything a run is made with, checked. */
export interface StartOptions {
  /** What the files of the workflow are warned of. */
  readonly warnings: readonly Diagnostic[];
  readonly plan: Plan;
  /** Checked values of the root workflow's inputs. */
  readonly inputs: JsonObject;
  readonly secrets: { readonly [name: string]: string };
  readonly models: Models | undefined;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly runsDir: string | undefined;
  readonly supervision: Supervision;
  /** What agents may do; absent where there are none. */
  readonly permissions: RunPermissions | undefined;
  /** Made when somebody needs one. */
  readonly sandboxes: () => Promise<Sandboxes>;
  /** What this machine restricts. */
  readonly managed: Managed | undefined;
  /** Hooks of the configuration, the weakest layer first. */
  readonly hooks: readonly Setting<JsonObject>[];
  /** The file of replies that stands for every model, as it was given. */
  readonly script: string | undefined;
  /** The log whose replies stand for every model; absolute. */
  readonly replay: string | undefined;
  /** Variables that hold the keys of configured providers. */
  readonly keys: readonly string[];
  readonly parallel: number | undefined;
  /** Steps with `cache` run whatever is kept, and what they give is kept in its place. */
  readonly refresh: boolean;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
  /** Whether an expression of the workflow asks for `hashFiles`. */
  readonly hashesFiles: boolean;
  /** Sees every event after the log has it. */
  readonly onEvent: ((line: LogLine) => void) | undefined;
  readonly watch: LogWatch | undefined;
  /** Whom approvals ask while the run goes on. */
  readonly asker: Asker | undefined;
  /** Who that is, where somebody said so. */
  readonly by: string | undefined;
  /** Of approvals: up front in a new run, of open ones in a resume. */
  readonly answers: readonly GivenAnswer[];
  /** Aborted with the signal's name: the run is cancelled. */
  readonly signal: AbortSignal;
  /** Aborted: everything ends at once. */
  readonly kill: AbortSignal;
}

/** What a run was before it was resumed. */
export interface Before {
  readonly past: Past;
  readonly agents: Conversations;
  readonly spending: Spending;
  readonly approvals: Approvals;
  readonly worktrees: RecordedWorktrees;
  /** When it began, RFC 3339. */
  readonly started: string;
}
