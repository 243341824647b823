import { dirname, relative, resolve } from "node:path";
import type { Diagnostic } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Plan, Step } from "../model/plan.ts";
import type { Clock, ModelClient } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { type Catalog, keyFor, parseModel, type ServerModel } from "../providers/catalog.ts";
import { factsOf } from "../providers/facts.ts";
import { limited, Limiter } from "../providers/limiter.ts";
import { type Cassette, replayClient } from "../providers/replay.ts";
import { loadScript } from "../providers/script.ts";
import { scriptedClient, scriptedFacts } from "../providers/scripted.ts";
import type { ServerOptions } from "../providers/server.ts";
import { readSource } from "../source/read.ts";
import { forbiddenModel } from "./governed.ts";
import type { Managed } from "./managed-read.ts";
import { type Asking, askingOf } from "./asking.ts";
import { misfits } from "./model-fit.ts";
import type { FactsOf } from "./prices.ts";
import { workflowsOf } from "./workflows-of.ts";

/** Why a run cannot start because of its models: a file that is wrong, or something that is not there. */
export type ModelProblem =
  | {
      readonly kind: "invalid";
      readonly diagnostics: readonly Diagnostic[];
      readonly sources: ReadonlyMap<string, string>;
    }
  | { readonly kind: "unavailable"; readonly message: string };

/** A model that is none at all: a mistake of the file, placed by whoever knows which step names it. */
type OpenProblem = ModelProblem | { readonly kind: "unknown"; readonly message: string };

export interface ModelsOptions {
  readonly plan: Plan;
  readonly workspace: string;
  readonly cwd: string;
  /** Replaces every agent's model; relative to the working directory. */
  readonly script: string | undefined;
  /** The recorded replies that stand for every model. */
  readonly cassette?: Cassette;
  readonly catalog: Catalog;
  /** What this machine restricts. */
  readonly managed?: Managed | undefined;
  readonly env: { readonly [name: string]: string | undefined };
  readonly clock: Clock;
}

/** The models of one run: each is opened once, scripts are read once, and each provider has one limiter. */
export interface Models {
  /**
   * Opens every model that is a constant of the plan, so that nothing starts with a key or a script missing; of a list
   * to fall back on one that can be asked is enough.
   */
  prepare(): Promise<ModelProblem | undefined>;
  client(model: Json | undefined, step: string): Promise<Result<ModelClient, Failure>>;
  /** What is known of a model that is named in the workflow of that key; no key is needed for it. */
  readonly facts: FactsOf;
}

export function createModels(options: ModelsOptions): Models {
  const clients = new Map<string, Promise<Result<ModelClient, OpenProblem>>>();
  const settings: ModelSettings = { ...options, limiters: new Map() };
  const open = (model: Json | undefined, workflow: string): Promise<Result<ModelClient, OpenProblem>> => {
    const key = options.script ?? JSON.stringify([model, workflow]);
    const known = clients.get(key) ?? openModel(settings, model, workflow);
    clients.set(key, known);
    return known;
  };
  const facts: FactsOf = async (model, workflow) => {
    const choice = model === undefined || options.script !== undefined ? undefined : parseModel(model, options.catalog);
    if (choice?.ok === true && choice.value.kind === "server") return factsOf(choice.value);
    const client = await open(model, workflow);
    return client.ok ? client.value.facts : undefined;
  };
  return {
    facts,
    async prepare() {
      const unfit = await misfits(options.plan, facts);
      if (unfit.length > 0) return { kind: "invalid", diagnostics: unfit, sources: new Map() };
      for (const { workflow, ...asking } of askingOf(options.plan)) {
        const problem = await prepareAgent(asking, options.script !== undefined, (model) => open(model, workflow));
        if (problem !== undefined) return problem;
      }
      return undefined;
    },
    async client(model, step) {
      const problem = forbidden(model, options);
      if (problem !== undefined) return err({ kind: "denied", message: problem });
      const client = await open(model, workflowsOf(options.plan, step).at(-1) ?? options.plan.root);
      if (client.ok) return client;
      const message =
        client.error.kind === "invalid"
          ? (client.error.diagnostics[0]?.message ?? "the script is not valid")
          : client.error.message;
      return err({ kind: "unavailable", message });
    },
  };
}

/** A model that this machine does not allow; one that nobody asks may be any. */
function forbidden(model: Json | undefined, { script, cassette, managed, catalog }: ModelsOptions): string | undefined {
  if (model === undefined || script !== undefined || cassette !== undefined || managed === undefined) return undefined;
  return forbiddenModel(model, { managed, catalog });
}

type Open = (model: Json | undefined) => Promise<Result<ModelClient, OpenProblem>>;

