import type { Command } from "commander";
import { exitCodes } from "../model/outcome.ts";

/** Refuses a second value for an option that takes one: the first would be dropped in silence. */
export function takesOnce(command: Command, repeatable: readonly unknown[]): void {
  for (const option of command.options) {
    if (!option.required || repeatable.includes(option.parseArg)) continue;
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven)
        command.error(`error: option '${option.flags}' is given twice; it takes one value`, {
          exitCode: exitCodes.usage,
        });
      isGiven = true;
    });
  }
}
