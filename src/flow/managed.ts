import { isJsonObject, type Json, own } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Block } from "../permissions/index.ts";
import { entry, toJson } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";

/** Where whoever looks after a machine says what no run on it may do. */
const place = "/etc/flow/managed.yaml";

/**
 * The rules of this machine, and those of the file `FLOW_MANAGED` names; both only restrict. A file that cannot be read
 * or understood is an error: what it forbids would be allowed.
 */
export async function managedRules(env: {
  readonly [name: string]: string | undefined;
}): Promise<Result<readonly Block[], string>> {
  const named = env["FLOW_MANAGED"] ?? "";
  const blocks: Block[] = [];
  for (const path of named === "" ? [place] : [place, named]) {
    const block = await readRules(path, path === place);
    if (!block.ok) return block;
    if (block.value) blocks.push(block.value);
  }
  return ok(blocks);
}

async function readRules(path: string, mayBeMissing: boolean): Promise<Result<Block | undefined, string>> {
  const bytes = await readSource(path);
  if (!bytes.ok)
    return mayBeMissing && bytes.error.code === "FLOW1001" ? ok(undefined) : err(`${path}: ${bytes.error.message}`);
  const parsed = parseSource(bytes.value, path);
  const [problem] = parsed.ok ? [] : parsed.error;
  if (!parsed.ok) return err(`${path}:${problem?.at.line ?? 1}: ${problem?.message ?? "it is no YAML"}`);
  const { root } = parsed.value;
  const node = root.kind === "map" ? entry(root, "permissions")?.value : undefined;
  const permissions: Json | undefined = node && toJson(node);
  if (!isJsonObject(permissions)) return err(`${path}: it has no \`permissions\` map`);
  const wrong = Object.entries(permissions).find(([, value]) => !isRuleValue(value));
  if (wrong) return err(`${path}: \`permissions.${wrong[0]}\` is neither a decision nor a map or list of rules`);
  return ok({ layer: "managed", permissions, file: path });
}

function isRuleValue(value: Json): boolean {
  const isDecision = (it: Json | undefined): boolean => it === "allow" || it === "ask" || it === "deny";
  if (isJsonObject(value)) return Object.keys(value).every((key) => isDecision(own(value, key)));
  return isDecision(value) || (Array.isArray(value) && value.every((it) => typeof it === "string"));
}
