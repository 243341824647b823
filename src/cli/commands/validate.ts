import { type Command, Option } from "commander";
import type { Diagnostic } from "../../model/diagnostic.ts";
import { exitCodes } from "../../model/outcome.ts";
import { readStdin } from "../input.ts";
import { paletteOf, print } from "../output.ts";

interface ValidateOptions {
  readonly format: "text" | "json";
  readonly fix: boolean;
}

export function defineValidate(program: Command): void {
  program
    .command("validate")
    .description("check workflows with everything they name, and run nothing")
    .argument("<files...>", "workflow files; - for standard input")
    .addOption(new Option("--format <format>", "how to print problems").choices(["text", "json"]).default("text"))
    .option("--fix", "rewrite what has one right rewriting (expressions in scripts)", false)
    .action(validate);
}

async function validate(files: readonly string[], options: ValidateOptions, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const palette = await paletteOf(command, process.stdout);
  const all: Diagnostic[] = [];
  for (const file of files) {
    const stdin = await readStdin(file);
    let compilation = await flow.validate({ file, ...stdin });
    if (options.fix && file !== "-") {
      const { applyFixes } = await import("../fix.ts");
      const fixed = applyFixes(compilation.diagnostics);
      if (fixed > 0) {
        if (options.format === "text") print(`${file}: ${fixed} ${fixed === 1 ? "problem" : "problems"} fixed\n`);
        compilation = await flow.validate({ file, ...stdin });
      }
    }
    const { diagnostics, sources, steps } = compilation;
    all.push(...diagnostics);
    if (options.format === "json") continue;
    if (diagnostics.length > 0) {
      const { renderDiagnostics } = await import("../../render/diagnostics.ts");
      print(renderDiagnostics(diagnostics, sources, { palette }));
    }
    if (steps !== undefined) {
      print(`${palette.green("valid")} ${file} (${steps} ${steps === 1 ? "step" : "steps"})\n`);
    }
  }
  if (options.format === "json") {
    const { diagnosticsJson } = await import("../../render/diagnostics.ts");
    print(`${JSON.stringify(diagnosticsJson(all), null, 2)}\n`);
  }
  if (all.some((diagnostic) => diagnostic.severity === "error")) process.exitCode = exitCodes.usage;
}
