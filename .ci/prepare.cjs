// Runs after every install. With `npm ci --omit=dev` the build tools are not there and dist/ came with the package.
"use strict";
const { existsSync } = require("node:fs");
const { join } = require("node:path");
const { spawnSync } = require("node:child_process");

const root = join(__dirname, "..");
const tools = ["esbuild", "typescript", "ajv"].every((name) => existsSync(join(root, "node_modules", name)));
if (tools) {
  for (const script of ["precompile-schemas.ts", "build.ts"]) {
    const { status } = spawnSync("node", [join(__dirname, script)], { cwd: root, stdio: "inherit" });
    if (status !== 0) process.exit(status ?? 1);
  }
} else if (!existsSync(join(root, "dist", "flow.cjs"))) {
  console.error("flow: dist/ is not built and the build tools are not installed (run `npm ci` with devDependencies)");
}
