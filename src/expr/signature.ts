import type { Json } from "../model/json.ts";
import type { Refusal } from "./refusal.ts";

export type StaticType = "boolean" | "number" | "string" | "null" | "array" | "object" | "unknown";

/** A function of the language. `name` is spelled as in the documentation; calls ignore case. */
export interface Signature {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The type of every result; `branches`: the common type of the arguments that may become the result. */
  readonly type: StaticType | "branches";
  /**
   * Absent for the functions that are part of the evaluation itself (lazy ones and those that ask the scope).
   * `limit` is the most UTF-16 units a text may have; whatever could multiply its input counts before it builds.
   */
  readonly call?: Call;
}
export type Call = (args: readonly Json[], limit: number) => Json | Refusal;

/** The package's own limit, which stands for "any number". */
export const manyArguments = 255;
