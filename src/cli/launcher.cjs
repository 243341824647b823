#!/usr/bin/env node
// Old syntax on purpose: this file must parse under any Node, to say in one line which one is needed.
"use strict";
var needed = "22.18.0";
var running = process.versions.node;

function isOlder(a, b) {
  var left = a.split(".");
  var right = b.split(".");
  for (var i = 0; i < 3; i++) {
    var difference = parseInt(left[i], 10) - parseInt(right[i], 10);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

if (isOlder(running, needed)) {
  process.stderr.write(
    "flow needs Node " + needed + " or newer; this is Node " + running + " (" + process.execPath + ")\n",
  );
  process.exitCode = 3;
} else if (process.argv.length === 3 && (process.argv[2] === "--version" || process.argv[2] === "-V")) {
  // What scripts and editors ask most often, answered without loading the command.
  process.stdout.on("error", function (error) {
    if (error.code === "EPIPE") return;
    process.stderr.write("flow: standard output cannot be written: " + error.message + "\n");
    process.exitCode = 3;
  });
  process.stdout.write(require("../package.json").version + "\n");
} else {
  require("./load.cjs")(require("node:path").join(__dirname, "main.cjs"), process.argv[2]).start();
}
