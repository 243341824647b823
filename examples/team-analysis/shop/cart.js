import { priceOf } from "./prices.js";
import { take } from "./stock.js";

/** What all of it costs, in cents; it is reserved by then. */
export function checkout(items) {
  for (const { name, count } of items) take(name, count);
  return items.reduce((cents, { name, count }) => cents + priceOf(name) * count, 0);
}
