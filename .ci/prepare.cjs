// Runs after every install. With `npm ci --omit=dev` the build tools are not there and dist/ came with the package.
"use strict";
const { existsSync } = require("node:fs");
const { delimiter, join } = require("node:path");
const { spawnSync } = require("node:child_process");

const root = join(__dirname, "..");
const tools = ["esbuild", "typescript", "ajv"].every((name) => existsSync(join(root, "node_modules", name)));
if (tools) {
  run("node", [join(__dirname, "precompile-schemas.ts")]);
  run("node", [join(__dirname, "build.ts")]);
  run("tsc", ["-p", join(__dirname, "tsconfig.types.json")]);
} else if (!existsSync(join(root, "dist", "flow.cjs"))) {
  console.error("flow: dist/ is not built and the build tools are not installed (run `npm ci` with devDependencies)");
}

function run(program, args) {
  const PATH = join(root, "node_modules", ".bin") + delimiter + process.env.PATH;
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit", env: { ...process.env, PATH } });
  if (error) console.error(`flow: ${program} cannot be started: ${error.message}`);
  if (status !== 0) process.exit(status || 1);
}