/** Models that are expressions are known only when their step runs. */
async function prepareAgent(
  { step, models }: Pick<Asking, "step" | "models">,
  isScripted: boolean,
  open: Open,
): Promise<ModelProblem | undefined> {
  if (models.length === 0 || isScripted) return problemOf(await open(undefined), step);
  let first: ModelProblem | undefined;
  let canAsk = false;
  for (const model of models) {
    const problem = model.type === "data" ? problemOf(await open(model.json), step) : undefined;
    if (problem?.kind === "invalid") return problem;
    if (problem === undefined) canAsk = true;
    first ??= problem;
  }
  return canAsk ? undefined : first;
}

function problemOf(client: Result<ModelClient, OpenProblem>, step: Step): ModelProblem | undefined {
  if (client.ok) return undefined;
  return client.error.kind === "unknown" ? unknownModel(client.error.message, step) : client.error;
}

function unknownModel(message: string, step: Step): ModelProblem {
  const diagnostic: Diagnostic = {
    code: "FLOW2004",
    severity: "error",
    message: `step \`${step.id}\`: ${message}`,
    at: step.at,
  };
  return { kind: "invalid", diagnostics: [diagnostic], sources: new Map() };
}

interface ModelSettings extends ModelsOptions {
  readonly limiters: Map<string, Limiter>;
}

async function openModel(
  settings: ModelSettings,
  model: Json | undefined,
  workflow: string,
): Promise<Result<ModelClient, OpenProblem>> {
  const { script, cwd, workspace, catalog, cassette } = settings;
  if (script !== undefined) return openScript(resolve(cwd, script), settings);
  // Where nobody names a model the recorded run had a script, and its requests say so.
  if (model === undefined && cassette !== undefined)
    return ok({ ...replayClient(cassette, scriptedFacts), provider: "scripted" });
  if (model === undefined)
    return err(unavailable(workflow === "-" ? "no model is named" : `no model is named for an agent of ${workflow}`));
  const choice = parseModel(model, catalog);
  if (!choice.ok) return err({ kind: "unknown", message: choice.error });
  if (choice.value.kind === "scripted") {
    const folder = workflow === "-" ? cwd : dirname(resolve(workspace, workflow));
    const scripted = await openScript(resolve(folder, choice.value.path), settings);
    if (cassette === undefined) return scripted;
    // The log has the replies; what the model is like, its window for one, only the script says.
    return ok(replayClient(cassette, scripted.ok ? scripted.value.facts : scriptedFacts));
  }
  if (cassette !== undefined) return ok(replayClient(cassette, await factsOf(choice.value)));
  return openServer(choice.value, settings);
}

async function openScript(path: string, { cwd, clock }: ModelSettings): Promise<Result<ModelClient, OpenProblem>> {
  const shown = relative(cwd, path);
  const bytes = await readSource(path);
  if (!bytes.ok)
    return err({ kind: "unknown", message: `the script \`${shown}\` cannot be read: ${bytes.error.message}` });
  const script = loadScript(bytes.value, shown);
  if (!script.ok)
    return err({
      kind: "invalid",
      diagnostics: script.error,
      sources: new Map([[shown, new TextDecoder().decode(bytes.value)]]),
    });
  return ok(scriptedClient(script.value, clock));
}

async function openServer(
  choice: ServerModel,
  { env, limiters, clock }: ModelSettings,
): Promise<Result<ModelClient, ModelProblem>> {
  const key = keyFor(choice, env);
  if (!key.ok)
    return err(unavailable(`the model ${choice.id} needs a key, and the variable ${key.error} is not set`, key.error));
  const { name, provider, baseUrl, quirks, known, parallel } = choice;
  const options: ServerOptions = {
    provider,
    model: name,
    baseUrl,
    quirks,
    facts: await factsOf(choice),
    ...(known.thinking !== undefined && { thinking: known.thinking }),
    ...(key.value !== undefined && { apiKey: key.value }),
    ...(choice.key !== undefined && { keyName: choice.key }),
  };
  const client = await clientOf(choice.protocol, options);
  const place = provider === "custom" ? baseUrl : provider;
  const limiter = limiters.get(place) ?? new Limiter(parallel, clock);
  limiters.set(place, limiter);
  return ok(limited(client, limiter));
}

async function clientOf(protocol: ServerModel["protocol"], options: ServerOptions): Promise<ModelClient> {
  if (protocol === "anthropic") return (await import("../providers/anthropic.ts")).anthropicClient(options);
  return (await import("../providers/openai.ts")).openaiClient(options);
}

/** `key` is the variable that a model which is named needs. */
function unavailable(reason: string, key?: string): ModelProblem {
  const first = key === undefined ? "set OPENAI_API_KEY (and name a model: `model: openai/gpt-4o-mini`)" : `set ${key}`;
  const ways = [
    `1. ${first}, or name a server of your own: \`model: { id: NAME, base-url: http://127.0.0.1:11434/v1 }\``,
    "2. run without a model: `--script FILE` gives the replies from a file",
    "3. replay a run: `--replay RUN` takes the replies from its log",
  ];
  return { kind: "unavailable", message: `${reason}. Three ways out:\n  ${ways.join("\n  ")}` };
}
