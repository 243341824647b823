import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { functionNames } from "../../src/expr/functions.ts";
import { defaultContexts } from "../../src/expr/parse.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { failureKinds } from "../../src/model/outcome.ts";
import { checkText, problemsOf } from "./checking.ts";

const root = new URL("../../", import.meta.url);
const guide = readFileSync(fileURLToPath(new URL("docs/language.md", root)), "utf8");
const prose = guide.replaceAll(/^```[\s\S]*?^```$/gm, "");
const words = new Set([...prose.matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) => code.split(/[\s,():]+/)));

function schemaOf(name: string): JsonObject {
  return JSON.parse(readFileSync(fileURLToPath(new URL(`schemas/${name}.schema.json`, root)), "utf8")) as JsonObject;
}

function keysAt(schema: JsonObject, ...path: readonly string[]): string[] {
  let at: JsonObject = schema;
  for (const key of [...path, "properties"]) at = at[key] as JsonObject;
  return Object.keys(at);
}

describe("docs/language.md", () => {
  const workflow = schemaOf("workflow");
  const steps = ["step", "anyStep", "agentStep", "runStep", "toolStep", "approveStep"];
  test.each([
    ["keys of a workflow", keysAt(workflow)],
    [
      "keys of a step",
      steps.flatMap((definition) => keysAt(workflow, "$defs", definition)).filter((key) => key !== "form"),
    ],
    ["keys of an agent", keysAt(schemaOf("agent"))],
    [
      "keys of `retry`, `repeat` and `defaults`",
      ["retry", "repeat", "defaults"].flatMap((key) => keysAt(workflow, "$defs", key)),
    ],
    ["functions", functionNames],
    ["contexts", defaultContexts],
    ["kinds of failure", failureKinds],
  ])("names all %s", (_, names) => {
    expect(
      names.filter(
        (name) =>
          !words.has(name) &&
          !guide.includes(`\`${name}(`) &&
          !guide.includes(` ${name}:`) &&
          !guide.includes(`{ ${name}:`),
      ),
    ).toEqual([]);
  });

  test("shows only workflows that are right", async () => {
    const blocks = [...guide.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)]
      .map(([, block = ""]) => block)
      .filter((block) => /^steps:/m.test(block));
    expect(blocks.length).toBeGreaterThan(1);
    for (const block of blocks) expect(problemsOf(await checkText(block))).toEqual([]);
  });
});
