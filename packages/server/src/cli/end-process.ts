import type { ServiceEnvironment } from "../run/service.js";
import { plural } from "../text/amounts.js";
import { EXIT } from "./exit.js";

/** ms that stopping may take after the time that handlers and requests have */
const MAX_STOP_OVERRUN_MS = 60_000;

/** Ends the process where stopping takes far longer than it may, unless the answer is called before. */
export function forceExitAfter(ms: number, writeLine: ServiceEnvironment["writeLine"]): () => void {
  const timer = setTimeout(() => {
    writeLine(
      `stopped     not all of it could be closed within ${Math.round((ms + MAX_STOP_OVERRUN_MS) / 1_000)} s; exiting with ${EXIT.unended}`,
      "error",
    );
    process.exit(EXIT.unended);
  }, ms + MAX_STOP_OVERRUN_MS).unref();
  return () => clearTimeout(timer);
}

/** The last word of a process that ran handlers. Those that do not end would keep it alive, perhaps for ever: then it exits. */
export function reportStopped(unended: number, writeLine: ServiceEnvironment["writeLine"], line = "stopped"): void {
  if (unended === 0) {
    writeLine(line);
    return;
  }
  writeLine(
    `stopped     ${plural(unended, "handler")} did not end in time, and what they had goes on elsewhere; exiting with ${EXIT.unended}`,
    "error",
    {
      unended,
    },
  );
  process.exit(EXIT.unended);
}
