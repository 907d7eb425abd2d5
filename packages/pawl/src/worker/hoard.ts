import type { HeldLease } from "./held-lease.js";
import type { Runner } from "./runner.js";

/** ms a job may lie here claimed and not started before it is given back to those who could start it */
const HOARDING = 1_000;

/** Handlers became slower than the claims were sized for: others may be able to start what waits here. */
export function giveBackHoard(runner: Runner, leases: Iterable<HeldLease>, now: number): void {
  if (runner.held === 0 || runner.free > 0) return;
  for (const lease of leases) {
    if (now - lease.sentAt < HOARDING || !lease.attempts.some(({ phase }) => phase === "held")) continue;
    runner.slowDown(now);
    runner.releaseHeld();
    return;
  }
}
