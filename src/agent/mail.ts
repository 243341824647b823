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
  /** `border`: it has answered and waits; `replay`: it would go on, and what it read then is not here yet. */
  #waiting: (PromiseWithResolvers<void> & { readonly at: "border" | "replay" }) | undefined;
  /** Whose letters the agent read here in the run that is replayed. */
  #due: readonly string[] = [];
  /** Called when the agent has come to wait. */
  onWait: (() => void) | undefined;
  /** The same in a replay, for what it read then. Set where others write who owe nothing: `letGo` ends the wait. */
  onHeldUp: (() => void) | undefined;

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

  /** Whether what `from` wrote is here, unread. */
  has(from: string): boolean {
    return this.#letters.some((letter) => letter.from === from);
  }

  /** Whether somebody has yet to write. */
  get isOwed(): boolean {
    return this.#owing.size > 0;
  }

  /** Whether there is something to read, or somebody has yet to write. */
  get isOpen(): boolean {
    return this.hasLetters || this.isOwed;
  }

  /** Whether the agent has nothing to do but to wait. */
  get isWaiting(): boolean {
    return this.#waiting?.at === "border";
  }

  /** Whether it waits for nothing else. */
  waitsOnlyFor(from: string): boolean {
    return this.isWaiting && this.#owing.size === 1 && this.#owing.has(from);
  }

  /** Whether it waits, in a replay, for what nobody owes, but perhaps `from`. */
  isHeldUp(from: string): boolean {
    return this.#waiting?.at === "replay" && [...this.#owing].every((id) => id === from);
  }

  /** What was read then does not come: the agent goes on without it. */
  letGo(): void {
    this.#due = [];
    this.#ring();
  }

  /**
   * Resolves when there is something to read, when nobody owes anything any more, and when `signal` is aborted. With
   * `due`, in a replay, only what these wrote counts, and all of it.
   */
  async arrival(signal: AbortSignal, due: readonly string[] = []): Promise<void> {
    this.#due = due;
    await this.#until("border", () => this.hasLetters && !this.lacks([]), signal);
    this.#due = [];
  }

  /** Resolves when all of these have written, when nobody owes anything any more, and when `signal` is aborted. */
  async settled(due: readonly string[], signal: AbortSignal): Promise<void> {
    this.#due = due;
    await this.#until("replay", () => !this.lacks([]), signal);
    this.#due = [];
  }

  /** Whether something that the agent waits for is neither here nor among these. */
  lacks(more: readonly Letter[]): boolean {
    const here = new Set([...this.#letters, ...more].map(({ from }) => from));
    return this.#due.some((id) => !here.has(id));
  }

  async #until(at: "border" | "replay", isThere: () => boolean, signal: AbortSignal): Promise<void> {
    const ring = (): void => this.#ring();
    const told = at === "border" ? this.onWait : this.onHeldUp;
    const isOpenEnded = at === "replay" && told !== undefined;
    signal.addEventListener("abort", ring);
    while (!isThere() && (isOpenEnded || this.#owing.size > 0) && !signal.aborted) {
      this.#waiting = { ...Promise.withResolvers<void>(), at };
      const { promise } = this.#waiting;
      told?.();
      await promise;
    }
    signal.removeEventListener("abort", ring);
  }

  #ring(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve();
  }
}
