import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface ModelServer {
  /** With `/v1`. */
  readonly url: string;
  /** Every request so far, with its headers. */
  requests(): Promise<readonly { readonly headers: Readonly<Record<string, string>>; readonly body: unknown }[]>;
  close(): void;
}

/** A third party's fake model server, as a process of its own on a free port. */
export async function startModelServer(fixtures: readonly unknown[]): Promise<ModelServer> {
  const folder = mkdtempSync(join(tmpdir(), "flow-aimock-"));
  const file = join(folder, "fixtures.json");
  writeFileSync(file, JSON.stringify({ fixtures }));
  const cli = join(dirname(createRequire(import.meta.url).resolve("@copilotkit/aimock")), "cli.js");
  const child = spawn(process.execPath, [cli, "--port", "0", "--fixtures", file, "--chunk-size", "5"]);
  const origin = await new Promise<string>((resolve, reject) => {
    let output = "";
    const read = (bytes: Buffer): void => {
      output += bytes.toString();
      const url = /listening on (http:\/\/[\d.:]+)/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", (code) => reject(new Error(`aimock ended with ${code}: ${output}`)));
  });
  return {
    url: `${origin}/v1`,
    requests: async () =>
      (await (await fetch(`${origin}/__aimock/journal`)).json()) as Awaited<ReturnType<ModelServer["requests"]>>,
    close: () => {
      child.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
