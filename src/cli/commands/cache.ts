import { type Command, InvalidArgumentError, Option } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import { parseDuration } from "../../model/duration.ts";
import { print, say } from "../output.ts";
import { shortPath } from "../paths.ts";

interface PruneFlags {
  /** Milliseconds. */
  readonly olderThan: number;
  readonly all?: boolean;
  readonly json: boolean;
}

const month = 30 * 24 * 60 * 60 * 1000;

export function defineCache(program: Command): void {
  const cache = program.command("cache").description("outputs that steps with `cache` reuse, in .flow/cache");
  cache
    .command("prune")
    .description("remove outputs that were not used for a while, and what cannot be read")
    .addOption(
      new Option("--older-than <duration>", "not used for so long: 7d, 12h").argParser(parseAge).default(month, "30d"),
    )
    .addOption(new Option("--all", "everything").conflicts("olderThan"))
    .option("--json", "print what was removed as one JSON document", false)
    .exitOverride()
    .showHelpAfterError("(see `flow cache prune --help`)")
    .action(prune);
}

function parseAge(text: string): number {
  const age = parseDuration(text);
  if (age === undefined) throw new InvalidArgumentError("it is a duration such as 7d, 12h or 1h30m.");
  return age;
}

async function prune({ olderThan, all = false, json }: PruneFlags): Promise<void> {
  const { pruneCache } = await import("../../flow/cache.ts");
  const pruned = pruneCache(process.cwd(), all ? undefined : olderThan);
  if (!pruned.ok) {
    say(`flow: ${pruned.error}\n`);
    process.exitCode = exitCodes.unavailable;
    return;
  }
  const { folder, removed, kept } = pruned.value;
  const bytes = removed.reduce((sum, entry) => sum + entry.bytes, 0);
  if (json) print(`${JSON.stringify({ schemaVersion: 1, folder, removed, bytes, kept }, null, 2)}\n`);
  else
    print(
      `removed ${entries(removed.length, bytes)}, kept ${entries(kept.entries, kept.bytes)} in ${shortPath(folder)}\n`,
    );
}

function entries(count: number, bytes: number): string {
  return `${count === 1 ? "1 entry" : `${count} entries`} (${size(bytes)})`;
}

function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
