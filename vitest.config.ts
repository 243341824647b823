import { defineConfig } from "vitest/config";

/** They look into /proc and use setsid. */
const linuxOnly = [
  "test/cli/left-behind.test.ts",
  "test/process/run.test.ts",
  "test/process/tree.test.ts",
  "test/steps/run.test.ts",
];
const skipped = process.platform === "linux" ? [] : linuxOnly;
if (skipped.length > 0) process.stdout.write(`skipped, for they need Linux: ${skipped.join(", ")}\n`);

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "examples/**/*.test.ts"],
    exclude: skipped,
    globalSetup: ["test/cli/built.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A failure that is seen once in a while must say all it knows.
    chaiConfig: { truncateThreshold: 0 },
  },
});
