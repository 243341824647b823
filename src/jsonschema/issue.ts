/** One way in which a value does not match its schema. */
export interface SchemaIssue {
  /** Keys and indexes from the root of the checked value to the wrong part. */
  readonly path: readonly (string | number)[];
  readonly problem: Problem;
  /** A whole phrase without the place: "must be one of quick, deep, not `fast`". */
  readonly message: string;
}

export type Problem =
  /** `key` of the mapping at `path` is not allowed there; `allowed` is empty when no list of keys is known. */
  | { readonly kind: "unknown_key"; readonly key: string; readonly allowed: readonly string[] }
  | { readonly kind: "missing_key"; readonly key: string }
  /** The mapping at `path` needs exactly one of `keys`; it has those in `found`: none, or several. */
  | { readonly kind: "choice"; readonly keys: readonly string[]; readonly found: readonly string[] }
  /** `key` of the mapping at `path` is not a possible name. */
  | { readonly kind: "name"; readonly key: string }
  /** JSON Schema names of types; `found` is the value's own. */
  | { readonly kind: "type"; readonly expected: readonly string[]; readonly found: string }
  /** One of a few texts is wanted; `given` is the text that stands there. */
  | { readonly kind: "enum"; readonly allowed: readonly string[]; readonly given: string }
  | { readonly kind: "value" };

/** More than anybody reads. */
export const mostIssues: number = 1_000;
