const table = { tea: 4.2, cup: 9.5, pot: 24 };

/** What one of it costs, in euros. */
export function priceOf(name) {
  return table[name];
}
