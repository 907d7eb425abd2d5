import type { HeldLease } from "../settle/held-lease.js";
import type { Runner } from "./runner.js";

/** ms a job may lie here claimed and not started before it is given back to those who could start it */
const MAX_UNSTARTED_MS = 1_000;

/** Handlers became slower than the claims were sized for: others may be able to start what waits here. */
export function returnUnstarted(runner: Runner, leases: Iterable<HeldLease>, now: number): void {
  if (runner.unstarted === 0 || runner.free > 0) return;
  for (const lease of leases) {
    if (now - lease.sentAt < MAX_UNSTARTED_MS || !lease.attempts.some(({ phase }) => phase === "unstarted")) continue;
    runner.slowDown(now);
    runner.releaseUnstarted();
    return;
  }
}
