import type { Command } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import { readJsonFile } from "../input.ts";
import { print, say } from "../output.ts";

interface EvalOptions {
  readonly context?: string;
  readonly refs: boolean;
  readonly json: boolean;
}

export function defineEval(program: Command): void {
  program
    .command("eval")
    .description("evaluate one expression")
    .argument("<expression>", "without ${{ }} around it")
    .option("--context <file>", "a JSON object: context name to value")
    .option("--refs", "print what the expression refers to instead of its value", false)
    .option("--json", "print the value as JSON, a text in quotes too; an error as a document", false)
    .action(evaluateExpression);
}

async function evaluateExpression(expression: string, options: EvalOptions): Promise<void> {
  const { describeExpression, evaluate } = await import("../../flow.ts");
  const contexts = options.context === undefined ? {} : await readJsonFile(options.context, "--context");
  const result = options.refs ? describeExpression(expression, Object.keys(contexts)) : evaluate(expression, contexts);
  if (result.ok) {
    const plain = typeof result.value === "string" && !options.json;
    print(
      plain ? `${String(result.value)}\n` : `${JSON.stringify(result.value, null, options.refs ? 2 : undefined)}\n`,
    );
    return;
  }
  const { kind, message, offset, length, suggestion } = result.error;
  process.exitCode = kind === "evaluation" || kind === "missing" ? exitCodes.failure : exitCodes.usage;
  if (options.json) {
    print(
      `${JSON.stringify({ error: { kind, message, offset, length, ...(suggestion !== undefined && { suggestion }) } })}\n`,
    );
    return;
  }
  const oneLine = !expression.includes("\n");
  const { displayWidth, visible } = await import("../../render/display.ts");
  const caret = oneLine
    ? `\n  ${visible(expression)}\n  ${" ".repeat(displayWidth(visible(expression.slice(0, offset))))}${"^".repeat(Math.max(1, length))}`
    : "";
  say(`error: ${message}${caret}${suggestion === undefined ? "" : `\nhelp: ${suggestion}`}\n`);
}
