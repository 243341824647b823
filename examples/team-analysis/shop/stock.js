const left = new Map([["tea", 12], ["cup", 3], ["pot", 0]]);

/** Takes some out of the stock. */
export function take(name, count) {
  left.set(name, left.get(name) - count);
}
