import type { GivenAnswer } from "../model/event.ts";
import { ok, type Result } from "../model/result.ts";
import type { Answers } from "./approvals.ts";
import type * as Reading from "./approvals.ts";
import type { Conditions, ResumeRequest } from "./requests.ts";

/** The answers to approvals that were typed, checked by `read`. */
export async function answersOf(
  request: Conditions & Pick<ResumeRequest, "deny">,
  cwd: string,
  read: (module: typeof Reading, given: Answers) => Promise<Result<readonly GivenAnswer[], string>>,
): Promise<Result<readonly GivenAnswer[], string>> {
  const { approve = [], deny = [], form = [], comment = "", by, env = process.env } = request;
  if (approve.length + deny.length + form.length === 0 && comment === "") return ok([]);
  const [approvals, { userName }] = await Promise.all([import("./approvals.ts"), import("./user-name.ts")]);
  return read(approvals, { approve, deny, form, comment, by: () => by ?? userName(env, cwd) });
}
