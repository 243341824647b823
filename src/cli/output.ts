import type { Command } from "commander";
import { exitCodes } from "../model/outcome.ts";
import { colourLevel, loadPalette, type Palette } from "../render/palette.ts";

/** Text on one of the two streams; a closed pipe takes it in silence. */
export function print(text: string): void {
  process.stdout.write(text);
}

export function say(text: string): void {
  process.stderr.write(text);
}

/**
 * `flow … | head -1` ends quietly: what nobody reads any more is dropped, and the run goes on. Output that could not be
 * written for another reason, a full disk, is not a success.
 */
export function watchStreams(): void {
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return;
    say(`flow: standard output cannot be written: ${error.message}\n`);
    process.exitCode ||= exitCodes.unavailable;
  });
}

/** One line for a bug of ours; its stack when it was asked for. */
export function bugText(thrown: unknown, debug: boolean): string {
  const { message, stack } = thrown instanceof Error ? thrown : { message: String(thrown), stack: undefined };
  const line = `flow: this is a bug of flow: ${message.split("\n")[0]}`;
  return debug ? `${line}\n${stack ?? "(it has no stack)"}\n` : `${line} (--debug shows where)\n`;
}

/** The colours of a stream, by the flags `--color` and `--no-color`, then the environment, then the stream itself. */
export function paletteOf(command: Command, stream: NodeJS.WriteStream): Promise<Palette> {
  let root = command;
  while (root.parent !== null) root = root.parent;
  const given = root.getOptionValueSource("color") === "cli";
  const level = colourLevel({
    ...(given && { flag: root.opts<{ color: boolean }>().color }),
    env: process.env,
    isTTY: stream.isTTY,
    depth: stream.isTTY ? stream.getColorDepth() : 1,
  });
  return loadPalette(level);
}
