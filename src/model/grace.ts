/**
 * How long those may take to end who were told to, in milliseconds. Each waits for the one before: a process has SIGTERM
 * and then SIGKILL, an agent gives up a deaf tool, a step its agent, and a run the worktrees of its steps, so that each
 * says how it ended before whoever is around it has given it up.
 */
export const graceOfProcess = 5000;
export const graceOfTool: number = graceOfProcess + 2000;
export const graceOfStep: number = graceOfTool + 1000;
export const graceOfWorktree: number = graceOfStep + 2000;
