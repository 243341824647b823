import type { ModelClient, ModelFacts } from "../model/ports.ts";

/** A model as the log names it, and how it is asked. */
export interface AskedModel {
  readonly model: string;
  readonly client: ModelClient;
}

/** The models of one agent run, tried in order: once one has failed for good, the next answers for the rest of the run. */
export class ModelChain {
  readonly #models: readonly AskedModel[];
  #current: AskedModel;
  /** What holds for all of them, so that a request fits whichever is asked. */
  readonly facts: ModelFacts;

  constructor(first: AskedModel, others: readonly AskedModel[] = []) {
    this.#models = [first, ...others];
    this.#current = first;
    this.facts = others.length === 0 ? first.client.facts : common(this.#models.map(({ client }) => client.facts));
  }

  get current(): AskedModel {
    return this.#current;
  }

  /** The next model, which is the current one from here on; undefined when there is none. */
  fallBack(): AskedModel | undefined {
    const next = this.#models[this.#models.indexOf(this.#current) + 1];
    this.#current = next ?? this.#current;
    return next;
  }
}

function common(all: readonly ModelFacts[]): ModelFacts {
  const windows = all.flatMap(({ window }) => window ?? []);
  const outputs = all.flatMap(({ maxOutput }) => maxOutput ?? []);
  return {
    ...(windows.length > 0 && { window: Math.min(...windows) }),
    ...(outputs.length > 0 && { maxOutput: Math.min(...outputs) }),
    jsonSchema: all.every(({ jsonSchema }) => jsonSchema),
    cost: (usage) => {
      const costs = all.map(({ cost }) => cost(usage));
      return costs.includes(null) ? null : Math.max(...costs.map((cost) => cost ?? 0));
    },
  };
}
