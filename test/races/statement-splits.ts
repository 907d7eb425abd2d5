import type { StatementMutation, StatementSplit, VerbPieces } from "../support/races/racing-session.js";

/** How the verbs are cut: where a statement's snapshot is taken and nothing is locked yet, and between statements. */
export const CLAIM_SNAPSHOT: StatementSplit = { at: "claim-snapshot" };
/** What it takes is locked. */
export const CLAIM_LOCKED: StatementSplit = { at: "claim-locked" };
export const SPLIT_SNAPSHOT: StatementSplit = { at: "split-rows-snapshot" };
export const SETTLE_SNAPSHOT: StatementSplit = { at: "settle-snapshot" };
/** All is locked and about to be written. */
export const SETTLE_LOCKED: StatementSplit = { at: "settle-locked" };
/** A settlement that passes slots on: before it looks who is next, and when the numbers of those are drawn. */
export const PASS_ON_SNAPSHOT: StatementSplit = { at: "pass-on-snapshot" };
export const PASS_ON_DRAWN: StatementSplit = { at: "pass-on-drawn", to: (barrier, priority) => `case when ${barrier} then ${priority} end` };
export const PROMOTE_SNAPSHOT: StatementSplit = { at: "promote-snapshot" };
export const TAKE_SNAPSHOT: StatementSplit = { at: "take-waiting-snapshot" };

export const REAP: VerbPieces = { stops: ["lock_expired", "unsettled", "commit"], splits: [{ at: "lock-expired-snapshot" }] };
/** A settlement of a job that something was asked of. */
export const SETTLE_GUARDED: VerbPieces = { stops: ["settle", "lock_leases", "intents_of", "commit"] };
export const CANCEL: VerbPieces = { stops: ["facts", "take_waiting", "commit"], splits: [TAKE_SNAPSHOT] };
/** A verb on a running job only leaves a note. */
export const ASK: VerbPieces = { stops: ["facts", "commit"] };

/** `take-waiting.sql` as if it believed what it saw, whoever had taken it meanwhile. */
export function takeWithoutCheck(table: "ready" | "scheduled"): StatementMutation {
  return {
    guard: `${table}-were-taken`,
    becomes: `(select * from pawl.${table} where id = any($1::uuid[]) and coalesce($2::text, '${table}') = '${table}') seen`,
  };
}

/** As if whoever takes a job did not mind that it has moved on since it was looked at. */
export const TAKE_ANYWHERE: StatementMutation = { guard: "taken-of-that-state", becomes: "and ($2::text is null or true)" };
