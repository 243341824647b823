import { err, ok, type Result } from "../model/result.ts";
import type { Profile } from "../permissions/index.ts";
import type { Config } from "./config.ts";
import { type ConfigPlace, configSources } from "./config-files.ts";
import { managedIn } from "./managed.ts";
import type { RightsWishes } from "./rights.ts";

/** What the command line says, with what the configuration and the machine say. The error tells which of them is broken. */
export async function wishesOf(
  { profile, allow = [] }: { readonly profile?: Profile | undefined; readonly allow?: readonly string[] | undefined },
  place: ConfigPlace,
): Promise<Result<RightsWishes, string>> {
  const managed = await managedIn(place);
  if (!managed.ok) return managed;
  const read = await configIn(place);
  if (!read.ok) return read;
  const config = read.value;
  const chosen = profile ?? config?.profile?.value;
  return ok({
    allow,
    ...(managed.value && { managed: managed.value }),
    ...(config && { config }),
    ...(chosen && { profile: chosen }),
  });
}

/** The configuration of a place that has one. The error is its first problem, with its place. */
export async function configIn(place: ConfigPlace): Promise<Result<Config | undefined, string>> {
  if (configSources(place).length === 0) return ok(undefined);
  const { readConfig } = await import("./config.ts");
  const config = await readConfig(place);
  if (config.ok) return config;
  const [first] = config.error.diagnostics;
  return err(
    first
      ? `${first.at.file}:${first.at.line}:${first.at.column} ${first.message}`
      : "the configuration cannot be read",
  );
}
