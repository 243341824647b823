import { isJsonObject, own } from "../model/json.ts";
import type { Json } from "../model/json.ts";

/** What the local reference `#` or `#/a/b` names in `root`; undefined when there is nothing, or it is no such reference. */
export function resolvePointer(root: Json, reference: string): Json | undefined {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let at: Json | undefined = root;
  for (const part of reference.slice(2).split("/")) {
    const key = decoded(part);
    if (key === undefined || at === undefined) return undefined;
    if (Array.isArray(at)) at = /^(0|[1-9]\d{0,9})$/.test(key) ? at[Number(key)] : undefined;
    else at = isJsonObject(at) ? own(at, key) : undefined;
  }
  return at;
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}
