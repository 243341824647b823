import type { Block } from "../model/message.ts";

/**
 * Ids of tool calls as a server takes them: of its characters and its length, and no two calls of a conversation alike.
 * What fits stays as it is, so that a server gets back what it gave.
 */
export class WireIds {
  readonly #longest: number;
  readonly #taken = new Set<string>();
  /** What the last call of an id became. */
  readonly #now = new Map<string, string>();

  constructor(longest: number) {
    this.#longest = longest;
  }

  call({ id }: Extract<Block, { type: "call" }>): string {
    const plain = id.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, this.#longest) || "call";
    let free = plain;
    for (let count = 2; this.#taken.has(free); count++) {
      const suffix = `_${count}`;
      free = `${plain.slice(0, this.#longest - suffix.length)}${suffix}`;
    }
    this.#taken.add(free);
    this.#now.set(id, free);
    return free;
  }

  result({ id }: Extract<Block, { type: "result" }>): string {
    return this.#now.get(id) ?? id;
  }
}
