import type { AgentRunIds } from "../../model/ids.ts";
import { foldTeam, type TeamEvent, type TeamState } from "../../model/team.ts";

/** An event of a team, but for whose it is. */
export type TeamFact = TeamEvent extends infer E ? (E extends TeamEvent ? Omit<E, keyof AgentRunIds> : never) : never;

/** The state of a team, which nothing but its events changes: what is done is what is in the log. */
export class TeamRecord {
  readonly #ids: AgentRunIds;
  readonly #tell: (event: TeamEvent) => void;
  #last: TeamState | undefined;

  /** `ids` are the lead's; `tell` sends an event. */
  constructor(ids: AgentRunIds, tell: (event: TeamEvent) => void) {
    this.#ids = ids;
    this.#tell = tell;
  }

  /** Undefined when there is no team, or no more. */
  get state(): TeamState | undefined {
    return this.#last?.end === undefined ? this.#last : undefined;
  }

  /** The team there is or was. Throws before there was any. */
  get last(): TeamState {
    if (this.#last === undefined) throw new Error("there is no team");
    return this.#last;
  }

  get wakes(): number {
    return this.#last?.wakes ?? 0;
  }

  isApproved(member: string): boolean {
    return this.#last?.members.get(member)?.approved === true;
  }

  tell(fact: TeamFact): void {
    const event = { ...this.#ids, ...fact } as TeamEvent;
    this.#tell(event);
    this.#last = foldTeam(this.#last, event);
  }

  /** Takes over what events of before a resume had made of it. */
  restore(state: TeamState): void {
    this.#last = state;
  }
}
