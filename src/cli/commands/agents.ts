import type { Command } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import { print, say } from "../output.ts";
import { sayDiagnostics } from "../watch.ts";

export function defineAgents(program: Command): void {
  const agents = program
    .command("agents")
    .description("list the agents of this project, or say what one of them comes to");
  agents
    .command("list", { isDefault: true })
    .description("list the agents that a workflow here can name")
    .option("--all", "hidden and disabled ones too", false)
    .option("--json", "print them as one JSON document", false)
    .action(list);
  agents
    .command("explain")
    .description("say what became of each field of an agent's file, what holds, and who says so")
    .argument("<name>", "the name of an agent, or its file")
    .option("--json", "print it as one JSON document", false)
    .action(explain);
  for (const command of agents.commands)
    command.exitOverride().showHelpAfterError(`(see \`flow agents ${command.name()} --help\`)`);
}

async function list({ all, json }: { readonly all: boolean; readonly json: boolean }): Promise<void> {
  const flow = await import("../../flow.ts");
  const { agents } = await flow.listAgents({});
  const shown = all ? agents : agents.filter(({ hidden, disabled }) => !hidden && !disabled);
  if (json) return print(`${JSON.stringify({ schemaVersion: 1, agents: shown }, null, 2)}\n`);
  if (shown.length === 0) return say("flow: no agents here; write one to `agents/NAME.md`\n");
  const { agentTable } = await import("../../render/agents.ts");
  return print(agentTable(shown));
}

async function explain(name: string, { json }: { readonly json: boolean }, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const found = await flow.explainAgent(name, {});
  if (found.kind === "usage") {
    say(`error: ${found.message}\n`);
    process.exitCode = exitCodes.usage;
    return;
  }
  if (found.kind === "invalid") {
    await sayDiagnostics(found.diagnostics, found.sources, command);
    process.exitCode = exitCodes.usage;
    return;
  }
  const { warnings, ...agent } = found.agent;
  if (json) return print(`${JSON.stringify({ schemaVersion: 1, ...agent, warnings }, null, 2)}\n`);
  const { explanation } = await import("../../render/agents.ts");
  print(explanation(agent));
  if (warnings.length > 0) await sayDiagnostics(warnings, found.sources, command);
}
