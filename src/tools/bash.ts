import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err } from "../model/result.ts";
import { runProcess } from "../process/run.ts";
import { answer } from "./answer.ts";
import { textArgument, wholeArgument } from "./arguments.ts";
import { keptOutput, outputOf, type Programs, withLine } from "./programs.ts";

const defaultTime = 120_000;
const longestTime = 600_000;
const longestCommand = 64 * 1024;

/** Runs a command in bash. */
export function bashTool(programs: Programs): Tool {
  return { ...spec, run: (args, call) => run(args, call, programs) };
}

const spec: Omit<Tool, "run"> = {
  name: "Bash",
  description:
    "Runs a command in bash, in the workspace, and returns what it printed. Each call is a shell of its own: cd, variables " +
    "and background processes end with it. There is no terminal and no input. Ends after 2 minutes unless timeout says " +
    "otherwise. To read, search and change files use the tools for that.",
  readOnly: false,
  parameters: {
    type: "object",
    required: ["command"],
    additionalProperties: false,
    properties: {
      command: { type: "string", minLength: 1, maxLength: longestCommand, description: "The command" },
      timeout: { type: "integer", minimum: 1, maximum: longestTime, description: "Milliseconds; 120000 by default" },
      description: { type: "string", maxLength: 2000, description: "What it does, in a few words" },
    },
  },
  aliases: { names: ["bash", "run_shell_command", "shell"], parameters: { cmd: "command" } },
};

async function run(args: JsonObject, call: ToolCall, programs: Programs): Promise<Result<ToolOutput, string>> {
  const command = textArgument(args, "command") ?? "";
  const time = wholeArgument(args, "timeout") ?? defaultTime;
  if (command.includes("\0")) return err("the command contains a NUL character");
  const timer = AbortSignal.timeout(time);
  const { marks, environment, filter, spillFolder } = programs;
  const name = `bash-${randomBytes(6).toString("hex")}`;
  const ran = await runProcess({
    // On one stream, so that errors stand where they happened.
    argv: ["bash", "--noprofile", "--norc", "-c", `exec 2>&1\n${command}`],
    cwd: call.workspace,
    env: { ...environment, PWD: call.workspace },
    marks,
    signal: AbortSignal.any([call.signal, timer]),
    maxBytes: keptOutput,
    ...(filter && { filter }),
    ...(call.launch && { launch: call.launch }),
    ...(spillFolder !== undefined && {
      spill: { stdout: join(spillFolder, `${name}.txt`), stderr: join(spillFolder, `${name}.err.txt`) },
    }),
  });
  if (ran.kind === "spawn_failed") return err(ran.message);
  // As Read knows it, and the same in every run.
  const said = outputOf(ran).replaceAll(`${spillFolder ?? ""}/${name}`, `files/${name}`);
  switch (ran.kind) {
    case "aborted":
      return err(withLine(said, call.signal.aborted ? "[cancelled]" : `[ended after ${time} ms (\`timeout\`)]`));
    case "signalled":
      return err(withLine(said, `[ended by ${ran.signal}]`));
    case "exited":
      return ran.code === 0 ? answer(said) : err(withLine(said, `[exit code ${ran.code}]`));
    default:
      return ran satisfies never;
  }
}
