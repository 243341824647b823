import type { Command } from "commander";
import type { Permit, Profile } from "../../flow.ts";
import { exitCodes } from "../../model/outcome.ts";
import { print, say } from "../output.ts";
import { sayDiagnostics } from "../watch.ts";
import { another, profileOption } from "../conditions.ts";

interface PermitFlags {
  readonly profile?: Profile;
  readonly allow?: readonly string[];
  readonly json: boolean;
}

export function definePermit(program: Command): void {
  program
    .command("permit")
    .description("say what the rules make of a tool call, and which rule decides; nothing runs")
    .argument("<agent>", "a workflow or agent file, or the name of an agent")
    .argument("<call>", "such as 'Bash(git push)' or 'Write(src/a.ts)'")
    .addOption(profileOption())
    .option("--allow <rule>", "as with run; repeat it for more", another)
    .option("--json", "print the verdicts as one JSON document", false)
    .action(permit);
}

async function permit(agent: string, call: string, flags: PermitFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const { profile, allow = [] } = flags;
  const result = await flow.permit({ agent, call, allow, ...(profile && { profile }) });
  if (result.kind === "usage") {
    say(`error: ${result.message}\n`);
    process.exitCode = exitCodes.usage;
    return;
  }
  if (result.kind === "invalid") {
    await sayDiagnostics(result.diagnostics, result.sources, command);
    process.exitCode = exitCodes.usage;
    return;
  }
  const { permits } = result;
  if (flags.json) print(`${JSON.stringify(permits, null, 2)}\n`);
  else print(permits.map(line).join(""));
  // Whoever works below is there to help: what it may not do, the agent of the step may do itself.
  const isAllowed = permits.every(({ below, decision }) => below !== undefined || decision === "allow");
  process.exitCode = isAllowed ? exitCodes.success : exitCodes.denied;
}

function line({ step, agent, below = [], decision, rule, toAllow }: Permit): string {
  const who = below.length === 0 ? `${step} (${agent})` : [step, ...below.slice(1), agent].join(">");
  const place = rule.file === undefined ? "" : ` ${rule.file}${rule.line === undefined ? "" : `:${rule.line}`}`;
  const more = decision === "allow" || toAllow.length === 0 ? "" : `\n      to allow it: ${toAllow.join(", ")}`;
  return `${decision.padEnd(5)} ${who}: ${rule.text} [${rule.layer}${place}]${more}\n`;
}
