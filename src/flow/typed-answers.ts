import type { GivenAnswer } from "../model/event.ts";
import { ok, type Result } from "../model/result.ts";
import type { Answers } from "./approvals.ts";
import type * as Reading from "./approvals.ts";
import type { Conditions } from "./requests.ts";

/** The answers to approvals that came with a request, checked by `read`. */
export async function answersOf(
  request: Conditions,
  cwd: string,
  read: (module: typeof Reading, given: Answers) => Promise<Result<readonly GivenAnswer[], string>>,
): Promise<Result<readonly GivenAnswer[], string>> {
  const { approve = [], deny = [], form = [], comment = "", by, env = process.env } = request;
  const byPath = request.answers ?? {};
  const count = approve.length + deny.length + form.length + Object.keys(byPath).length;
  if (count === 0 && comment === "") return ok([]);
  const [approvals, { userName }] = await Promise.all([import("./approvals.ts"), import("./user-name.ts")]);
  return read(approvals, { approve, deny, form, comment, byPath, by: () => by ?? userName(env, cwd) });
}
