#!/usr/bin/env node
import { CutShort } from "./cut-short.js";
import { EXIT } from "./exit.js";
import { run } from "./program.js";
import { onUnheard, stopOrElse, stopSignal } from "./stop.js";
import { targetsOf } from "./target.js";

const { stdin, stdout, stderr, env } = process;

const cut = new AbortController();
const end = (exit: number) => {
  // Asked again, it does not wait for the store to be closed. What it started ends with it all the same.
  if (cut.signal.aborted) process.exit(exit);
  cut.abort(new CutShort(exit));
};
onUnheard(end);

// Whoever reads us has gone (`| head`): there is nobody left to tell. A command that can be stopped stops as it does.
let alone = false;
stdout.on("error", () => {
  if (!alone) stopOrElse(() => end(EXIT.unread));
  alone = true;
});
// What is said beside the answer may go unheard.
stderr.on("error", () => {});

const exit = await run(process.argv.slice(2), {
  io: { stdin, stdout, stderr, env },
  cut: cut.signal,
  signal: stopSignal((text) => stderr.isTTY && stderr.write(`\r\x1b[K${text}\n`)),
  openTarget: targetsOf(env, process.cwd()),
});
process.exitCode = exit;
// Its work may be under way still, and nobody waits for it.
if (cut.signal.aborted) process.exit((cut.signal.reason as CutShort).exit);
