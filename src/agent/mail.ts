import type { Message } from "../model/message.ts";

/** What somebody has to say to an agent while it works: `from` is the agent run, or the team's message, that says it. */
export interface Letter {
  readonly from: string;
  readonly text: string;
}

/** Letters for an agent. It reads them at the border of a turn and nowhere else. */
export class Mail {
  #letters: Letter[] = [];
  readonly #owing = new Set<string>();
  #arrived: PromiseWithResolvers<void> | undefined;
  /** Whose letters the agent read here in the run that is replayed. */
  #due: readonly string[] = [];
  /** Called when the agent has come to wait. */
  onWait: (() => void) | undefined;

  /** `from` has yet to write: the agent does not end before. */
  expect(from: string): void {
    this.#owing.add(from);
  }

  expects(from: string): boolean {
    return this.#owing.has(from);
  }

  /** `from` will not write any more. */
  forgo(from: string): void {
    if (this.#owing.delete(from)) this.#ring();
  }

  put(letter: Letter): void {
    this.#letters.push(letter);
    this.#owing.delete(letter.from);
    this.#ring();
  }

  /** All that came, merged into one message; with `due` what these wrote, in their order, and the rest stays. */
  take(due?: readonly string[]): { readonly message: Message; readonly from: readonly string[] } | undefined {
    const letters = due ? due.flatMap((id) => this.#letters.filter(({ from }) => from === id)) : this.#letters;
    if (letters.length === 0) return undefined;
    this.#letters = this.#letters.filter((letter) => !letters.includes(letter));
    const text = letters.map((letter) => letter.text).join("\n\n");
    return {
      message: { role: "user", blocks: [{ type: "text", text }] },
      from: [...new Set(letters.map(({ from }) => from))],
    };
  }

  get hasLetters(): boolean {
    return this.#letters.length > 0;
  }

  /** Whether there is something to read, or somebody has yet to write. */
  get isOpen(): boolean {
    return this.hasLetters || this.#owing.size > 0;
  }

  /** Whether the agent has nothing to do but to wait. */
  get isWaiting(): boolean {
    return this.#arrived !== undefined;
  }

  /** Whether it waits for nothing else. */
  waitsOnlyFor(from: string): boolean {
    return this.isWaiting && this.#owing.size === 1 && this.#owing.has(from);
  }

  /**
   * Resolves when there is something to read, when nobody owes anything any more, and when `signal` is aborted. With
   * `due`, in a replay, only what these wrote counts, and all of it.
   */
  async arrival(signal: AbortSignal, due: readonly string[] = []): Promise<void> {
    this.#due = due;
    await this.#until(() => this.hasLetters && !this.lacks([]), signal);
    this.#due = [];
  }

  /** Resolves when all of these have written, when nobody owes anything any more, and when `signal` is aborted. */
  async settled(due: readonly string[], signal: AbortSignal): Promise<void> {
    this.#due = due;
    await this.#until(() => !this.lacks([]), signal);
    this.#due = [];
  }

  /** Whether something that the agent waits for is neither here nor among these. */
  lacks(more: readonly Letter[]): boolean {
    const here = new Set([...this.#letters, ...more].map(({ from }) => from));
    return this.#due.some((id) => !here.has(id));
  }

  async #until(isThere: () => boolean, signal: AbortSignal): Promise<void> {
    const ring = (): void => this.#ring();
    signal.addEventListener("abort", ring);
    while (!isThere() && this.#owing.size > 0 && !signal.aborted) {
      this.#arrived = Promise.withResolvers();
      const { promise } = this.#arrived;
      this.onWait?.();
      await promise;
    }
    signal.removeEventListener("abort", ring);
  }

  #ring(): void {
    const arrived = this.#arrived;
    this.#arrived = undefined;
    arrived?.resolve();
  }
}
