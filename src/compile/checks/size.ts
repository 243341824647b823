import { stepsOf } from "../linked.ts";
import type { Check } from "./check.ts";

const stepLimit = 100_000;

/** A workflow has at most 100,000 steps, groups included. */
export const checkSize: Check = ({ workflow, report }) => {
  let count = 0;
  for (const { step } of stepsOf(workflow.scope)) {
    if (++count > stepLimit) {
      report("FLOW2010", step.idAt, `a workflow has at most ${stepLimit} steps; this is one more`, {
        suggestion: "use `foreach`, or split it into sub-workflows",
      });
      return;
    }
  }
};
