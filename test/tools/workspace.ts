import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { JsonObject } from "../../src/model/json.ts";
import type { ToolCall } from "../../src/model/ports.ts";
import { Marks } from "../../src/process/marks.ts";
import { createTools, type ToolsOptions } from "../../src/tools/index.ts";

/** What no test may ever see in a result. */
export const canary = "CANARY-7f3a-outside";

export interface Workspace {
  /** The folder tools work in; its parent holds what must stay hidden. */
  readonly root: string;
  readonly outside: string;
  write(path: string, text: string | Buffer): string;
  /** The text of a call, or `error: …`. */
  call(tool: string, args: JsonObject, signal?: AbortSignal, more?: Partial<ToolCall>): Promise<string>;
  remove(): void;
}

export function makeWorkspace(options: Partial<ToolsOptions> = {}): Workspace {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "flow-tools-")));
  const root = join(base, "work");
  const outside = join(base, "outside");
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(outside, "secret.txt"), `${canary}\n`);
  writeFileSync(join(base, "sibling.txt"), `${canary}\n`);
  const tools = createTools({
    marks: new Marks("tools-test"),
    environment: { PATH: process.env["PATH"] ?? "" },
    ...options,
  });
  return {
    root,
    outside,
    write(path, text) {
      const file = join(root, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      return file;
    },
    async call(name, args, signal = new AbortController().signal, more = {}) {
      const tool = tools.find((one) => one.name === name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      const result = await tool.run(args, { workspace: root, signal, ...more });
      if (!result.ok) return `error: ${result.error}`;
      return result.value.blocks.map((block) => (block.type === "text" ? block.text : "?")).join("\n");
    },
    remove() {
      rmSync(base, { recursive: true, force: true });
    },
  };
}
