import { type Duration, milliseconds } from "../../core/values/duration.js";
import { type ErrorCode, isPawlError, type PawlError } from "../../core/values/error.js";
import { Backoff } from "./backoff.js";
import type { Clock } from "./clock.js";
import { throttle } from "./throttle.js";

/** how long to wait for a store or a service that cannot be reached */
export type StartupWait = Duration | "forever";

export interface RetryUntilUpOptions {
  readonly clock: Clock;
  readonly patience?: StartupWait | undefined;
  /** hears that it waits: at once, and every five seconds */
  readonly onWaiting?: ((what: ServerAway) => void) | undefined;
}

/** A server that cannot be reached, and the ms it has been waited for. */
export interface ServerAway {
  readonly for: "server";
  readonly error: PawlError;
  readonly waited: number;
}

/** Longer than a database takes to restart, shorter than a person waits for an answer. */
const DEFAULT_WAIT_MS = 30_000;
export const WAITING_REPORT_MS = 5_000;
/** of a server that is not there: soon after it is, everybody is back, and not all at once */
const RETRY_BACKOFF_MS = { min: 100, max: 1_000 };
/** nobody answers, or a service that has no store yet or is being replaced */
const AWAY_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["store_unreachable", "service_starting", "service_stopping"]);

/**
 * A store or a service that is not up yet, or goes down meanwhile, is waited for; one that refuses us is not. What is
 * attempted must be safe to repeat: it may have been carried out, and only its answer lost.
 */
export async function retryUntilUp<T>({ clock, patience = DEFAULT_WAIT_MS, onWaiting }: RetryUntilUpOptions, attempt: () => Promise<T>): Promise<T> {
  const longest = patience === "forever" ? Number.POSITIVE_INFINITY : milliseconds(patience);
  const began = clock.monotonic();
  const report = throttle(clock, WAITING_REPORT_MS, onWaiting);
  const backoff = new Backoff(clock, RETRY_BACKOFF_MS);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const waited = clock.monotonic() - began;
      if (!isPawlError(error) || !AWAY_CODES.has(error.code) || waited >= longest) throw error;
      report(() => ({ for: "server", error, waited }));
      await new Promise<void>((resolve) => clock.after(Math.min(backoff.next(), longest - waited), resolve));
    }
  }
}
