import type { Event } from "./event.ts";
import type { Usage } from "./message.ts";
import type { Limits } from "./plan.ts";
import type { Spend } from "./ports.ts";

export const noSpend: Spend = { tokens: 0, cost: 0 };

/** Input, output and cached tokens together: what `limits.tokens` counts. */
export function spendOf({ input, output, cacheRead, cacheWrite, cost }: Omit<Usage, "reasoning" | "estimated">): Spend {
  return { tokens: input + output + cacheRead + cacheWrite, cost };
}

export function addSpend(a: Spend, b: Spend): Spend {
  return { tokens: a.tokens + b.tokens, cost: a.cost === null || b.cost === null ? null : a.cost + b.cost };
}

/** What a model call used; it counts also when its reply was discarded. Undefined of all other events. */
export function usageOf(event: Event): Usage | undefined {
  switch (event.type) {
    case "message":
    case "model.retry":
    case "model.failed":
      return event.usage;
    case "context.compressed":
      return event.how === "summarised" ? event.usage : undefined;
    default:
      return undefined;
  }
}

interface AgentSpend {
  readonly step: string;
  /** The agent run it goes on with. */
  readonly continues: string | undefined;
  /** Those it spawned. */
  readonly children: string[];
  spent: Spend;
  /** Set aside for a call that has not ended: should it never, it counts whole, for it may have been billed. */
  held: Spend | undefined;
  /** The turn whose call was settled last: what was used in it does not count again. */
  settled: number;
}

/** What the model calls of a run took, folded from its events in order. The same events give the same account. */
export class Spending {
  readonly #agents = new Map<string, AgentSpend>();

  add(event: Event): void {
    switch (event.type) {
      case "agent.started": {
        const { step, continues, parent } = event;
        this.#agents.set(event.agent, { step, continues, children: [], spent: noSpend, held: undefined, settled: 0 });
        this.#change(parent ?? "", (agent) => agent.children.push(event.agent));
        break;
      }
      case "budget.reserved":
        this.#change(event.agent, (agent) => (agent.held = { tokens: event.tokens, cost: event.cost }));
        break;
      case "budget.settled":
        this.#change(event.agent, (agent) => {
          agent.held = undefined;
          agent.settled = event.turn;
          agent.spent = addSpend(agent.spent, event);
        });
        break;
      case "message":
      case "model.retry":
      case "model.failed":
      case "context.compressed": {
        const usage = usageOf(event);
        if (usage === undefined) break;
        this.#change(event.agent, (agent) => {
          if (agent.settled !== event.turn) agent.spent = addSpend(agent.spent, spendOf(usage));
        });
        break;
      }
      default:
    }
  }

  /** Of the step at `path` with everything in it; of the run when it is empty. */
  within(path: string): Spend {
    let sum = noSpend;
    for (const { step, spent, held } of this.#agents.values())
      if (lies(step, path)) sum = addSpend(sum, addSpend(spent, held ?? noSpend));
    return sum;
  }

  /** Of one agent run, those before it whose conversation it went on with, and all that they spawned. */
  ofAgent(id: string): Spend {
    let sum = noSpend;
    const found = new Set<string>([id]);
    for (const name of found) {
      const agent = this.#agents.get(name);
      if (agent === undefined) continue;
      sum = addSpend(sum, addSpend(agent.spent, agent.held ?? noSpend));
      for (const other of [...agent.children, agent.continues]) if (other !== undefined) found.add(other);
    }
    return sum;
  }

  #change(id: string, change: (agent: AgentSpend) => void): void {
    const agent = this.#agents.get(id);
    if (agent !== undefined) change(agent);
  }
}

function lies(step: string, path: string): boolean {
  if (path === "" || step === path) return true;
  return step.startsWith(path) && "/[#".includes(step.charAt(path.length));
}

/** A limit on what is spent, and what was spent of it. */
export interface LimitSpent {
  readonly limit: "cost" | "tokens";
  /** US dollars or tokens. */
  readonly most: number;
  /** Null where the price of some of it is unknown. */
  readonly spent: number | null;
}

export function limitsSpent(limits: Limits, spent: Spend): LimitSpent[] {
  return (["cost", "tokens"] as const).flatMap((limit) => {
    const most = limits[limit];
    if (most === undefined) return [];
    // Sums of dollars in binary have a tail that nobody spent.
    const exact = spent[limit] === null ? null : Number(spent[limit].toFixed(9));
    return [{ limit, most, spent: exact }];
  });
}
