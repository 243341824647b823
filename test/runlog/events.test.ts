import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { failureKinds } from "../../src/model/outcome.ts";
import { agentOutcomes } from "../../src/model/message.ts";
import { blobFields } from "../../src/runlog/fields.ts";
import { allSamples, samples } from "./events-of-every-type.ts";

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
const schema = JSON.parse(read("schemas/event.schema.json")) as {
  oneOf: { $ref: string }[];
  $defs: { [name: string]: JsonObject };
};
const validate = new Ajv2020({ strict: true, allErrors: true }).compile(schema);
const types = schema.oneOf.map(({ $ref }) => $ref.replace("#/$defs/", ""));
const stamp = { seq: 1, time: "2026-11-21T21:55:46.001Z" };
const guide = read("docs/events.md");

const problems = (line: unknown): unknown => (validate(line) ? [] : validate.errors);

describe("the schema of a log line", () => {
  it("knows exactly the types of the model", () => {
    expect([...types].sort()).toEqual(Object.keys(samples).sort());
    for (const type of types) {
      const { properties } = schema.$defs[type] ?? {};
      expect(isJsonObject(properties) && properties["type"]).toMatchObject({ const: type });
    }
  });

  it.each(allSamples.map((event) => [event.type, event] as const))("accepts %s", (_type, event) => {
    expect(problems({ ...stamp, ...event })).toEqual([]);
  });

  it.each(allSamples.map((event) => [event.type, event] as const))(
    "refuses more or less than %s has",
    (_type, event) => {
      expect(validate({ ...stamp, ...event, extra: 1 })).toBe(false);
      expect(validate(event)).toBe(false);
      const { type: _, ...untyped } = event;
      expect(validate({ ...stamp, ...untyped })).toBe(false);
    },
  );

  it("has every failure kind and agent outcome of the model", () => {
    expect(schema.$defs["failure"]).toMatchObject({ properties: { kind: { enum: [...failureKinds] } } });
    expect(schema.$defs["agent.finished"]).toMatchObject({ properties: { outcome: { enum: [...agentOutcomes] } } });
  });

  it("allows a blob exactly where the writer makes one", () => {
    for (const type of types) {
      const { properties } = schema.$defs[type] ?? {};
      for (const [field, value] of Object.entries(isJsonObject(properties) ? properties : {}))
        expect([type, field, JSON.stringify(value).includes("#/$defs/blob")]).toEqual([
          type,
          field,
          (blobFields as readonly string[]).includes(field),
        ]);
    }
  });

  it("describes every property", () => {
    const undescribed: string[] = [];
    const walk = (value: unknown, where: string): void => {
      if (Array.isArray(value)) value.forEach((item, index) => walk(item, `${where}/${index}`));
      if (!isJsonObject(value)) return;
      if (isJsonObject(value["properties"]))
        for (const [name, property] of Object.entries(value["properties"]))
          if (isJsonObject(property) && property["description"] === undefined && property["$ref"] === undefined)
            undescribed.push(`${where}/${name}`);
      for (const [key, inner] of Object.entries(value)) if (key !== "examples") walk(inner, `${where}/${key}`);
    };
    walk(schema, "");
    for (const [name, definition] of Object.entries(schema.$defs))
      if (definition["description"] === undefined) undescribed.push(name);
    expect(undescribed).toEqual([]);
  });
});

/** The names other programs use, as the project's requirements 13 to 16 list them, and the title of their table. */
const names: { readonly [title: string]: string } = {
  "Events of an agent's loop":
    "loop_start iteration_start text_delta thinking_delta tool_use_streaming_start tool_use_args_delta " +
    "tool_use_generated tool_call_start tool_call_approval_needed tool_call_result iteration_end message_end loop_end " +
    "context_compression_start context_compressed request_debug error",
  "Events of a turn": "turn_start stream_chunk stream_tool_call_start tool_call_end turn_end agent_complete",
  "Events of a sub-agent": "start iteration tool_call text_delta end",
  "Events of a team": "team_start member_add member_update member_remove task_add task_update message team_end",
};

function table(title: string): string[][] {
  const section = guide.split(/^#+ /m).find((part) => part.startsWith(`${title}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

describe("the guide to the log", () => {
  it.each(types)("has a section for %s", (type) => {
    expect(guide.split(`\n### \`${type}\`\n`)).toHaveLength(2);
  });

  it("shows an example of each type that the schema accepts", () => {
    const examples = [...guide.matchAll(/```json\n(.*)\n```/g)].map(
      ([, line = ""]) => JSON.parse(line) as { type: string },
    );
    expect(examples.map(({ type }) => type).sort()).toEqual([...types].sort());
    for (const example of examples) expect(problems(example)).toEqual([]);
  });

  it.each(Object.entries(names))("maps each of the %s once", (title, list) => {
    const rows = table(title);
    expect(rows.map(([there = ""]) => there).sort()).toEqual(list.split(" ").sort());
    expect(rows.filter(([, here = ""]) => !types.includes(here))).toEqual([]);
  });
});
