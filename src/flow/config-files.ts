import { existsSync } from "node:fs";
import { homedir } from "node:os";
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
  /** Absolute; absent for a text. */
  readonly file?: string;
  readonly text?: string;
}

export const configName = "flow.config.yaml";

/** Every configuration there is, the weakest first: a run without one loads nothing to read it. */
export function configSources({ cwd, workspace, env }: ConfigPlace): readonly ConfigSource[] {
  const named = env["FLOW_CONFIG"] ?? "";
  const text = env["FLOW_CONFIG_CONTENT"] ?? "";
  const found = (layer: ConfigLayer, file: string): ConfigSource[] =>
    existsSync(file) ? [{ layer, file, shown: shownFrom(cwd, file) }] : [];
  return [
    ...found("user", path.join(userFolder(env), configName)),
    ...found("project", path.join(workspace, configName)),
    ...(named === "" ? [] : [{ layer: "config" as const, file: path.resolve(cwd, named), shown: named }]),
    ...(text === "" ? [] : [{ layer: "config" as const, shown: "FLOW_CONFIG_CONTENT", text }]),
  ];
}

/** Where flow keeps what belongs to the user and to no project. */
export function userFolder(env: ConfigPlace["env"]): string {
  const written = env["XDG_CONFIG_HOME"] ?? "";
  const home = path.isAbsolute(written) ? written : path.join(env["HOME"] ?? homedir(), ".config");
  return path.join(home, "flow");
}

function shownFrom(cwd: string, file: string): string {
  const short = path.relative(cwd, file);
  return short === "" || short.startsWith("..") ? file : short;
}
