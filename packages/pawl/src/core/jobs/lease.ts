import type { InstanceId } from "./id.js";

/** Who holds a lease: a name for people, and the instance id for the fence. */
export interface WorkerRef {
  readonly name: string;
  readonly instance: InstanceId;
}

/**
 * By when a worker that could not renew must have stopped, on its own monotonic clock. The margin covers the
 * time a settlement takes to reach the store: better to stop early than to work for nobody.
 */
export function stopBy(renewedAt: number, duration: number): number {
  return renewedAt + duration - Math.min(2_000, duration * 0.2);
}
