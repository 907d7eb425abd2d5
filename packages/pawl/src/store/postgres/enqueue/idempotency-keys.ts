import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import { statement } from "../connection/db.js";
import { sqlText } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import type { PartitionRange } from "../schema/partition-range.js";
import type { Candidate } from "./candidate.js";

/** Inserting locks a name that is new and one that is old alike; sorted, so that two batches never wait in a circle. */
const LOCK_REQUESTS = sqlText(
  "lock_requests",
  `insert into pawl.idempotency_key as r (tenant, id, job, digest, until)
   select g.tenant,
     g.id  -- stop: between-idempotency-keys
     , g.job, g.digest, to_timestamp(:until::float8 / 1000)
   from unnest(:request.tenant::text[], :request.id::text[], :request.job::uuid[], :request.digest::text[]) as g(tenant, id, job, digest)
   order by g.tenant collate "C", g.id collate "C"  -- guard: idempotency-keys-in-order
   on conflict (tenant, id) do update set
     job = case when r.until > to_timestamp(:now::float8 / 1000) then
       r.job  -- guard: first-job-stays
       else excluded.job end,
     digest = case when r.until > to_timestamp(:now::float8 / 1000) then
       r.digest  -- guard: first-digest-stays
       else excluded.digest end,
     until = case when r.until > to_timestamp(:now::float8 / 1000) then r.until else excluded.until end
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
  const rows = await LOCK_REQUESTS.query<{ tenant: string; id: string } & StoredIdempotencyKey>(tx, {
    now: range.now,
    until: range.now + DEFAULTS.keep.idempotencyKey,
    request: {
      tenant: withKey.map(({ job }) => job.lane.tenant),
      id: withKey.map(({ job }) => job.idempotencyKey?.id),
      job: withKey.map(({ id }) => id),
      digest: withKey.map(({ job }) => job.idempotencyKey?.digest),
    },
  });
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
