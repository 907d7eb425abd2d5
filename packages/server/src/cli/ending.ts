import type { World } from "../serve/service.js";
import { plural } from "../words/amounts.js";
import { EXIT } from "./exit.js";

/** ms that stopping may take after the time that handlers and requests have */
const LONGEST_END = 60_000;

/** Ends the process where stopping takes far longer than it may, unless the answer is called before. */
export function hurry(ms: number, say: World["say"]): () => void {
  const timer = setTimeout(() => {
    say(`stopped     not all of it could be closed within ${Math.round((ms + LONGEST_END) / 1_000)} s; exiting with ${EXIT.unended}`, "error");
    process.exit(EXIT.unended);
  }, ms + LONGEST_END).unref();
  return () => clearTimeout(timer);
}

/** The last word of a process that ran handlers. Those that do not end would keep it alive, perhaps for ever: then it exits. */
export function lastWord(unended: number, say: World["say"], usual = "stopped"): void {
  if (unended === 0) {
    say(usual);
    return;
  }
  say(`stopped     ${plural(unended, "handler")} did not end in time, and what they had goes on elsewhere; exiting with ${EXIT.unended}`, "error", {
    unended,
  });
  process.exit(EXIT.unended);
}
