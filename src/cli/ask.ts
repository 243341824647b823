import { createInterface, type Interface } from "node:readline";
import type { JsonObject } from "../model/json.ts";
import type { Asker, FormField, Question } from "../model/ports.ts";

/** A terminal in which somebody is asked. What is said while a question stands there is written above it. */
export interface Prompting extends Asker {
  say(text: string): void;
}

/** Whether there is somebody to ask: a terminal at both ends, and no wish or service that says otherwise. */
export function canAsk(flags: { readonly noInput?: boolean; readonly progress: string }): boolean {
  const { CI: ci = "" } = process.env;
  const isService = ci !== "" && ci !== "false" && ci !== "0";
  const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true;
  return isTerminal && !isService && flags.noInput !== true && flags.progress !== "json";
}

/** Asks in the terminal, one question after the other in the order they come. */
export function createPrompting(): Prompting {
  let before: Promise<unknown> = Promise.resolve();
  let line: Interface | undefined;
  let hasLeft = false;
  const one = async (question: Question, signal: AbortSignal): Promise<Awaited<ReturnType<Asker["ask"]>>> => {
    if (signal.aborted || hasLeft) return undefined;
    const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
    line = reader;
    // The terminal is in raw mode: the key is no signal unless we make it one.
    reader.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
    try {
      return await dialogue(question, lineReader(reader, signal), signal);
    } finally {
      line = undefined;
      reader.close();
      process.stdin.pause();
    }
  };
  return {
    ask: async (question, signal) => {
      const asked = before.then(() => one(question, signal));
      before = asked.catch(() => undefined);
      const answer = await asked;
      if (answer === undefined && !signal.aborted) hasLeft = true;
      return answer;
    },
    say: (text) => {
      if (line === undefined) process.stderr.write(text);
      else {
        process.stderr.write(`\r\u001B[J${text}`);
        line.prompt(true);
      }
    },
  };
}

async function dialogue(question: Question, read: Read, signal: AbortSignal): ReturnType<Asker["ask"]> {
  const { questionText } = await import("../render/approvals.ts");
  process.stderr.write(questionText(question));
  const form = await readForm(question, read);
  if (form === undefined) return leave(signal);
  const decision = await readDecision(read);
  if (decision === undefined) return leave(signal);
  const comment = await read("  comment (optional): ");
  if (comment === undefined) return leave(signal);
  return { decision, comment: comment.trim(), form: decision === "approved" ? form : {} };
}

/** Said when the end of the input came, and not when something else ended the question. */
function leave(signal: AbortSignal): undefined {
  process.stderr.write(signal.aborted ? "\n" : "\nflow: left open\n");
  return undefined;
}

/** Undefined at the end of the input, or when the signal comes. */
type Read = (prompt: string) => Promise<string | undefined>;

/** Lines may come faster than they are asked for: they are kept. */
function lineReader(reader: Interface, signal: AbortSignal): Read {
  const lines: string[] = [];
  let hasEnded = false;
  let take: (() => void) | undefined;
  reader.on("line", (text) => {
    lines.push(text);
    take?.();
  });
  const end = (): void => {
    hasEnded = true;
    take?.();
  };
  reader.once("close", end);
  signal.addEventListener("abort", end, { once: true });
  return async (prompt) => {
    reader.setPrompt(prompt);
    if (!hasEnded) reader.prompt();
    while (lines.length === 0 && !hasEnded && !signal.aborted) {
      await new Promise<void>((resolve) => (take = resolve));
    }
    return signal.aborted ? undefined : lines.shift();
  };
}

async function readForm(question: Question, read: Read): Promise<JsonObject | undefined> {
  for (;;) {
    const form: JsonObject = {};
    for (const field of question.fields) if (!(await readField(question, field, { read, form }))) return undefined;
    const problems = await question.check(form);
    if (problems.length === 0) return form;
    const { visible } = await import("../render/display.ts");
    process.stderr.write(problems.map((problem) => `  ! ${visible(problem)}\n`).join(""));
    if (question.fields.length === 0) return form;
  }
}

/** False at the end of the input. */
async function readField(
  question: Question,
  field: FormField,
  { read, form }: { readonly read: Read; readonly form: JsonObject },
): Promise<boolean> {
  const [{ fieldText }, { visible }] = await Promise.all([
    import("../render/approvals.ts"),
    import("../render/display.ts"),
  ]);
  process.stderr.write(`  ${fieldText(field)}\n`);
  for (;;) {
    const text = await read("  > ");
    if (text === undefined) return false;
    if (text === "" && (field.default !== undefined || !field.required)) {
      if (field.default !== undefined) form[field.name] = field.default;
      return true;
    }
    const value = await question.read(field, text);
    if (value.ok) {
      form[field.name] = value.value;
      return true;
    }
    process.stderr.write(`  ! ${visible(`${field.name} ${value.error}`)}\n`);
  }
}

async function readDecision(read: Read): Promise<"approved" | "denied" | undefined> {
  for (;;) {
    const text = await read("  approve? [y/N] ");
    if (text === undefined) return undefined;
    const word = text.trim().toLowerCase();
    if (word === "y" || word === "yes") return "approved";
    if (word === "" || word === "n" || word === "no") return "denied";
    process.stderr.write("  ! y for yes, n for no\n");
  }
}
