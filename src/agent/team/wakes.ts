import type { Clock } from "../../model/ports.ts";
import type { Letter, Mail } from "../mail.ts";

/** How often a lead that has answered is given what came in meanwhile; after that its team ends. */
export const mostWakes = 10;
/** Milliseconds in which letters are gathered before they wake the lead, while others are still at work. */
const gathering = 800;

export interface WakesSource {
  readonly mail: Mail;
  readonly clock: Clock;
  /** How often the lead has been woken. */
  readonly count: () => number;
  /** Called when the lead, which waits, is about to be given something. */
  readonly onWake: () => void;
}

/** What a lead is told by its team: at once while it works, and gathered when it has answered and waits. */
export class Wakes {
  readonly #source: WakesSource;
  #held: Letter[] = [];
  #stopTimer: (() => void) | undefined;

  constructor(source: WakesSource) {
    this.#source = source;
  }

  get isEmpty(): boolean {
    return this.#held.length === 0;
  }

  add(letter: Letter): void {
    const { mail } = this.#source;
    if (mail.isWaiting) this.#held.push(letter);
    else mail.put(letter);
  }

  /** Others are at work: more will come. The last time the lead is woken is kept for the end. */
  gather(): void {
    const { clock, count, mail } = this.#source;
    if (this.isEmpty || this.#stopTimer !== undefined || count() >= mostWakes - 1) return;
    this.#stopTimer = clock.after(gathering, () => {
      this.#stopTimer = undefined;
      // In a replay the lead was given more at once: the rest is on its way.
      if (!mail.lacks(this.#held)) this.flush();
    });
  }

  /** Gives the lead what there is, now. */
  flush(): void {
    const { mail, onWake } = this.#source;
    const letters = this.#held;
    this.#held = [];
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (mail.isWaiting && letters.length > 0) onWake();
    for (const letter of letters) mail.put(letter);
  }
}
