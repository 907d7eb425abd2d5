import { setMaxListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { pawlError } from "pawl/service";

/** For the signal that the service stops. As many listen as callers wait, which Node would take for a leak from the eleventh on. */
export function stopController(): AbortController {
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal);
  return stopping;
}

/**
 * Aborted when the caller hangs up, or when the service stops. Made for those who wait: most requests do not. By hand, since
 * what `AbortSignal.any` makes of a signal that lives as long as the service may be kept for as long.
 */
export function abortedOnDisconnect(response: ServerResponse, stopping: AbortSignal): AbortSignal {
  const ended = new AbortController();
  const stop = () => ended.abort(stopping.reason);
  const close = () => {
    stopping.removeEventListener("abort", stop);
    if (!response.writableFinished) ended.abort(pawlError("request_malformed", { reason: "the caller has gone" }));
  };
  // Whoever hung up while the request was being looked at is not heard of again.
  if (response.destroyed || response.socket?.destroyed === true) close();
  else if (stopping.aborted) stop();
  else {
    stopping.addEventListener("abort", stop, { once: true });
    response.once("close", close);
  }
  return ended.signal;
}
