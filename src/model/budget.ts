import type { Budget, OverBudget, Reservation, Spend, SpendLimit } from "./ports.ts";
import type { Result } from "./result.ts";
import { err, ok } from "./result.ts";

type Refusal = OverBudget | { readonly kind: "cancelled" };

/** `outer` with one limit more inside; itself where `limit` bounds neither tokens nor cost. */
export function narrowBudget(outer: Budget | undefined, limit: SpendLimit): Budget | undefined {
  if (limit.tokens === undefined && limit.cost === undefined) return outer;
  return (outer ?? new Purse([], [])).within(limit);
}

/** Tokens, and dollars as whole billionths: sums of those are exact, so that what is given back equals what was held. */
interface Units {
  readonly tokens: number;
  readonly cost: number;
}

/** One limit with what is spent and held of it. */
interface Account {
  readonly of: string;
  readonly most: Units;
  spent: Units;
  held: Units;
}

interface Waiting {
  readonly accounts: readonly Account[];
  readonly worst: Units;
  readonly answer: (result: Result<Reservation, Refusal>) => void;
}

/** Accounts from the nearest outward. All purses that grew out of one share its line of waiting calls. */
class Purse implements Budget {
  readonly #accounts: readonly Account[];
  readonly #line: Waiting[];

  constructor(accounts: readonly Account[], line: Waiting[]) {
    this.#accounts = accounts;
    this.#line = line;
  }

  within({ of, tokens = Infinity, cost = Infinity, spent }: SpendLimit): Budget {
    // What nobody can tell the price of may have been anything.
    const before: Units = { tokens: spent?.tokens ?? 0, cost: toBillionths((spent ?? nothing).cost ?? Infinity) };
    const most = { tokens, cost: cost === Infinity ? cost : Math.round(cost * billion) };
    return new Purse([{ of, most, spent: before, held: nothing }, ...this.#accounts], this.#line);
  }

  left(): Units {
    const least = (unit: keyof Units): number =>
      this.#accounts.reduce((left, { most, spent }) => Math.min(left, most[unit] - spent[unit]), Infinity);
    return { tokens: Math.max(0, least("tokens")), cost: Math.max(0, least("cost")) / billion };
  }

  reserve(worst: Spend, signal: AbortSignal): Promise<Result<Reservation, Refusal>> {
    const unpriced = worst.cost === null ? this.#accounts.find(({ most }) => most.cost < Infinity) : undefined;
    if (unpriced !== undefined) return Promise.resolve(err(unknownPrice(unpriced)));
    if (signal.aborted) return Promise.resolve(err({ kind: "cancelled" }));
    const { promise, resolve } = Promise.withResolvers<Result<Reservation, Refusal>>();
    const leave = (): void => {
      this.#line.splice(this.#line.indexOf(waiting), 1);
      resolve(err({ kind: "cancelled" }));
      this.#serve();
    };
    const answer: Waiting["answer"] = (result) => {
      signal.removeEventListener("abort", leave);
      resolve(result);
    };
    const units = { tokens: worst.tokens, cost: toBillionths(worst.cost ?? 0) };
    const waiting: Waiting = { accounts: this.#accounts, worst: units, answer };
    signal.addEventListener("abort", leave, { once: true });
    this.#line.push(waiting);
    this.#serve();
    return promise;
  }

  /**
   * Answers whoever can be answered, the first in line first. Nobody takes from an account that one before him waits
   * for; accounts lie inside each other, so that whoever waits for several gets them in the end.
   */
  #serve(): void {
    const short = new Set<Account>();
    for (const waiting of this.#line.splice(0)) {
      const { accounts, worst, answer } = waiting;
      const over = overBudget(accounts, worst);
      const lacking = accounts.filter((account) => short.has(account) || !isFree(account, worst));
      if (over !== undefined) answer(err(over));
      else if (lacking.length === 0) answer(ok(this.#hold(accounts, worst)));
      else {
        for (const account of lacking) short.add(account);
        this.#line.push(waiting);
      }
    }
  }

  #hold(accounts: readonly Account[], worst: Units): Reservation {
    let isOpen = true;
    for (const account of accounts) account.held = plus(account.held, worst);
    return {
      settle: (actual) => {
        if (!isOpen) throw new Error("a reservation is settled once");
        isOpen = false;
        const cost = actual.cost === null ? worst.cost : toBillionths(actual.cost);
        for (const account of accounts) {
          account.held = plus(account.held, worst, -1);
          account.spent = plus(account.spent, { tokens: actual.tokens, cost });
        }
        this.#serve();
      },
    };
  }
}

const billion = 1e9;
const nothing: Units = { tokens: 0, cost: 0 };

/** Rounded up, except for what only the binary fraction added. */
function toBillionths(dollars: number): number {
  // Never -0, which a message would show.
  return Math.max(0, Math.ceil(dollars * billion - 1e-3));
}

function plus(a: Units, b: Units, times = 1): Units {
  return { tokens: a.tokens + times * b.tokens, cost: a.cost + times * b.cost };
}

function isFree({ most, spent, held }: Account, worst: Units): boolean {
  return spent.tokens + held.tokens + worst.tokens <= most.tokens && spent.cost + held.cost + worst.cost <= most.cost;
}

/** The nearest limit that can never pay, whatever the calls in flight give back. */
function overBudget(accounts: readonly Account[], worst: Units): OverBudget | undefined {
  for (const { of, most, spent } of accounts) {
    for (const limit of ["cost", "tokens"] as const) {
      if (spent[limit] + worst[limit] <= most[limit]) continue;
      const size = limit === "cost" ? billion : 1;
      const over = { most: most[limit] / size, spent: spent[limit] / size, worst: worst[limit] / size };
      const say = (value: number): string => (value === Infinity ? "an unknown amount" : amount(limit, value));
      const message = `\`limits.${limit}\` of ${of}: ${say(over.most)}, spent ${say(over.spent)}, this call could take ${say(over.worst)} (a smaller \`max-output\` sets less aside)`;
      return { kind: "budget", message, limit, of, ...over };
    }
  }
  return undefined;
}

function unknownPrice({ of, most, spent }: Account): OverBudget {
  const message = `\`limits.cost\` of ${of}: the price of this model is unknown, so no call of it can be paid; give it as \`model: { id, price: { input, output } }\`, in US dollars for a million tokens`;
  return {
    kind: "budget",
    message,
    limit: "cost",
    of,
    most: most.cost / billion,
    spent: spent.cost / billion,
    worst: null,
  };
}

/** `$0.25`, `$0.0013`, `1,200 tokens`. */
export function amount(limit: "cost" | "tokens", value: number): string {
  if (limit === "tokens") return `${value.toLocaleString("en-US")} tokens`;
  return `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`;
}
