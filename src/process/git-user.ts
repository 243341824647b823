import { execFileSync } from "node:child_process";

/** What git calls the user in a folder; undefined where git does not know, or is not there. */
export function gitUser(cwd: string, env: { readonly [name: string]: string | undefined }): string | undefined {
  try {
    const stdio: ["ignore", "pipe", "ignore"] = ["ignore", "pipe", "ignore"];
    const name = execFileSync("git", ["config", "user.name"], { cwd, env, encoding: "utf8", timeout: 2000, stdio });
    return name.trim() === "" ? undefined : name.trim();
  } catch {
    return undefined;
  }
}
