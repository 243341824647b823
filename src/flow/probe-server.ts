import type { JsonObject } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { McpProblem, ServersRequest } from "./find-servers.ts";
import { addressed, quiet, textOf, withPool } from "./mcp.ts";

export interface ProbeRequest extends Omit<ServersRequest, "file" | "servers"> {
  /** An address, or a program with its arguments. */
  readonly target: readonly string[];
  /** A tool that is called with these arguments, whatever its schema. */
  readonly call?: { readonly tool: string; readonly args: JsonObject };
}

/** What became of a tool: called and answered, called in vain, or left alone because it needs arguments. */
export interface Probed {
  readonly tool: string;
  readonly outcome: "answered" | "failed" | "skipped";
  readonly text: string;
}

/** Connects, and calls every tool that can be called without arguments. The error is a server that cannot be used. */
export async function probeServer(request: ProbeRequest): Promise<Result<readonly Probed[], string>> {
  const { target, call } = request;
  const probed = await withPool(request, async (pool): Promise<Result<readonly Probed[], McpProblem>> => {
    const connected = await pool.own(await addressed(target, request), quiet(request));
    if (!connected.ok) return err({ kind: "unavailable", message: connected.error });
    const results: Probed[] = [];
    for (const tool of connected.value.tools) {
      const isAsked = call?.tool === tool.name;
      const { required } = tool.parameters;
      if (!isAsked && Array.isArray(required) && required.length > 0) {
        results.push({
          tool: tool.name,
          outcome: "skipped",
          text: `it needs ${required.map((key) => JSON.stringify(key)).join(", ")}`,
        });
        continue;
      }
      const answer = await connected.value.call(tool, isAsked ? call.args : {}, request.signal);
      // One that says it failed has answered.
      const outcome = answer.ok || answer.error.said ? "answered" : "failed";
      results.push({ tool: tool.name, outcome, text: answer.ok ? textOf(answer.value) : answer.error.message });
    }
    if (call && !results.some(({ tool }) => tool === call.tool))
      return err({ kind: "usage", message: `it has no tool \`${call.tool}\`` });
    return ok(results);
  });
  return probed.ok ? probed : err("message" in probed.error ? probed.error.message : "");
}
