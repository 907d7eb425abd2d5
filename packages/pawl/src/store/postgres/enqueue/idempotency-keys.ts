import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";
import type { PartitionRange } from "../schema/partition-range.js";
import type { Candidate } from "./candidate.js";

/** Inserting locks a name that is new and one that is old alike; sorted, so that two batches never wait in a circle. */
const LOCK_REQUESTS = statement(
  "lock_requests",
  `insert into pawl.idempotency_key as r (tenant, id, job, digest, until)
   select g.tenant, g.id, g.job, g.digest, to_timestamp($4::float8 / 1000) from unnest($1::text[], $2::text[], $3::uuid[], $6::text[]) as g(tenant, id, job, digest) order by g.tenant collate "C", g.id collate "C"
   on conflict (tenant, id) do update set job = case when r.until > to_timestamp($5::float8 / 1000) then r.job else excluded.job end,
     digest = case when r.until > to_timestamp($5::float8 / 1000) then r.digest else excluded.digest end,
     until = case when r.until > to_timestamp($5::float8 / 1000) then r.until else excluded.until end
   returning tenant, id, job, digest`,
);

/** What is still remembered of an idempotency key: its first job, and what was asked for. */
export interface StoredIdempotencyKey {
  readonly job: JobId;
  /** null: it was stored by a version that kept none */
  readonly digest: string | null;
}

/** By tenant and idempotency key (`requestKey`); those that are new are not in it. */
export async function lockIdempotencyKeys(
  tx: Queryable,
  candidates: readonly Candidate[],
  range: PartitionRange,
): Promise<ReadonlyMap<string, StoredIdempotencyKey>> {
  const withKey = candidates.filter(({ job }) => job.idempotencyKey !== undefined);
  if (withKey.length === 0) return new Map();
  const rows = await tx.query<{ tenant: string; id: string } & StoredIdempotencyKey>(LOCK_REQUESTS, [
    textArray(withKey.map(({ job }) => job.lane.tenant)),
    textArray(withKey.map(({ job }) => job.idempotencyKey?.id)),
    plainArray(withKey.map(({ id }) => id)),
    range.now + DEFAULTS.keep.idempotencyKey,
    range.now,
    textArray(withKey.map(({ job }) => job.idempotencyKey?.digest)),
  ]);
  const own = new Set(withKey.map(({ id }) => id));
  return new Map(rows.filter((row) => !own.has(row.job)).map((row) => [`${row.tenant}\u0001${row.id}`, row]));
}

const MOVE_REQUEST = statement("move_request", "update pawl.idempotency_key set job = $3::uuid where tenant = $1 and id = $2");
const FORGET_REQUEST = statement("forget_request", "delete from pawl.idempotency_key where tenant = $1 and id = $2");

/** A request that was answered with another job remembers that one; one that was turned away remembers nothing. */
export async function saveIdempotencyKeys(tx: Queryable, candidates: readonly Candidate[], answers: ReadonlyMap<NewJob, Enqueued>): Promise<void> {
  for (const { job, id } of candidates) {
    const answer = answers.get(job) as Enqueued;
    if (job.idempotencyKey === undefined) continue;
    if (answer.kind === "existing" && answer.id !== id) await tx.query(MOVE_REQUEST, [job.lane.tenant, job.idempotencyKey.id, answer.id]);
    if (answer.kind === "rejected" || answer.kind === "dependencyUnknown") await tx.query(FORGET_REQUEST, [job.lane.tenant, job.idempotencyKey.id]);
  }
}
