import type { Command } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import { print } from "../output.ts";
import { sayDiagnostics } from "../watch.ts";

interface DoctorFlags {
  readonly json: boolean;
}

export function defineDoctor(program: Command): void {
  program
    .command("doctor")
    .description("look at what runs need here: Node, configuration, keys, providers, git")
    .option("--json", "as JSON", false)
    .action(doctor);
}

/** Exit code 2 for a configuration that cannot be read, 3 for a Node or a configured provider that cannot be used. */
async function doctor(flags: DoctorFlags, command: Command): Promise<void> {
  const { examine } = await import("../../flow/doctor.ts");
  const { sources, ...health } = await examine({ cwd: process.cwd(), env: process.env });
  const { config, node, providers, servers } = health;
  const isBroken =
    !node.ok ||
    servers.some(({ problem }) => problem !== undefined) ||
    providers.some(({ reachable, keyIs, configured }) => reachable === "no" || (configured && keyIs === "missing"));
  if (config.problems.length > 0) process.exitCode = exitCodes.usage;
  else if (isBroken) process.exitCode = exitCodes.unavailable;
  if (flags.json) return print(`${JSON.stringify({ schemaVersion: 1, ...health }, null, 2)}\n`);
  await sayDiagnostics(config.problems, sources, command);
  const { renderDoctor } = await import("../../render/doctor.ts");
  print(renderDoctor(health));
}
