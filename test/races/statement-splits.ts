import { FROM_READY } from "../../packages/pawl/src/store/postgres/jobs/waiting-jobs.js";
import { type StatementMutation, type StatementSplit, splitBefore, type VerbPieces } from "../support/races/racing-session.js";

/** How the verbs are cut: where a statement's snapshot is taken and nothing is locked yet, and between statements. */
export const CLAIM_SNAPSHOT: StatementSplit = splitBefore("claim", "r.queue = o.queue");
/** What it takes is locked. */
export const CLAIM_LOCKED: StatementSplit = splitBefore("claim", "taken_count < size");
export const SPLIT_SNAPSHOT: StatementSplit = splitBefore("split_rows", "r.ctid = any(");
export const SETTLE_SNAPSHOT: StatementSplit = splitBefore("settle", "l.id = c.lease and l.worker = $2");
/** All is locked and about to be written. */
export const SETTLE_LOCKED: StatementSplit = {
  statement: "settle",
  from: "from settleable) < cardinality",
  to: (barrier) => `from settleable where ${barrier}) < cardinality`,
};
/** A settlement that passes slots on: before it looks who is next, and when the numbers of those are drawn. */
export const PASS_ON_SNAPSHOT: StatementSplit = splitBefore("settle_limited", "h.limit_key = p.key");
export const PASS_ON_DRAWN: StatementSplit = {
  statement: "settle_limited",
  from: "id, priority, attempts, crashes, queue, tenant, task from sorted",
  to: (barrier) => `id, case when ${barrier} then priority end, attempts, crashes, queue, tenant, task from sorted`,
};
export const PROMOTE_SNAPSHOT: StatementSplit = splitBefore("promote", "run_at >= to_timestamp($3::float8 / 1000)");
export const TAKE_SNAPSHOT: StatementSplit = splitBefore("take", "id = any($1::uuid[])");

export const REAP: VerbPieces = { stops: ["lock_expired", "unsettled", "commit"], splits: [splitBefore("lock_expired", "until <=")] };
/** A settlement of a job that something was asked of. */
export const SETTLE_GUARDED: VerbPieces = { stops: ["settle", "lock_leases", "intents_of", "commit"] };
export const CANCEL: VerbPieces = { stops: ["facts", "take", "commit"], splits: [TAKE_SNAPSHOT] };
/** A verb on a running job only leaves a note. */
export const ASK: VerbPieces = { stops: ["facts", "commit"] };

/** `take` as if it believed what it saw, whoever had taken it meanwhile. */
export function takeWithoutCheck(table: "ready" | "scheduled", columns: string) {
  const name = table === "ready" ? "r" : "s";
  const all = `id, queue, priority, tenant, task, ${columns}`;
  const there = table === "ready" ? FROM_READY : `id = any($1::uuid[]) and coalesce($2::text, '${table}') = '${table}'`;
  return {
    statement: "take",
    from: `${name} as (delete from pawl.${table} where ${there} returning ${all})`,
    to: `gone as (delete from pawl.${table} where ${there}), ${name} as (select ${all} from pawl.${table} where ${there})`,
  };
}

/** As if whoever takes a job did not mind that it has moved on since it was looked at. */
export const TAKE_ANYWHERE: StatementMutation = { statement: "take", from: "coalesce($2::text, '", to: "coalesce(nullif($2::text, $2::text), '" };
