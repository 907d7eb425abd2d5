#!/usr/bin/env node
import { run } from "./program.js";
import { stopSignal } from "./stop.js";
import { targetsOf } from "./target.js";

const { stdin, stdout, stderr, env } = process;

// Whoever reads us has gone (`| head`): there is nobody left to tell, but work to finish.
let alone = false;
stdout.on("error", () => {
  if (!alone) process.kill(process.pid, "SIGTERM");
  alone = true;
});

process.exitCode = await run(process.argv.slice(2), {
  io: { stdin, stdout, stderr, env },
  signal: stopSignal((text) => stderr.isTTY && stderr.write(`\r\x1b[K${text}\n`)),
  openTarget: targetsOf(env, process.cwd()),
});
