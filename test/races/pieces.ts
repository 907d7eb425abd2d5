import { FROM_READY } from "../../packages/pawl/src/store/postgres/pending.js";
import { type Mutation, type Pieces, type Split, splitBefore } from "../support/racing-session.js";

/** How the verbs are cut: where a statement's snapshot is taken and nothing is locked yet, and between statements. */
export const CLAIM_SNAPSHOT: Split = splitBefore("claim", "r.queue = o.queue");
/** What it takes is locked. */
export const CLAIM_HOLDING: Split = splitBefore("claim", "given < size");
export const SPLIT_SNAPSHOT: Split = splitBefore("split_rows", "r.ctid = any(");
export const SETTLE_SNAPSHOT: Split = splitBefore("settle", "l.id = c.lease and l.worker = $2");
/** All is locked and about to be written. */
export const SETTLE_LOCKED: Split = {
  statement: "settle",
  from: "from good) < cardinality",
  to: (barrier) => `from good where ${barrier}) < cardinality`,
};
/** A settlement that hands places over: before it looks who is next, and when the numbers of those are drawn. */
export const HAND_OVER_SNAPSHOT: Split = splitBefore("settle_limited", "h.gate = p.key");
export const HAND_OVER_DRAWN: Split = {
  statement: "settle_limited",
  from: "id, band, spent, crashes, queue, tenant, task from sorted",
  to: (barrier) => `id, case when ${barrier} then band end, spent, crashes, queue, tenant, task from sorted`,
};
export const PROMOTE_SNAPSHOT: Split = splitBefore("promote", "run_at >= to_timestamp($3::float8 / 1000)");
export const TAKE_SNAPSHOT: Split = splitBefore("take", "id = any($1::uuid[])");

export const REAP: Pieces = { stops: ["lock_expired", "unsettled", "commit"], splits: [splitBefore("lock_expired", "until <=")] };
/** A settlement of a job that something was asked of. */
export const SETTLE_GUARDED: Pieces = { stops: ["settle", "lock_leases", "intents_of", "commit"] };
export const CANCEL: Pieces = { stops: ["facts", "take", "commit"], splits: [TAKE_SNAPSHOT] };
/** A verb on a running job only leaves a note. */
export const ASK: Pieces = { stops: ["facts", "commit"] };

/** `take` as if it believed what it saw, whoever had taken it meanwhile. */
export function takeBelieving(table: "ready" | "scheduled", columns: string) {
  const name = table === "ready" ? "r" : "s";
  const all = `id, queue, band, tenant, task, ${columns}`;
  const there = table === "ready" ? FROM_READY : `id = any($1::uuid[]) and coalesce($2::text, '${table}') = '${table}'`;
  return {
    statement: "take",
    from: `${name} as (delete from pawl.${table} where ${there} returning ${all})`,
    to: `gone as (delete from pawl.${table} where ${there}), ${name} as (select ${all} from pawl.${table} where ${there})`,
  };
}

/** As if whoever takes a job did not mind that it has moved on since it was looked at. */
export const TAKE_ANYWHERE: Mutation = { statement: "take", from: "coalesce($2::text, '", to: "coalesce(nullif($2::text, $2::text), '" };
