/** Sub-agents of one workflow run, however deep. */
export const mostSpawned = 200;

/** The most levels of agents below the one of a step. */
export const deepestSpawned = 5;
