import { dirname, resolve } from "node:path";
import type { Diagnostic } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Plan, Scope, Step } from "../model/plan.ts";
import type { Clock, ModelClient } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { type ModelChoice, keyFor, parseModel } from "../providers/catalog.ts";
import { loadScript } from "../providers/script.ts";
import { scriptedClient } from "../providers/scripted.ts";
import { readSource } from "../source/read.ts";

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
  readonly env: { readonly [name: string]: string | undefined };
  readonly clock: Clock;
}

/** The models of one run: each is opened once, scripts are read once. */
export interface Models {
  /** Opens every model that is a constant of the plan, so that nothing starts with a key or a script missing. */
  prepare(): Promise<ModelProblem | undefined>;
  client(model: Json | undefined, step: string): Promise<Result<ModelClient, Failure>>;
}

export function createModels(options: ModelsOptions): Models {
  const clients = new Map<string, Promise<Result<ModelClient, OpenProblem>>>();
  const open = (model: Json | undefined, workflow: string): Promise<Result<ModelClient, OpenProblem>> => {
    const key = options.script ?? JSON.stringify([model, workflow]);
    const known = clients.get(key) ?? openModel(options, model, workflow);
    clients.set(key, known);
    return known;
  };
  return {
    async prepare() {
      for (const { step, workflow } of agentSteps(options.plan)) {
        if (step.body.kind !== "agent") continue;
        const [first] = step.body.models;
        if (first !== undefined && first.type !== "data" && options.script === undefined) continue;
        const client = await open(first?.type === "data" ? first.json : undefined, workflow);
        if (!client.ok)
          return client.error.kind === "unknown" ? unknownModel(client.error.message, step) : client.error;
      }
      return undefined;
    },
    async client(model, step) {
      const client = await open(model, workflowOf(options.plan, step));
      if (client.ok) return client;
      const message =
        client.error.kind === "invalid"
          ? (client.error.diagnostics[0]?.message ?? "the script is not valid")
          : client.error.message;
      return err({ kind: "unavailable", message });
    },
  };
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

async function openModel(
  options: ModelsOptions,
  model: Json | undefined,
  workflow: string,
): Promise<Result<ModelClient, OpenProblem>> {
  if (options.script !== undefined)
    return openScript(resolve(options.cwd, options.script), options.script, options.clock);
  if (model === undefined) return err(unavailable(`no model is named for an agent of ${workflow}`));
  const choice = parseModel(model);
  if (!choice.ok) return err({ kind: "unknown", message: choice.error });
  if (choice.value.provider === "scripted") {
    const folder = workflow === "-" ? options.cwd : dirname(resolve(options.workspace, workflow));
    return openScript(resolve(folder, choice.value.path), choice.value.path, options.clock);
  }
  return openServer(choice.value, options.env);
}

async function openScript(path: string, shown: string, clock: Clock): Promise<Result<ModelClient, ModelProblem>> {
  const bytes = await readSource(path);
  if (!bytes.ok) {
    const at = { file: shown, line: 1, column: 1, endLine: 1, endColumn: 1 };
    const diagnostic: Diagnostic = {
      code: bytes.error.code,
      severity: "error",
      message: `the script cannot be read: ${bytes.error.message}`,
      at,
    };
    return err({ kind: "invalid", diagnostics: [diagnostic], sources: new Map() });
  }
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
  choice: Extract<ModelChoice, { provider: "openai" }>,
  env: ModelsOptions["env"],
): Promise<Result<ModelClient, ModelProblem>> {
  const key = keyFor(choice, env);
  if (!key.ok)
    return err(unavailable(`the model ${choice.id} needs a key, and the variable ${key.error} is not set`, key.error));
  const { openaiClient } = await import("../providers/openai.ts");
  const { name: model, baseUrl, custom } = choice;
  return ok(
    openaiClient({
      model,
      baseUrl,
      custom,
      ...(key.value !== undefined && { apiKey: key.value }),
      ...(choice.key !== undefined && { keyName: choice.key }),
    }),
  );
}

function unavailable(reason: string, key = "OPENAI_API_KEY"): ModelProblem {
  const ways = [
    `1. set ${key} (and name a model: \`model: openai/gpt-4o-mini\`)`,
    "2. name a server of your own: `model: { id: NAME, base-url: http://127.0.0.1:11434/v1 }`",
    "3. run without a model: `--script FILE` gives the replies from a file",
  ];
  return { kind: "unavailable", message: `${reason}. Three ways out:\n  ${ways.join("\n  ")}` };
}

/** Every agent step of a plan, with the key of its workflow. */
export function* agentSteps(plan: Plan): Generator<{ readonly step: Step; readonly workflow: string }> {
  for (const [key, workflow] of Object.entries(plan.workflows)) {
    for (const step of within(workflow.scope)) if (step.kind === "agent") yield { step, workflow: key };
  }
}

function* within(scope: Scope): Generator<Step> {
  for (const step of scope.steps) {
    yield step;
    if (step.scope && "inline" in step.scope) yield* within(step.scope.inline);
  }
}

/** The workflow a step path lies in: its groups and sub-workflows are walked by their ids. */
function workflowOf(plan: Plan, path: string): string {
  let key = plan.root;
  let scope = plan.workflows[key]?.scope;
  for (const part of path.split("/")) {
    const id = part.replace(/[[#].*$/, "");
    const inner = scope?.steps.find((step) => step.id === id)?.scope;
    if (inner && "workflow" in inner) key = inner.workflow;
    scope = inner === undefined ? undefined : "inline" in inner ? inner.inline : plan.workflows[inner.workflow]?.scope;
  }
  return key;
}
