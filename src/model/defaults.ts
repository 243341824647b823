/** What holds where nobody says otherwise. */

/** Turns of an agent run. */
export const defaultTurns = 50;
/** Levels of sub-agents below the agent of a step. */
export const defaultDepth = 1;
/** Sub-agents of one agent run that work at once. */
export const defaultChildrenAtOnce = 2;
/** Steps that run at once. */
export const defaultStepsAtOnce = 8;
