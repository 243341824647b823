import { nearest } from "../../model/names.ts";
import { didYouMean } from "../report.ts";
import type { Check } from "./check.ts";

/** `expect` names steps and outputs that exist. */
export const checkExpectations: Check = ({ workflow, report }) => {
  const { expect, scope } = workflow.shape;
  const steps = scope.steps.map((step) => step.id);
  const outputs = scope.outputs.map((output) => output.name);
  for (const { text, at } of expect.steps) {
    if (!steps.includes(text) && !scope.unread.has(text.toLowerCase()))
      report("FLOW3004", at, `\`expect\` names \`${text}\`, and there is no such step`, () =>
        didYouMean(nearest(text, steps)),
      );
  }
  for (const { text, at } of expect.outputs) {
    if (!outputs.includes(text))
      report("FLOW3005", at, `\`expect\` names \`${text}\`, and the workflow has no such output`, () =>
        didYouMean(nearest(text, outputs)),
      );
  }
};
