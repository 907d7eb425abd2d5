import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { LogEntry } from "../../port/settle/records.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { levelCode } from "../connection/codes.js";
import { type Db, NOW, statement } from "../connection/db.js";

/** Only lines of jobs the worker holds are kept. `once` rather than `kept` order: by time, then as they came. */
const LOG = statement(
  "log",
  `
  with entries as materialized (
    select * from unnest($2::bigint[], $3::uuid[], $4::float8[], $5::int2[], $6::text[], $7::text[]) with ordinality as g(lease, job, at, level, message, data, ord)
  ),
  unsettled as materialized (
    select g.lease, g.job from (select distinct lease, job from entries) g
    where (select not array_position(l.jobs, g.job) <@ l.settled from pawl.lease l where l.id = g.lease and l.worker = $1)
  ),
  items as materialized (select g.* from entries g join unsettled h on h.lease = g.lease and h.job = g.job order by g.ord),
  k as (insert into pawl.log_kept (at, lease, job, level, message, data)
    select to_timestamp(at / 1000), lease, job, level, message, data::json from items where job < (select floor from pawl.partition_range))
  insert into pawl.log (at, lease, job, level, message, data)
  select to_timestamp(at / 1000), lease, job, level, message, data::json from items where job >= (select floor from pawl.partition_range)`,
);

export async function log(db: Db, worker: number, entries: readonly LogEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await db.query(LOG, [
    worker,
    plainArray(entries.map((entry) => entry.lease)),
    plainArray(entries.map((entry) => entry.job)),
    plainArray(entries.map((entry) => entry.at)),
    plainArray(entries.map((entry) => levelCode(entry.level))),
    textArray(entries.map((entry) => entry.message)),
    textArray(entries.map((entry) => entry.data)),
  ]);
}

const RECALL = statement("recall", `select value::text from pawl.effect where job = $2::uuid and name = $3 and until > ${NOW}`);

export async function recall(db: Db, job: JobId, name: string): Promise<string | undefined> {
  const [row] = await db.query<{ value: string }>(RECALL, [db.now(), job, name]);
  return row?.value;
}

/** The lease is locked for the moment, so that a reap cannot slip between the check and the record. */
const RECORD = statement(
  "record",
  `
  with own as materialized (select id from pawl.lease where id = $2::bigint and worker = $3 and $4::uuid = any(jobs)
    and not array_position(jobs, $4::uuid) <@ settled for share),
  saved as (
    insert into pawl.effect as e (job, name, value, until) select $4::uuid, $5, $6::json, ${NOW} + $7 * interval '1 millisecond' from own
    on conflict (job, name) do update set
      value = case when e.until > ${NOW} then e.value else excluded.value end,
      until = case when e.until > ${NOW} then e.until else excluded.until end
    returning value::text
  )
  select value from saved`,
);

export async function record(
  db: Db,
  worker: number,
  entry: { lease: LeaseId; job: JobId; name: string; value: string; ttl: number },
): Promise<{ readonly value: string } | "stale"> {
  const [row] = await db.query<{ value: string }>(RECORD, [db.now(), entry.lease, worker, entry.job, entry.name, entry.value, entry.ttl]);
  return row === undefined ? "stale" : { value: row.value };
}
