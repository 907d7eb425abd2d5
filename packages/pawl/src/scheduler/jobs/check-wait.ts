import { checkDuration, checkKeys, checkObject, invalid } from "../check.js";
import type { Wait, WaitOptions } from "../scheduler.js";

const WAIT_KEYS: ReadonlySet<string> = new Set(["wait", "signal"] satisfies (keyof WaitOptions)[]);

/** How long a call waits, in ms. A text or a number is short for `{ wait }`. */
export function checkWait(how: Wait = {}): { readonly wait: number | undefined; readonly signal: AbortSignal | undefined } {
  if (typeof how === "string" || typeof how === "number") return { wait: checkDuration("wait", how), signal: undefined };
  checkKeys(checkObject("options", how), WAIT_KEYS);
  const wait = how.wait === undefined ? undefined : checkDuration("wait", how.wait);
  if (how.signal !== undefined && !(how.signal instanceof AbortSignal)) throw invalid("signal", "it is not an AbortSignal");
  how.signal?.throwIfAborted();
  return { wait, signal: how.signal };
}
