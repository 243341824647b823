import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { check, type Conditions, resume, run } from "../../src/flow.ts";
import type { LogLine } from "../../src/model/event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { StepKind } from "../../src/model/plan.ts";
import { git, Place } from "./flow.ts";
import { asker, bodies, files, head, kinds } from "./key-by-kind/kinds.ts";
import { type Shown, table } from "./key-by-kind/table.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "flow-keys-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const cells = Object.entries(table).flatMap(([key, row]) => kinds.map((kind) => ({ key, kind, cell: row[kind] })));

function schema(name: string): JsonObject {
  return JSON.parse(readFileSync(new URL(`../../schemas/${name}.schema.json`, import.meta.url), "utf8")) as JsonObject;
}

describe("the table", () => {
  test("has a row for every key of a step in the schema, and for every limit", () => {
    const definitions = schema("workflow")["$defs"] as { [name: string]: { properties?: JsonObject } };
    const steps = ["any", "agent", "run", "tool", "workflow", "group", "approve", "set"];
    const keys = steps.flatMap((name) => Object.keys(definitions[`${name}Step`]?.properties ?? {}));
    const limits = (schema("agent")["$defs"] as { limits: { properties: JsonObject } }).limits.properties;
    const expected = keys.filter((key) => key !== "limits" && !kinds.some((kind) => kind === key));
    expected.push(...Object.keys(limits).map((limit) => `limits.${limit}`));
    expect(Object.keys(table).toSorted()).toEqual([...new Set(expected)].toSorted());
  });

  test("has a cell for every kind, each with a difference or a reason", () => {
    for (const { key, kind, cell } of cells) {
      expect(cell, `${key} on ${kind}`).toBeDefined();
      if ("shown" in cell) expect(cell.shown.with, `${key} on ${kind}`).not.toEqual(cell.shown.without);
    }
  });
});

const shown = cells.flatMap((it) => ("shown" in it.cell ? [{ ...it, shown: it.cell.shown }] : []));

describe.concurrent("a key changes what a step does:", () => {
  test.each(shown)("$key on $kind", async ({ kind, shown: cell }) => {
    const body = cell.body ?? bodies[kind][cell.does] ?? "";
    expect(await seen(cell, `${body}, ${cell.key}`)).toEqual(cell.with);
    expect(await seen(cell, body)).toEqual(cell.without);
  });
});

async function seen({ also, around, repository, see, of }: Shown, body: string): Promise<unknown> {
  const folder = workspace({ "main.yaml": workflow([body, also], around) });
  if (repository)
    for (const line of ["init --quiet", "add --all", "commit --quiet --message x"]) git(folder, ...line.split(" "));
  const first = await events(folder, (watched) => run({ ...watched, file: "main.yaml", cwd: folder }));
  if (of === undefined) return see(first);
  if (of === "again")
    return see(await events(folder, (watched) => run({ ...watched, file: "main.yaml", cwd: folder })));
  cutOff(folder);
  return see(await events(folder, (watched) => resume({ ...watched, run: "latest", cwd: folder })));
}

/** What a kill leaves: the log ends behind the line in which the attempt began. */
function cutOff(folder: string): void {
  const runs = join(folder, ".flow/runs");
  const log = join(runs, readdirSync(runs)[0] ?? "", "log.jsonl");
  const lines = readFileSync(log, "utf8").split("\n");
  const attempt = lines.findIndex((line) => line.includes('"step.attempt.started"'));
  writeFileSync(log, `${lines.slice(0, attempt + 1).join("\n")}\n`);
}

async function events(folder: string, start: (watched: Conditions) => ReturnType<typeof resume>): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const result = await start({ asker, by: "me", onEvent: (line) => lines.push(line) });
  if ("finished" in result || !result.started) throw new Error(`${folder}: ${JSON.stringify(result).slice(0, 1000)}`);
  return lines;
}

describe.concurrent("a key that means nothing on a kind is refused with the reason:", () => {
  const refused = cells.flatMap(({ key, kind, cell }) => ("refused" in cell ? [{ key, kind, cell }] : []));
  test.each(refused)("$key on $kind", async ({ kind, cell }) => {
    const found = (await diagnostics(kind, cell)).filter(({ severity }) => severity === "error");
    expect(found.map(({ code }) => code)).toEqual([cell.refused]);
    expect(found[0]?.message).toContain(cell.reason);
  });
});

async function diagnostics(kind: StepKind, cell: { readonly key: string }) {
  const folder = workspace({ "main.yaml": workflow([bodies[kind].succeeds, cell.key]) });
  return (await check({ file: "main.yaml", cwd: folder })).diagnostics;
}

describe("by the installed command as well:", () => {
  const rows = ["if", "continue-on-error"];
  const sample = shown.filter(({ key, kind }) => rows.includes(key) && kind !== "approve");
  test.concurrent.each(sample)("$key on $kind", async ({ kind, shown: cell }) => {
    const body = cell.body ?? bodies[kind][cell.does] ?? "";
    const place = new Place({ ...files, "main.yaml": workflow([body, cell.key], cell.around) });
    try {
      await place.flow(["run", "main.yaml"]);
      expect(cell.see(place.events())).toEqual(cell.with);
    } finally {
      place.remove();
    }
  });
});

function workflow(body: readonly (string | undefined)[], around: readonly string[] = []): string {
  const step = body.filter((part) => part !== undefined).join(", ");
  return `${head}steps:\n  a: { ${step} }\n${around.map((other) => `  ${other}\n`).join("")}`;
}

function workspace(more: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(root, "w-"));
  mkdirSync(join(folder, ".git"));
  for (const [name, text] of Object.entries({ ...files, ...more })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}
