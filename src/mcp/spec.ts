import path from "node:path";
import { parseDuration } from "../model/duration.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { type Address, defaultCallTime, type ServerSpec } from "./server.ts";

/** The definition of a server, its expressions resolved, and what is around it. */
export interface SpecSource {
  readonly name: string;
  readonly definition: Json;
  /** The environment that `${VAR}` stands for; absent where it stands for itself. */
  readonly variables?: Environment;
  /** Where a relative `cwd` starts from, and what it is when absent. */
  readonly cwd: string;
  /** What every process of the run inherits. */
  readonly inherited: Readonly<Record<string, string>>;
  /** The environment around the step, which the definition outweighs. */
  readonly around: JsonObject;
  /** What the step itself says, which outweighs the definition. */
  readonly step: JsonObject;
}

type Environment = { readonly [name: string]: string | undefined };

/** Bytes of one argument or variable; Linux takes no more. */
const longestValue = 128 * 1024;

/** The server as it is started. The error says what in its definition has no value. */
export function specOf(source: SpecSource): Result<ServerSpec, string> {
  const { name } = source;
  const definition =
    source.variables === undefined ? ok(source.definition) : expanded(source.definition, source.variables);
  if (!definition.ok) return definition;
  const { value } = definition;
  if (!isJsonObject(value)) return err("its definition is no map");
  const address = own(value, "command") === undefined ? urlAddress(value) : commandAddress(value, source);
  if (!address.ok) return address;
  const timeout = own(value, "timeout");
  const callTime = (typeof timeout === "string" ? parseDuration(timeout) : undefined) ?? defaultCallTime;
  return ok({ name, address: address.value, callTime });
}

export function isRequired(definition: Json): boolean {
  return !isJsonObject(definition) || own(definition, "required") !== false;
}

function commandAddress(definition: JsonObject, { cwd, inherited, around, step }: SpecSource): Result<Address, string> {
  const list = own(definition, "args");
  const argv = [own(definition, "command") ?? "", ...(Array.isArray(list) ? list : [])].map(textOf);
  const given = own(definition, "env");
  const own_ = isJsonObject(given) ? given : {};
  const env = { ...inherited };
  for (const [name, value] of Object.entries({ ...around, ...own_, ...step })) env[name] = textOf(value);
  const folder = own(definition, "cwd");
  const where = typeof folder === "string" ? path.resolve(cwd, folder) : cwd;
  const long = [...argv, ...Object.values(env)].find(
    (text) => Buffer.byteLength(text) > longestValue || text.includes("\0"),
  );
  if (long !== undefined) return err("an argument or variable of it is over 128 KiB, or holds a NUL character");
  return ok({ kind: "stdio", argv, cwd: where, env });
}

function urlAddress(definition: JsonObject): Result<Address, string> {
  const url = textOf(own(definition, "url") ?? "");
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return err(`${JSON.stringify(url.slice(0, 200))} is no http or https address`);
  const list = own(definition, "headers");
  const headers = Object.entries(isJsonObject(list) ? list : {}).map(([name, value]): [string, string] => [
    name,
    textOf(value),
  ]);
  try {
    // Throws for what cannot be sent: a line break in a value, a space in a name.
    return ok({
      kind: own(definition, "type") === "sse" ? "sse" : "http",
      url,
      headers: Object.fromEntries(new Headers(headers)),
    });
  } catch {
    return err("a header of it has a name or a value that cannot be sent");
  }
}

function textOf(value: Json): string {
  if (typeof value === "string") return value;
  return value === null ? "" : JSON.stringify(value);
}

/** `${VAR}` and `${VAR:-default}` in every text, as other programs fill them in. Nothing that comes from them is looked at again. */
function expanded(value: Json, variables: Environment): Result<Json, string> {
  const missing = new Set<string>();
  const walk = (it: Json): Json => {
    if (Array.isArray(it)) return it.map(walk);
    if (isJsonObject(it)) return Object.fromEntries(Object.entries(it).map(([key, inner]) => [key, walk(inner)]));
    return typeof it === "string" ? fill(it) : it;
  };
  const fill = (text: string): string =>
    text.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g, (_, name: string, preset: string | undefined) => {
      const found = Object.hasOwn(variables, name) ? variables[name] : undefined;
      if (found !== undefined && found !== "") return found;
      if (preset === undefined) missing.add(name);
      return preset ?? "";
    });
  const filled = walk(value);
  if (missing.size === 0) return ok(filled);
  return err(
    `its definition reads ${[...missing].join(", ")}, and no such environment variable is set; set it, or write \`\${NAME:-default}\``,
  );
}
