import { err, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";

/**
 * The one error of this folder. `offset` and `length` are UTF-16 units within the expression's source (for
 * `scanTemplate`: within the scanned text).
 *
 * - `syntax`: it does not parse, or a function has the wrong number of arguments
 * - `unknown`: a context or function that does not exist
 * - `limit`: too long, too deep, or a value over the size allowed
 * - `missing`: a reference that has no value, read outside `default(…)`; the message is the reason
 * - `evaluation`: everything else that goes wrong with actual values
 */
export interface ExpressionError {
  readonly kind: "syntax" | "unknown" | "limit" | "evaluation" | "missing";
  readonly message: string;
  readonly offset: number;
  readonly length: number;
  /** What to write instead, as a whole sentence. */
  readonly suggestion?: string;
}

/**
 * Carries an error out of a recursion to the public function that started it; it never leaves this folder. It is no
 * `Error`, for collecting a stack costs many times what an evaluation does, and `default(…)` meets faults every day.
 */
export class Fault {
  readonly error: ExpressionError;

  constructor(error: ExpressionError) {
    this.error = error;
  }
}

/** Runs `work`; a {@link Fault} becomes the error, anything else is a bug and goes on. */
export function catchFault<T>(work: () => T): Result<T, ExpressionError> {
  try {
    return ok(work());
  } catch (thrown) {
    if (thrown instanceof Fault) return err(thrown.error);
    throw thrown;
  }
}
