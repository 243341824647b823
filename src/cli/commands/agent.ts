import type { Command } from "commander";
import type { Given, RunEnd } from "../../flow.ts";
import { own } from "../../model/json.ts";
import { another, type ConditionFlags, conditionsOf, takesConditions } from "../conditions.ts";
import { parseInput, readStdin } from "../input.ts";
import { print } from "../output.ts";
import { onSignals } from "../signals.ts";
import { untilEnd } from "../until-end.ts";
import { printEnd, sayRefusal, watcher, watches, type Watching } from "../watch.ts";

interface AgentFlags extends Watching, ConditionFlags {
  readonly input?: Given["texts"];
  readonly model?: readonly string[];
  readonly secret?: readonly string[];
}

export function defineAgent(program: Command): void {
  const command = watches(program.command("agent"))
    .description("run one agent by hand, with the same log as a workflow; its answer goes to standard output")
    .argument("<name>", "the name of an agent, as in a workflow here, or its file")
    .argument("[prompt]", "what it is to do; - for standard input; absent where it has a prompt of its own")
    .option("-i, --input <name=value>", "an input of the agent's own prompt; repeat it for more", parseInput)
    .option("--model <model>", "provider/name instead of its own; repeat it for those to try next", another)
    .option("--secret <name>", "an environment variable its MCP servers may see; repeat it for more", another);
  takesConditions(command).action(run);
}

async function run(name: string, given: string | undefined, flags: AgentFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const { stdin } = await readStdin(given ?? "");
  const prompt = stdin === undefined ? given : new TextDecoder().decode(stdin);
  const watch = await watcher("-", flags);
  const signals = onSignals();
  const going = flow.runAgent({
    agent: name,
    ...(prompt !== undefined && { prompt }),
    ...(flags.input && { inputTexts: flags.input }),
    ...(flags.model && { model: flags.model }),
    ...(flags.secret && { secrets: flags.secret }),
    ...conditionsOf(flags, watch, signals),
  });
  const result = await untilEnd(going);
  signals.stop();
  if (!result.started) return sayRefusal(result.refusal, flags, command);
  process.exitCode = result.end.exitCode;
  await (flags.json ? printEnd(result.end, flags) : printAnswer(result.end));
  await watch.finish(result.end, result.prepared, command);
}

/** Absent when the agent did not come to one. */
async function printAnswer({ outputs }: RunEnd): Promise<void> {
  const answer = own(outputs, "answer");
  if (answer === undefined) return;
  const { renderAnswer } = await import("../../render/outputs.ts");
  print(renderAnswer(answer, process.stdout.isTTY ? "terminal" : "program"));
}
