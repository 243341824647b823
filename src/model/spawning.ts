/** Sub-agents of one workflow run, however deep. */
export const mostSpawned = 200;
