import type { GivenAnswer } from "../model/event.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Plan } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { withoutRepository } from "../process/git.ts";
import { groundProblem, wantsWorktrees } from "./isolated.ts";
import { managedIn } from "./managed.ts";
import { openModels } from "./open-models.ts";
import { repliesProblem } from "./replies.ts";
import {
  type Conditions,
  type Prepared,
  type Refusal,
  type RunRequest,
  unavailable,
  usage,
  type Watched,
} from "./requests.ts";
import type { RunPermissions } from "./rights.ts";
import type { StartOptions } from "./run-options.ts";
import type { Sandboxes } from "./sandboxes.ts";

/** Where a run goes on, and with which answers. */
export interface Ground {
  readonly cwd: string;
  readonly workspace: string;
  readonly answers: readonly GivenAnswer[];
  /** It went on there before. */
  readonly isResumed: boolean;
}

/** Everything a run needs beside its plan, or why it cannot start. */
export async function equip(
  request: Conditions & Watched,
  { plan, inputs, sources, warnings }: Prepared,
  place: Ground,
): Promise<StartOptions | Refusal> {
  const given = request.env ?? process.env;
  // A worktree is not the repository that a git hook, for example, names.
  const env = wantsWorktrees(plan) ? withoutRepository(given) : given;
  const secrets = readSecrets(plan, env);
  if ("kind" in secrets) return secrets;
  const asksNobody = Object.keys(plan.agents).length === 0;
  const wrong = asksNobody ? await repliesProblem(request, place.cwd) : undefined;
  if (wrong !== undefined) return usage(wrong);
  const equipment = asksNobody
    ? { models: undefined, keys: [], replay: undefined }
    : await openModels(request, { plan, inputs, secrets: secrets.values, sources, ...place, env });
  if ("kind" in equipment) return equipment;
  const ground = await groundProblem(plan, { ...place, env });
  if (ground !== undefined) return usage(ground);
  const { supervise } = await import("./supervision.ts");
  const supervision = supervise(env);
  if (!supervision.ok) return { ...supervision.error, exitCode: exitCodes[supervision.error.kind] };
  const config = await (await import("./wishes.ts")).configIn({ ...place, env });
  if (!config.ok) return unavailable(config.error);
  const managed = await managedIn({ ...place, env });
  if (!managed.ok) return unavailable(managed.error);
  let made: Promise<Sandboxes> | undefined;
  const sandboxes = (): Promise<Sandboxes> =>
    (made ??= import("./sandboxes.ts").then(({ createSandboxes }) =>
      createSandboxes({ env, managed: managed.value, config: config.value }),
    ));
  const permissions = await rightsFor(request, { plan, ...place, env, sandboxes });
  if (!permissions.ok) return permissions.error;
  const never = new AbortController().signal;
  // Without its text, as after the file is gone, the plan itself tells.
  const texts = sources.size > 0 ? [...sources.values()] : [JSON.stringify(plan)];
  return {
    plan,
    inputs,
    warnings,
    secrets: secrets.values,
    ...equipment,
    ...place,
    env,
    runsDir: request.runsDir,
    supervision: supervision.value,
    permissions: permissions.value,
    sandboxes,
    managed: managed.value,
    hooks: config.value?.hooks ?? [],
    script: request.script,
    parallel: request.parallel,
    refresh: request.cache === false,
    logDeltas: request.logDeltas ?? false,
    fsync: request.fsync ?? false,
    hashesFiles: texts.some((text) => /hashfiles/i.test(text)),
    onEvent: request.onEvent,
    watch: request.watch,
    asker: request.asker,
    by: request.by,
    signal: request.signal ?? never,
    kill: request.kill ?? never,
  };
}

interface RightsSource {
  readonly plan: Plan;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: RunRequest["env"] & object;
  readonly sandboxes: () => Promise<Sandboxes>;
}

/** The rights of a run's agents, where it has any or a managed file speaks of all that runs. */
async function rightsFor(
  { profile, allow = [], asker }: Conditions,
  { plan, cwd, workspace, env, sandboxes }: RightsSource,
): Promise<Result<RunPermissions | undefined, Refusal>> {
  const { wishesOf } = await import("./wishes.ts");
  const wishes = await wishesOf({ profile, allow }, { cwd, workspace, env });
  if (!wishes.ok) return err(unavailable(wishes.error));
  const rules = wishes.value.managed?.rules ?? [];
  if (Object.keys(plan.agents).length === 0 && rules.length === 0 && allow.length === 0) return ok(undefined);
  const [{ createRights }, { missingSandbox }] = await Promise.all([import("./rights.ts"), import("./sandboxes.ts")]);
  const made = await sandboxes();
  const missing = missingSandbox(made, wishes.value, { plan, workspace });
  if (missing !== undefined) return err(unavailable(missing));
  const rights = createRights({ plan, workspace, asker, sandboxes: made, ...wishes.value });
  return rights.ok ? rights : err(usage(rights.error));
}

function readSecrets(
  plan: Plan,
  env: RunRequest["env"] & object,
): { readonly values: { readonly [name: string]: string } } | Refusal {
  const names = new Set(Object.values(plan.workflows).flatMap((workflow) => workflow.secrets));
  const valueOf = (name: string): string => (Object.hasOwn(env, name) ? (env[name] ?? "") : "");
  const missing = [...names].filter((name) => valueOf(name) === "");
  if (missing.length > 0) {
    const message = `the workflow declares the secret${missing.length > 1 ? "s" : ""} ${missing.join(", ")}, and no such environment variable is set (in CI: pass it to this job; on a fork secrets are not there)`;
    return { kind: "unavailable", exitCode: exitCodes.unavailable, message };
  }
  return { values: Object.fromEntries([...names].map((name) => [name, valueOf(name)])) };
}
