"use strict";
const fs = require("node:fs");
const { enableCompileCache } = require("node:module");
const os = require("node:os");
const path = require("node:path");
const vm = require("node:vm");
const { crc32 } = require("node:zlib");

/** One file for each command, each version of Node and each place flow is installed in; older ones go. */
const kept = 16;

/**
 * Loads the bundled command together with the code that V8 made of it in an earlier run. Node's own compile cache holds
 * what was compiled before anything ran, and so none of the functions that are called then: compiling those takes half
 * of a short command.
 */
module.exports = function load(file, command) {
  const folder = cacheFolder();
  // For packages outside the bundle.
  if (folder !== undefined) enableCompileCache(path.join(folder, "packages"));
  const cache = folder && path.join(folder, cacheName(file, command));
  const cachedData = cache && readOwn(cache);
  const script = new vm.Script(
    `(function (exports, require, __filename, __dirname) {${fs.readFileSync(file, "latin1")}\n})`,
    { filename: file, cachedData },
  );
  const exported = {};
  script.runInThisContext()(exported, require, file, path.dirname(file));
  if (cache !== undefined && (cachedData === undefined || script.cachedDataRejected))
    process.once("exit", (code) => code === 0 && write(cache, script.createCachedData()));
  return exported;
};

function cacheName(file, command) {
  const { size, ctimeMs } = fs.statSync(file);
  const identity = crc32([file, size, ctimeMs, process.version, process.arch].join("\n"));
  return `${/^[a-z]+$/.test(command ?? "") ? command : "flow"}-${identity.toString(16).padStart(8, "0")}.code`;
}

/** The user's own, since whoever writes there decides what flow does; undefined where there is none. */
function cacheFolder() {
  const { env, platform } = process;
  if (env.NODE_DISABLE_COMPILE_CACHE) return undefined;
  // One relative to whatever folder flow is started in would lie in somebody's project.
  const named = [env.NODE_COMPILE_CACHE, env.XDG_CACHE_HOME].find((folder) => folder && path.isAbsolute(folder));
  if (named !== undefined) return path.join(named, "flow");
  try {
    if (platform === "win32") return path.join(env.LOCALAPPDATA || os.tmpdir(), "flow", "cache");
    const home = os.homedir();
    if (!path.isAbsolute(home)) return undefined;
    return path.join(home, platform === "darwin" ? "Library/Caches" : ".cache", "flow");
  } catch {
    return undefined;
  }
}

/** V8 takes damaged code as it is and dies of it, so a checksum stands at the end of the file. */
function readOwn(cache) {
  let fd;
  try {
    fd = fs.openSync(cache, "r");
    if (process.getuid !== undefined && fs.fstatSync(fd).uid !== process.getuid()) return undefined;
    const bytes = fs.readFileSync(fd);
    const data = bytes.subarray(0, -4);
    return crc32(data) === bytes.readUInt32LE(data.length) ? data : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

/** A place that cannot be written, a home that is read-only for example, costs time and nothing else. */
function write(cache, data) {
  const folder = path.dirname(cache);
  const unfinished = `${cache}.${process.pid}`;
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(data));
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    fs.writeFileSync(unfinished, Buffer.concat([data, sum]), { mode: 0o600, flush: true });
    fs.renameSync(unfinished, cache);
    removeOld(folder);
  } catch {
    if (fs.existsSync(unfinished)) fs.rmSync(unfinished, { force: true });
  }
}

function removeOld(folder) {
  const names = fs.readdirSync(folder).filter((name) => name.includes(".code"));
  const files = names.map((name) => path.join(folder, name));
  const newestFirst = files.map((file) => ({ file, time: fs.statSync(file).mtimeMs })).sort((a, b) => b.time - a.time);
  for (const { file } of newestFirst.slice(kept)) fs.rmSync(file, { force: true });
}
