import { type Pieces, type Split, splitBefore } from "../support/interleave.js";

/** How the verbs are cut: where a statement's snapshot is taken and nothing is locked yet, and between statements. */
export const CLAIM_SNAPSHOT: Split = splitBefore("claim", "r.queue = o.queue");
export const SETTLE_SNAPSHOT: Split = splitBefore("settle", "id = any($23::bigint[]) and worker = $2");
/** All is written and locked, and not committed. */
export const SETTLE_WRITTEN: Split = {
  statement: "settle",
  from: "from settled group by lease",
  to: (barrier) => `from settled where ${barrier} group by lease`,
};
export const PROMOTE_SNAPSHOT: Split = splitBefore("promote", "run_at >= to_timestamp($3::float8 / 1000)");
export const TAKE_SNAPSHOT: Split = splitBefore("take", "id = any($1::uuid[])");

export const REAP: Pieces = { stops: ["lock_expired", "unsettled", "commit"], splits: [splitBefore("lock_expired", "until <=")] };
/** A settlement that the guard has sent the long way. */
export const SETTLE_GUARDED: Pieces = { stops: ["settle", "lock_leases", "settled_before", "commit"] };
