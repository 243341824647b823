import { compileSchema } from "../jsonschema/compile.ts";
import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { parseArguments } from "./arguments.ts";
import { listErrors } from "./tool-call.ts";

/** The name of the tool by which an agent with an `output` schema answers. */
export const finishName: string = "finish";
/** Answers that do not fit the schema and may be tried again; the next one ends the run. */
export const allowedRepairs: number = 2;

/** Structured output of one agent run. */
export interface StructuredOutput {
  /** Its parameters are the schema. It is an ordinary tool: what does not fit comes back as an error result. */
  readonly finish: Tool;
  /** The arguments of the first `finish` call that fitted. */
  accepted(): JsonObject | undefined;
  /** The accepted answer does not count: the next that fits is taken. */
  retract(): void;
  /** The answer in prose: a fenced or bare JSON object that fits the schema. The error says why there is none. */
  read(text: string): Result<JsonObject, string>;
}

/** The error says what is wrong with the schema itself. */
export async function structuredOutput(schema: JsonObject): Promise<Result<StructuredOutput, string>> {
  const compiled = await compileSchema(schema);
  if (!compiled.ok) return err(`the \`output\` schema cannot be used:\n${listErrors(compiled.error)}`);
  const validate = compiled.value;
  let accepted: JsonObject | undefined;

  const finish: Tool = {
    name: finishName,
    description: "Gives your final answer and ends your work. Call it once, when you are done.",
    parameters: schema,
    readOnly: false,
    unjudged: true,
    run(args) {
      if (accepted !== undefined) return Promise.resolve(err("the answer was already given; this one is not used"));
      accepted = args;
      return Promise.resolve(ok({ blocks: [{ type: "text", text: "The answer is accepted." }] }));
    },
  };

  const read = (text: string): Result<JsonObject, string> => {
    let reason = `the answer is neither a call of \`${finishName}\` nor a JSON object`;
    for (const candidate of objectsIn(text)) {
      const value = parseArguments(candidate);
      if (!value.ok) continue;
      const errors = validate(value.value);
      if (errors.length === 0) return value;
      reason = `the JSON object in the answer does not fit the \`output\` schema:\n${listErrors(errors)}`;
    }
    return err(reason);
  };

  return ok({ finish, accepted: () => accepted, retract: () => (accepted = undefined), read });
}

/** Where a JSON object may stand in prose, likeliest first: fenced blocks from the last one, then the text itself. */
function objectsIn(text: string): string[] {
  const parts = text.split("```");
  const fenced = parts.filter((_, index) => index % 2 === 1).map((part) => fromFirstBrace(part));
  return [...fenced.reverse(), fromFirstBrace(text)].filter((part) => part !== "");
}

function fromFirstBrace(text: string): string {
  const start = text.indexOf("{");
  return start === -1 ? "" : text.slice(start, text.lastIndexOf("}") + 1);
}
