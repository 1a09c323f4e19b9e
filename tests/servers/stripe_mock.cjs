// Starts stripe-stateful-mock on a loopback port that the kernel chooses, and writes that port to the file named by
// the first argument. The package's own command binds every interface and needs its port told beforehand.
"use strict";
const fs = require("node:fs");
const { createRequire } = require("node:module");

const portFile = process.argv[2];
// Resolved from the working directory, where the package is installed, not from this file's folder.
const { createExpressApp } = createRequire(process.cwd() + "/")("stripe-stateful-mock");

const server = createExpressApp().listen(0, "127.0.0.1", () => {
  fs.writeFileSync(portFile + ".part", String(server.address().port));
  fs.renameSync(portFile + ".part", portFile);
});
