import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import type { GivenAnswer } from "../model/event.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Plan } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { openModels } from "./open-models.ts";
import { type Conditions, type Prepared, type Refusal, type RunRequest, unavailable, usage } from "./requests.ts";
import type { RunPermissions } from "./rights.ts";
import type { StartOptions } from "./run-options.ts";

/** Everything a run needs beside its plan, or why it cannot start. */
export async function equip(
  request: Conditions,
  { plan, inputs, warnings, sources }: Prepared,
  place: { readonly cwd: string; readonly workspace: string; readonly answers: readonly GivenAnswer[] },
): Promise<StartOptions | Refusal> {
  const env = request.env ?? process.env;
  const early = notYet(warnings, sources);
  if (early) return early;
  const secrets = readSecrets(plan, env);
  if ("kind" in secrets) return secrets;
  const asksNobody = Object.keys(plan.agents).length === 0;
  const wrong = asksNobody ? await repliesProblem(request, place) : undefined;
  if (wrong !== undefined) return usage(wrong);
  const equipment = asksNobody
    ? { models: undefined, keys: [], replay: undefined }
    : await openModels(request, { plan, inputs, secrets: secrets.values, sources, ...place, env });
  if ("kind" in equipment) return equipment;
  const { supervise } = await import("./supervision.ts");
  const supervision = supervise(env);
  if (!supervision.ok) return { ...supervision.error, exitCode: exitCodes[supervision.error.kind] };
  const permissions = await rightsFor(request, { plan, ...place, env });
  if (!permissions.ok) return permissions.error;
  const config = await (await import("./wishes.ts")).configIn({ ...place, env });
  if (!config.ok) return unavailable(config.error);
  const never = new AbortController().signal;
  // Without its text, as after the file is gone, the plan itself tells.
  const texts = sources.size > 0 ? [...sources.values()] : [JSON.stringify(plan)];
  return {
    plan,
    inputs,
    secrets: secrets.values,
    ...equipment,
    ...place,
    env,
    runsDir: request.runsDir,
    supervision: supervision.value,
    permissions: permissions.value,
    hooks: config.value?.hooks ?? [],
    script: request.script,
    parallel: request.parallel,
    refresh: request.cache === false,
    logDeltas: request.logDeltas ?? false,
    fsync: request.fsync ?? false,
    hashesFiles: texts.some((text) => /hashfiles/i.test(text)),
    onEvent: request.onEvent,
    asker: request.asker,
    signal: request.signal ?? never,
    kill: request.kill ?? never,
  };
}

/** What is wrong with `--script` or `--replay` where no agent asks for them: a slip is said all the same. */
async function repliesProblem(
  { script, replay, runsDir }: Conditions,
  { cwd }: { readonly cwd: string },
): Promise<string | undefined> {
  if (script !== undefined && replay !== undefined) return "--script and --replay exclude each other";
  if (script !== undefined && !existsSync(resolve(cwd, script))) return `--script: there is no file ${script}`;
  if (replay === undefined) return undefined;
  const { locateLog } = await import("./cassette.ts");
  const found = locateLog(replay, { cwd, ...(runsDir !== undefined && { runsDir }) });
  return found.ok ? undefined : `--replay: ${found.error}`;
}

interface RightsSource {
  readonly plan: Plan;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: RunRequest["env"] & object;
}

/** The rights of a run's agents, where it has any or a managed file speaks of all that runs. */
async function rightsFor(
  { profile, allow = [], asker }: Conditions,
  { plan, cwd, workspace, env }: RightsSource,
): Promise<Result<RunPermissions | undefined, Refusal>> {
  const { wishesOf } = await import("./wishes.ts");
  const wishes = await wishesOf({ profile, allow }, { cwd, workspace, env });
  if (!wishes.ok) return err(unavailable(wishes.error));
  const { managed } = wishes.value;
  if (Object.keys(plan.agents).length === 0 && managed.length === 0 && allow.length === 0) return ok(undefined);
  const { createRights, missingSandbox } = await import("./rights.ts");
  const options = { plan, workspace, asker, env, ...wishes.value };
  const missing = missingSandbox(options);
  if (missing !== undefined) return err(unavailable(missing));
  const rights = createRights(options);
  return rights.ok ? rights : err(usage(rights.error));
}

/** Keys that are checked but have no behaviour yet stop a run: they are never ignored. */
function notYet(warnings: readonly Diagnostic[], sources: SourceTexts): Refusal | undefined {
  const early = warnings.filter((warning) => warning.code === "FLOW9001");
  if (early.length === 0) return undefined;
  const diagnostics = early.map((warning): Diagnostic => ({ ...warning, severity: "error" }));
  return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
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
