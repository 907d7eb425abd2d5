import type { LimitState } from "../../../core/limits/lane-limit.js";

/** A row of `pawl.lane_limit`. */
export interface LaneLimitRow {
  readonly kind: LimitState["kind"];
  readonly name: string;
  readonly concurrency: number | null;
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
  readonly tat: number | null;
}

/** `used`: how many slots of it are taken */
export function limitStateOf({ kind, name, concurrency, rate_limit, rate_per, rate_burst, tat }: LaneLimitRow, used: number): LimitState {
  return {
    kind,
    name,
    used,
    ...(concurrency === null ? {} : { concurrency }),
    ...(rate_limit === null ? {} : { rate: { limit: rate_limit, per: rate_per as number, burst: rate_burst as number } }),
    ...(tat === null ? {} : { tat }),
  };
}
