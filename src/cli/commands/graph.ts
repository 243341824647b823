import { type Command, Option } from "commander";
import type { Plan } from "../../model/plan.ts";
import { exitCodes } from "../../model/outcome.ts";
import { readStdin } from "../input.ts";
import { paletteOf, print, say } from "../output.ts";

type Format = "text" | "mermaid" | "dot" | "json";

export function defineGraph(program: Command): void {
  program
    .command("graph")
    .description("print the graph of a workflow")
    .argument("<file>", "the workflow; - for standard input")
    .addOption(
      new Option("--format <format>", "what to print").choices(["text", "mermaid", "dot", "json"]).default("text"),
    )
    .action(async (file: string, options: { readonly format: Format }, command: Command) => {
      const { check } = await import("../../flow.ts");
      const { plan, diagnostics, sources } = await check({ file, ...(await readStdin(file)) });
      if (diagnostics.length > 0) {
        const { renderDiagnostics } = await import("../../render/diagnostics.ts");
        say(renderDiagnostics(diagnostics, sources, { palette: await paletteOf(command, process.stderr) }));
      }
      if (plan) print(await drawGraph(plan, options.format));
      else process.exitCode = exitCodes.usage;
    });
}

async function drawGraph(plan: Plan, format: Format): Promise<string> {
  switch (format) {
    case "text":
      return (await import("../../render/graph/text.ts")).textGraph(plan);
    case "mermaid":
      return (await import("../../render/graph/mermaid.ts")).mermaidGraph(plan);
    case "dot":
      return (await import("../../render/graph/dot.ts")).dotGraph(plan);
    case "json":
      return (await import("../../render/graph/json.ts")).jsonGraph(plan);
  }
}
