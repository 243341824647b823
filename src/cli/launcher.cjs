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
} else {
  var mod = require("node:module");
  if (mod.enableCompileCache) mod.enableCompileCache();
  import("./main.js").then(function (main) {
    return main.start();
  });
}
