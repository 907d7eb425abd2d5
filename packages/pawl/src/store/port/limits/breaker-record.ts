import { type Breaker, total } from "../../../core/limits/breaker.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import type { BreakerRecord, BreakerRef } from "./breakers.js";

/** Of a breaker that was forced before anybody reported on it. */
export const UNREPORTED_RULE = DEFAULTS.breaker;

export function breakerRecord({ tenant, task }: BreakerRef, { counts, ...breaker }: Breaker, asOf: number): BreakerRecord {
  return { tenant, task, ...breaker, ...total(counts), asOf };
}

/** Names hold no control characters. */
export function breakerKey({ tenant, task }: BreakerRef): string {
  return `${tenant}\u0001${task}`;
}
