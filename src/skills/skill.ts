/** What an agent may be taught: a folder with a `SKILL.md`. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** Relative to the workspace, `/` as separator. */
  readonly folder: string;
  readonly body: string;
  /** The tools it was written for; absent where it does not say. */
  readonly allowedTools?: readonly string[];
  /** A model may not take it by itself: only an agent that lists it gets it. */
  readonly hidden: boolean;
}
