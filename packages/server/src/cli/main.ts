#!/usr/bin/env node
import { EXIT } from "./exit.js";
import { run } from "./program.js";
import { RunAborted } from "./run-aborted.js";
import { onUnhandledStop, requestStopOr, stopSignal } from "./stop-signals.js";
import { targetsOf } from "./target.js";

const { stdin, stdout, stderr, env } = process;

const abort = new AbortController();
const end = (exit: number) => {
  // A second request does not wait for the store to be closed. The embedded server that this process started ends all the same.
  if (abort.signal.aborted) process.exit(exit);
  abort.abort(new RunAborted(exit));
};
onUnhandledStop(end);

// The reader of the output has gone (`| head`). A command that can be stopped stops as it does for a signal.
let readerGone = false;
stdout.on("error", () => {
  if (readerGone) return;
  readerGone = true;
  requestStopOr(() => end(EXIT.unread));
});
// Notes beside the answer may be lost.
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
// A command that says where it stopped ends as if it was interrupted, but nobody interrupted it.
process.exitCode = readerGone && exit === EXIT.interrupted ? EXIT.unread : exit;
// Its work may be under way still, and nobody waits for it.
if (abort.signal.aborted) process.exit((abort.signal.reason as RunAborted).exit);
