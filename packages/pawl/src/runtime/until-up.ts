import { type Duration, milliseconds } from "../core/duration.js";
import { type ErrorCode, isPawlError, type PawlError } from "../core/error.js";
import { Backoff } from "./backoff.js";
import type { Clock } from "./clock.js";
import { seldom } from "./seldom.js";

/** how long to wait for a store or a service that cannot be reached */
export type Patience = Duration | "forever";

export interface Wait {
  readonly clock: Clock;
  readonly patience?: Patience | undefined;
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
const PATIENCE = 30_000;
export const SAY_EVERY = 5_000;
/** of a server that is not there: soon after it is, everybody is back, and not all at once */
const LOOKS = { min: 100, max: 1_000 };
/** nobody answers, or a service that has no store yet or is being replaced */
const AWAY: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["store_unreachable", "service_starting", "service_stopping"]);

/**
 * A store or a service that is not up yet, or goes down meanwhile, is waited for; one that refuses us is not. What is
 * attempted must be safe to repeat: it may have been carried out, and only its answer lost.
 */
export async function untilUp<T>({ clock, patience = PATIENCE, onWaiting }: Wait, attempt: () => Promise<T>): Promise<T> {
  const longest = patience === "forever" ? Number.POSITIVE_INFINITY : milliseconds(patience);
  const began = clock.monotonic();
  const say = seldom(clock, SAY_EVERY, onWaiting);
  const backoff = new Backoff(clock, LOOKS);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const waited = clock.monotonic() - began;
      if (!isPawlError(error) || !AWAY.has(error.code) || waited >= longest) throw error;
      say(() => ({ for: "server", error, waited }));
      await new Promise<void>((resolve) => clock.after(Math.min(backoff.next(), longest - waited), resolve));
    }
  }
}
