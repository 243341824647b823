import type { SourceTexts } from "../model/diagnostic.ts";
import type { JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Plan } from "../model/plan.ts";
import type { ModelRequest } from "../model/ports.ts";
import { ok, type Result } from "../model/result.ts";
import type { WorstCase } from "../model/worst-case.ts";
import type { Cassette } from "../providers/replay.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { managedIn } from "./managed.ts";
import type { Models } from "./models.ts";
import { type Conditions, type Prepared, type Refusal, type RunRequest, unavailable, usage } from "./requests.ts";
import type { StartOptions } from "./run-options.ts";

interface ModelsSource {
  readonly plan: Plan;
  readonly inputs: JsonObject;
  readonly secrets: StartOptions["secrets"];
  readonly sources: SourceTexts;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: RunRequest["env"] & object;
}

/** The models of a run, ready to be asked, or why they cannot be. */
export async function openModels(
  request: Conditions,
  source: ModelsSource,
): Promise<Pick<StartOptions, "models" | "keys" | "replay"> | Refusal> {
  const made = await makeModels(request, source);
  if ("kind" in made) return made;
  const problem = await made.models.prepare();
  if (!problem) return made;
  return problem.kind === "invalid" ? invalidIn(source, problem) : { ...problem, exitCode: exitCodes.unavailable };
}

function invalidIn(
  source: ModelsSource,
  problem: Pick<Extract<Refusal, { kind: "invalid" }>, "diagnostics" | "sources">,
): Refusal {
  const sources = new Map([...source.sources, ...problem.sources]);
  return { kind: "invalid", diagnostics: problem.diagnostics, sources, exitCode: exitCodes.usage };
}

/** The models of a run, of which none has been opened. */
async function makeModels(
  request: Conditions,
  source: ModelsSource,
): Promise<(Pick<StartOptions, "keys" | "replay"> & { readonly models: Models }) | Refusal> {
  const { script, replay } = request;
  if (script !== undefined && replay !== undefined) return usage("--script and --replay exclude each other");
  const [{ createModels }, { systemClock }, { builtInCatalog }, { configSources }] = await Promise.all([
    import("./models.ts"),
    import("./clock.ts"),
    import("../providers/catalog.ts"),
    import("./config-files.ts"),
  ]);
  const config =
    configSources(source).length === 0 ? undefined : await (await import("./config.ts")).readConfig(source);
  if (config?.ok === false) return invalidIn(source, config.error);
  const managed = await managedIn(source);
  if (!managed.ok) return unavailable(managed.error);
  const keys = config?.value.keys ?? [];
  const played = replay === undefined ? undefined : await openReplay(replay, request, { ...source, keys });
  if (played?.ok === false) return usage(played.error);
  const models = createModels({
    ...source,
    script,
    ...(played && { cassette: played.value.cassette }),
    catalog: config?.value.catalog ?? builtInCatalog,
    managed: managed.value,
    clock: systemClock,
  });
  return { models, keys, replay: played?.value.file };
}

/** What a workflow asks of its models that they cannot do, scripts that cannot be read included; no key is needed. */
export async function modelDiagnostics(
  plan: Plan,
  place: Pick<ModelsSource, "cwd" | "workspace" | "env" | "sources">,
): Promise<Pick<Extract<Refusal, { kind: "invalid" }>, "diagnostics" | "sources">> {
  const made = await makeModels({}, { plan, inputs: {}, secrets: {}, ...place });
  const problem = "kind" in made ? made : await made.models.prepare();
  return problem?.kind === "invalid" ? problem : { diagnostics: [], sources: new Map() };
}

/** What a run could take at most; no key is needed. The error is a limit on cost that nobody could keep. */
export async function worstCaseOf(
  request: RunRequest,
  { plan, inputs, sources }: Prepared,
): Promise<WorstCase | Refusal> {
  const cwd = request.cwd ?? process.cwd();
  const place = { cwd, workspace: workspaceOf(cwd), env: request.env ?? process.env };
  const source = { plan, inputs, secrets: {}, sources, ...place };
  const [made, { misfits }, worst] = await Promise.all([
    makeModels(request, source),
    import("./model-fit.ts"),
    import("./worst-case.ts"),
  ]);
  if ("kind" in made) return made;
  const { facts } = made.models;
  const diagnostics = await misfits(plan, facts);
  return diagnostics.length > 0 ? invalidIn(source, { diagnostics, sources: new Map() }) : worst.worstCase(plan, facts);
}

/** The masks of this run: the log's texts are masked, so what is compared with them has to be. */
async function openReplay(
  replay: string,
  { runsDir }: Conditions,
  source: ModelsSource & Pick<StartOptions, "keys">,
): Promise<Result<{ readonly cassette: Cassette; readonly file: string }, string>> {
  const [{ locateLog, openCassette }, { createMasking, maskedRequest }] = await Promise.all([
    import("./cassette.ts"),
    import("./masking.ts"),
  ]);
  const { mask, hasSecrets } = createMasking(source);
  const place = { cwd: source.cwd, ...(runsDir !== undefined && { runsDir }) };
  const file = locateLog(replay, place);
  if (!file.ok) return file;
  const masked = (asked: ModelRequest): ModelRequest => (hasSecrets ? maskedRequest(asked, mask) : asked);
  const cassette = await openCassette(file.value, replay, masked);
  return cassette.ok ? ok({ cassette: cassette.value, file: file.value }) : cassette;
}
