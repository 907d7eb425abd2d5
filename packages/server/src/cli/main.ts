#!/usr/bin/env node
import { EXIT } from "./exit.js";
import { run } from "./program.js";
import { RunAborted } from "./run-aborted.js";
import { onUnhandledStop, requestStopOr, stopSignal } from "./stop-signals.js";
import { targetsOf } from "./target.js";

const { stdin, stdout, stderr, env } = process;

const abort = new AbortController();
const end = (exit: number) => {
  // Asked again, it does not wait for the store to be closed. What it started ends with it all the same.
  if (abort.signal.aborted) process.exit(exit);
  abort.abort(new RunAborted(exit));
};
onUnhandledStop(end);

// Whoever reads us has gone (`| head`): there is nobody left to tell. A command that can be stopped stops as it does.
let readerGone = false;
stdout.on("error", () => {
  if (readerGone) return;
  readerGone = true;
  requestStopOr(() => end(EXIT.unread));
});
// What is said beside the answer may go unheard.
stderr.on("error", () => {});

const exit = await run(process.argv.slice(2), {
  io: { stdin, stdout, stderr, env },
  abort: abort.signal,
  signal: stopSignal(
    (text) => stderr.isTTY && stderr.write(`\r\x1b[K${text}\n`),
    () => (readerGone ? new RunAborted(EXIT.unread) : undefined),
  ),
  openTarget: targetsOf(env, process.cwd()),
});
// What says where it stopped ends as if it was interrupted, and nobody interrupted it.
process.exitCode = readerGone && exit === EXIT.interrupted ? EXIT.unread : exit;
// Its work may be under way still, and nobody waits for it.
if (abort.signal.aborted) process.exit((abort.signal.reason as RunAborted).exit);
