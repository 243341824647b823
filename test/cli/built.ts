import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Before any test: builds `dist` when a source is newer, so that the tests of the command never test yesterday's. */
export function setup(): void {
  const built = join(root, "dist", "contents.json");
  const sources = ["src", "schemas", ".ci"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => !name.startsWith("jsonschema/generated"))
      .map((name) => join(root, folder, name)),
  );
  const newest = Math.max(...sources.map((file) => statSync(file).mtimeMs));
  if (existsSync(built) && statSync(built).mtimeMs > newest) return;
  const isPrepared = existsSync(join(root, "src/jsonschema/generated/event.js"));
  const script = join(root, ".ci", isPrepared ? "build.ts" : "prepare.cjs");
  const { status, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  if (status !== 0) throw new Error(`dist cannot be built:\n${stderr}`);
}
