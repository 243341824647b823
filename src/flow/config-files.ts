import { existsSync } from "node:fs";
import path from "node:path";

export interface ConfigPlace {
  readonly cwd: string;
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
}

export type ConfigLayer = "user" | "project" | "config";

/** One configuration: a file, or the text that stands in a variable. */
export interface ConfigSource {
  readonly layer: ConfigLayer;
  /** As somebody would name it. */
  readonly shown: string;
  /** The same on every machine. */
  readonly name: string;
  /** Absolute; absent for a text. */
  readonly file?: string;
  readonly text?: string;
}

export const configName = "flow.config.yaml";

/** Every configuration there is, the weakest first: a run without one loads nothing to read it. */
export function configSources({ cwd, workspace, env }: ConfigPlace): readonly ConfigSource[] {
  const named = env["FLOW_CONFIG"] ?? "";
  const text = env["FLOW_CONFIG_CONTENT"] ?? "";
  const home = userFolder(env);
  const user = home === undefined ? undefined : path.join(home, configName);
  const project = path.join(workspace, configName);
  const found = (source: Omit<ConfigSource, "shown"> & { readonly file: string }): ConfigSource[] =>
    existsSync(source.file) ? [{ ...source, shown: shownFrom(cwd, source.file) }] : [];
  return [
    ...(user === undefined ? [] : found({ layer: "user", file: user, name: `~/.config/flow/${configName}` })),
    ...found({ layer: "project", file: project, name: configName }),
    ...(named === "" ? [] : [{ ...inForce, name: "FLOW_CONFIG", file: path.resolve(cwd, named), shown: named }]),
    ...(text === "" ? [] : [{ ...inForce, name: "FLOW_CONFIG_CONTENT", shown: "FLOW_CONFIG_CONTENT", text }]),
  ];
}

const inForce = { layer: "config" } as const;

/** Where flow keeps what belongs to the user and to no project; undefined for somebody without a home. */
export function userFolder(env: ConfigPlace["env"]): string | undefined {
  const folder = configFolder(env);
  return folder === undefined ? undefined : path.join(folder, "flow");
}

/** Where programs keep what a user has configured. */
function configFolder(env: ConfigPlace["env"]): string | undefined {
  const written = env["XDG_CONFIG_HOME"] ?? "";
  const home = homeOf(env);
  if (path.isAbsolute(written)) return written;
  return home === undefined ? undefined : path.join(home, ".config");
}

/** A relative home would be a place in whatever folder flow is started in, which belongs to the project. */
export function homeOf(env: ConfigPlace["env"]): string | undefined {
  const home = env["HOME"] ?? "";
  return path.isAbsolute(home) ? home : undefined;
}

function shownFrom(cwd: string, file: string): string {
  const short = path.relative(cwd, file);
  return short === "" || short.startsWith("..") ? file : short;
}
