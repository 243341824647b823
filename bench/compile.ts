/**
 * Compiling against a bare `parseDocument` of the same text with positions, in this process and in turn. Prints medians.
 * `node bench/compile.ts [ROUNDS]`
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LineCounter, parseDocument } from "yaml";
import { check } from "../src/flow.ts";

const rounds = Number(process.argv[2] ?? 9);
const folder = mkdtempSync(join(tmpdir(), "flow-bench-"));
mkdirSync(join(folder, ".git"));
console.log(`Node ${process.version}, ${rounds} rounds, median ms of wall time`);
for (const [count, target] of [
  [10, undefined],
  [1_000, 1.3],
  [10_000, undefined],
] as const) {
  const text = workflow(count);
  const file = join(folder, `${count}.yaml`);
  writeFileSync(file, text);
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < (count > 1_000 ? 3 : rounds) + 1; round++) {
    const start = performance.now();
    parseDocument(text, { lineCounter: new LineCounter() });
    const middle = performance.now();
    const { plan } = await check({ file, cwd: folder });
    const end = performance.now();
    if (!plan) throw new Error("the workflow does not compile");
    if (round === 0) continue;
    bare.push(middle - start);
    ours.push(end - middle);
  }
  const ratio = median(ours) / median(bare);
  const verdict = target === undefined ? "" : `  target ${target}  ${ratio <= target ? "met" : "MISSED"}`;
  console.log(
    `${String(count).padStart(6)} steps (${Math.round(text.length / 1024)} KiB)  parseDocument ${median(bare).toFixed(1)}  compile ${median(ours).toFixed(1)}  x${ratio.toFixed(2)}${verdict}`,
  );
}
rmSync(folder, { recursive: true });

/** About 260 bytes a step: a script, an environment with a reference to the step before, a condition every tenth step. */
function workflow(count: number): string {
  const steps = Array.from({ length: count }, (_, index) => {
    const before = index === 0 ? "" : `      BEFORE: "\${{ steps.step_${index - 1}.outputs.stdout }}"\n`;
    const condition = index % 10 === 9 ? "    if: inputs.deep && run.id != ''\n" : "";
    return `  step_${index}:
    name: Step number ${index} of this workflow
    description: It prints what the step before it has printed, and its own number
${condition}    run: |
      echo "before: $BEFORE"
      echo "number: $NUMBER"
    env:
${before}      NUMBER: "${index}"
    timeout: 10m
`;
  });
  return `name: many\ninputs: { deep: { type: boolean, default: true } }\nsteps:\n${steps.join("")}`;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
