import type { Todo } from "./history.ts";

/**
 * Everything the loop itself says to a model, in one place. A hint stands beside the results of calls or instead of
 * them; none of it is an instruction of the user's, and the model can tell by the brackets.
 */
export const hints = {
  lastTurn: "You have no turns left. Answer now, in text; tools are no longer available.",
  repeated: (name: string): string =>
    `[You have made this call of ${name} before, with the same arguments and the same result. Making it again will not change the result: use what you know, or do something else.]`,
  refused: (name: string): string =>
    `[Not run: this call of ${name} gave the same result every time you made it. Do something else, or answer with what you have. If you make it again, your work ends here.]`,
  stuck: (name: string): string =>
    `the agent kept making the same call of ${name} with the same result, after it had been told that nothing would change`,
  reads: (count: number): string =>
    `[You have read ${count} times in a row and changed nothing. If you know enough, act now; if not, say what is still missing.]`,
  errors: (name: string, history: readonly string[]): string =>
    `[${name} has failed with the same error ${history.length} times:\n${history.map((line) => `- ${line}`).join("\n")}\nWhat you assume is probably wrong. Look at the cause before you try again, or take another way.]`,
  findings: "[Record what you have found so far: one line each that begins with `Finding: `. These lines are kept.]",
  openTodos: (todos: readonly Todo[]): string =>
    `[You have not finished: your list still has open items.\n${todoLines(todos)}\nFinish them, or write with TodoWrite what became of each. Then answer again.]`,
  complexity: {
    simple: "[This looks simple: do it directly.]",
    moderate:
      "[This looks like a change with several parts: look at what is there first, then change it, then verify it.]",
    complex:
      "[This looks complex: make a plan of small steps first, keep it up to date (with TodoWrite, if you have it), and verify each step.]",
  },
  repair: (reason: string, finish: string): string =>
    `[Your answer was not accepted: ${reason}\nGive the whole answer again by calling \`${finish}\`.]`,
  repairJson: (reason: string): string =>
    `[Your answer was not accepted: ${reason}\nGive the whole answer again, as one JSON object and nothing else.]`,
  failedCheck: (script: string, output: string): string =>
    `[You said that you are done, but the check of your work failed.]\n$ ${script}\n${output}\n[Mend what it complains about, then answer again.]`,
  stopRefused: (reason: string): string => `[You said that you are done, but a hook does not let you stop.]\n${reason}`,
  pins: "[What you wrote down, word for word]",
  olderFindings: (count: number): string => `[${count} older findings were left out]`,
  leftOut: (characters: number): string =>
    `[${characters} characters were left out here to save space; make the call again if you need them]`,
  orphanCall: (name: string, raw: string): string => `[called ${name} with ${raw}; the result is no longer here]`,
  orphanResult: (text: string): string => `[the result of a call that is no longer here]\n${text}`,
} as const;

export function todoLines(todos: readonly Todo[]): string {
  return todos.map(({ content, status }) => `- [${status}] ${content}`).join("\n");
}
