import type { Command } from "commander";
import { colourLevel, loadPalette, type Palette } from "../render/palette.ts";

/** Text on one of the two streams; a closed pipe takes it in silence. */
export function print(text: string): void {
  process.stdout.write(text);
}

export function say(text: string): void {
  process.stderr.write(text);
}

/** `flow … | head -1` ends quietly: what nobody reads any more is dropped, and the run goes on. */
export function silenceClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}

/** The colours of a stream, by the flags `--color` and `--no-color`, then the environment, then the stream itself. */
export function paletteOf(command: Command, stream: NodeJS.WriteStream): Promise<Palette> {
  const root = command.parent ?? command;
  const given = root.getOptionValueSource("color") === "cli";
  const level = colourLevel({
    ...(given && { flag: root.opts<{ color: boolean }>().color }),
    env: process.env,
    isTTY: stream.isTTY,
    depth: stream.isTTY ? stream.getColorDepth() : 1,
  });
  return loadPalette(level);
}
