import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { check } from "../src/flow.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

test.each(readdirSync(`${root}/workflows`).filter((name) => name.endsWith(".yaml")))(
  "workflows/%s, which this repository runs on itself, is valid",
  async (name) => {
    const { diagnostics, steps } = await check({ file: `workflows/${name}`, cwd: root });
    expect(diagnostics).toEqual([]);
    expect(steps).toBeGreaterThan(1);
  },
);
