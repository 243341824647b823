import { type Command, InvalidArgumentError } from "commander";
import type { McpProblem } from "../../flow/find-servers.ts";
import type { ServerReport } from "../../flow/mcp.ts";
import { isJsonObject, type Json, type JsonObject } from "../../model/json.ts";
import { exitCodes } from "../../model/outcome.ts";
import { messageOf } from "../../model/result.ts";
import { visible } from "../../render/display.ts";
import { another } from "../conditions.ts";
import { print, say } from "../output.ts";
import { onSignals } from "../signals.ts";
import { sayDiagnostics } from "../watch.ts";

export function defineMcp(program: Command): void {
  const mcp = program
    .command("mcp")
    .description("look at MCP servers, pin what they offer, call their tools")
    .enablePositionalOptions();
  mcp
    .command("list")
    .description("start the servers a workflow uses, or those every workflow knows, and say what they offer")
    .argument("[file]", "the workflow")
    .option("--json", "as JSON", false)
    .action(list);
  mcp
    .command("lock")
    .description("write what the servers offer into flow.lock; a run refuses a server that offers anything else")
    .argument("[file]", "the workflow; without one, the servers every workflow knows")
    .option("--server <name>", "only this one; repeat it for more", another)
    .action(lock);
  mcp
    .command("call")
    .description("call one tool and print what it gives")
    .argument("<server>", "its name, or its address")
    .argument("<tool>", "by its own name, or as mcp__server__tool")
    .option("--file <workflow>", "the workflow that defines the server; without one, a configuration or .mcp.json")
    .option("--args <json>", "the arguments as one JSON object", jsonObject, {})
    .option("-a, --arg <key=value>", "one argument; repeat it for more", keyValue)
    .option("--json", "content and structured content as JSON", false)
    .action(call);
  mcp
    .command("probe")
    .description("connect to any server, list its tools and call those that need no arguments")
    .argument("<target...>", "an address, or a program with its arguments")
    .option("--call <tool>", "call this tool too, with --args")
    .option("--args <json>", "arguments for --call, as one JSON object", jsonObject, {})
    .option("--json", "as JSON", false)
    .passThroughOptions()
    .action(probe);
  for (const command of mcp.commands)
    command.exitOverride().showHelpAfterError(`(see \`flow mcp ${command.name()} --help\`)`);
}

async function list(file: string | undefined, flags: { readonly json: boolean }, command: Command): Promise<void> {
  const { listServers } = await import("../../flow/mcp.ts");
  const found = await interruptible((signal) => listServers({ ...here(file), signal }));
  if (!found.ok) return refuse(found.error, command);
  const isBroken = found.value.some(
    ({ problem, required, pin }) => (problem !== undefined && required) || typeof pin === "object",
  );
  if (isBroken) process.exitCode = exitCodes.unavailable;
  if (flags.json) print(`${JSON.stringify({ schemaVersion: 1, servers: found.value }, null, 2)}\n`);
  else if (found.value.length === 0)
    say(
      `no MCP servers: ${file === undefined ? "no configuration and no .mcp.json names one" : `no step of ${file} uses one`}\n`,
    );
  else print(found.value.map(serverText).join("\n"));
}

function serverText({ name, file, problem, tools, pin }: ServerReport): string {
  const pinned =
    pin === "none" ? "not pinned" : pin === "same" ? "pinned" : `CHANGED since it was pinned: ${pin.changed}`;
  if (problem !== undefined) return `${visible(name)} (${visible(file)}): cannot be used: ${visible(problem)}\n`;
  const width = Math.max(...tools.map(({ called }) => called.length), 0);
  const lines = tools.map(({ called, description }) => {
    const [first = ""] = description.trim().split("\n");
    return `  ${called.padEnd(width)}  ${visible(first.length > 100 ? `${first.slice(0, 99)}…` : first)}\n`;
  });
  return `${visible(name)} (${visible(file)}): ${tools.length} tool${tools.length === 1 ? "" : "s"}, ${visible(pinned)}\n${lines.join("")}`;
}

async function lock(
  file: string | undefined,
  flags: { readonly server?: readonly string[] },
  command: Command,
): Promise<void> {
  const { lockServers } = await import("../../flow/mcp.ts");
  const { server: servers } = flags;
  const locked = await interruptible((signal) => lockServers({ ...here(file), ...(servers && { servers }), signal }));
  if (!locked.ok) return refuse(locked.error, command);
  print(locked.value.map((line) => `${visible(line)}\n`).join(""));
}

interface CallFlags {
  readonly file?: string;
  readonly args: JsonObject;
  readonly arg?: readonly string[];
  readonly json: boolean;
}

async function call(
  server: string,
  tool: string,
  { file, args, arg: texts = [], json }: CallFlags,
  command: Command,
): Promise<void> {
  const { callServer, textOf } = await import("../../flow/mcp.ts");
  const called = await interruptible((signal) => callServer({ ...here(file), server, tool, args, texts, signal }));
  if (!called.ok) return refuse(called.error, command);
  const answer = called.value;
  if (!answer.ok) process.exitCode = exitCodes.failure;
  if (json) print(`${JSON.stringify(answer.ok ? answer.value : { error: answer.error.message }, null, 2)}\n`);
  else if (answer.ok) print(`${textOf(answer.value)}\n`);
  else say(`${answer.error.message}\n`);
}

interface ProbeFlags {
  readonly call?: string;
  readonly args: JsonObject;
  readonly json: boolean;
}

async function probe(target: readonly string[], flags: ProbeFlags): Promise<void> {
  const { probeServer } = await import("../../flow/probe-server.ts");
  const wish = flags.call === undefined ? {} : { call: { tool: flags.call, args: flags.args } };
  const probed = await interruptible((signal) => probeServer({ ...here(undefined), target, ...wish, signal }));
  const tools = probed.ok ? probed.value : [];
  const isWell = probed.ok && tools.every(({ outcome }) => outcome !== "failed");
  process.exitCode = isWell ? exitCodes.success : exitCodes.failure;
  if (flags.json)
    print(
      `${JSON.stringify({ schemaVersion: 1, ok: isWell, ...(!probed.ok && { problem: probed.error }), tools }, null, 2)}\n`,
    );
  else if (!probed.ok) say(`it cannot be used: ${visible(probed.error)}\n`);
  else
    print(
      tools
        .map(({ tool, outcome, text }) => `${outcome.padEnd(8)} ${visible(tool)}: ${visible(text.slice(0, 200))}\n`)
        .join(""),
    );
}

function here(file: string | undefined): {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly file?: string;
} {
  return { cwd: process.cwd(), env: process.env, ...(file !== undefined && { file }) };
}

/** A signal ends what is going on, and so the servers. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signals = onSignals();
  try {
    return await work(signals.cancel);
  } finally {
    signals.stop();
  }
}

async function refuse(problem: McpProblem, command: Command): Promise<void> {
  process.exitCode = problem.kind === "unavailable" ? exitCodes.unavailable : exitCodes.usage;
  if (problem.kind === "invalid") await sayDiagnostics(problem.diagnostics, problem.sources, command);
  else say(`error: ${problem.message.split("\n").map(visible).join("\n")}\n`);
}

function keyValue(argument: string, before: readonly string[] = []): string[] {
  if (argument.indexOf("=") <= 0) throw new InvalidArgumentError("write it as key=value.");
  return [...before, argument];
}

function jsonObject(text: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw new InvalidArgumentError(`it is not JSON: ${messageOf(error)}.`);
  }
  if (!isJsonObject(value)) throw new InvalidArgumentError("it must be a JSON object.");
  return value;
}
