import type { AttemptRecord } from "../../../core/jobs/job.js";
import { BOUNDS } from "../../../core/values/bounds.js";
import { splitBySize } from "../../../core/values/split-by-size.js";
import type { ExportedJob } from "../../port/duties/duties.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { outcomeCode, stateCode } from "../connection/codes.js";
import { type Db, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { count } from "./counters.js";
import { readFacts } from "./job-state.js";

const RESTORE_JOBS = statement(
  "restore_jobs",
  `insert into pawl.job_kept (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
   select to_timestamp(g.created / 1000), to_timestamp(g.due / 1000), g.id, g.priority, g.queue, g.tenant, g.task, g.input::json, g.options::json, nextval('pawl.ready_seq')
   from unnest($1::float8[], $2::float8[], $3::uuid[], $4::int2[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
     as g(created, due, id, priority, queue, tenant, task, input, options)`,
);
/** Their workers are long gone: a row of their own keeps the name. */
const RESTORE_WORKERS = statement(
  "restore_workers",
  "insert into pawl.worker (instance, name, started_at) select gen_random_uuid(), g.name, now() from unnest($1::text[]) as g(name) returning id, name",
);
const RESTORE_HISTORY = statement(
  "restore_history",
  // Where no partition can be, as their jobs.
  `insert into pawl.history_kept (home, last, lease, since, ended, first, worker, outcomes, failures, outputs)
   select j.home, j.home, g.lease, to_timestamp(g.started / 1000), to_timestamp(g.finished / 1000), g.job, g.worker, array[1, g.outcome, g.next, g.attempts, g.crashes]::int[], array[g.failure::json], array[g.output::json]
   from unnest($1::bigint[], $2::float8[], $3::float8[], $4::uuid[], $5::int[], $6::int2[], $7::int2[], $8::int2[], $9::int2[], $10::text[], $11::text[])
     as g(lease, started, finished, job, worker, outcome, next, attempts, crashes, output, failure)
   join pawl.job_kept j on j.id = g.job`,
);
const RESTORE_DEAD = statement(
  "restore_dead",
  `insert into pawl.dead (died_at, id, priority, queue, tenant, task, kind, name)
   select to_timestamp(g.died / 1000), g.id, g.priority, g.queue, g.tenant, g.task, g.kind, g.name
   from unnest($1::float8[], $2::uuid[], $3::int2[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) as g(died, id, priority, queue, tenant, task, kind, name)`,
);

/** Brings exported jobs back with their history, where no partition can: into the *_kept tables. */
export function restore(db: Db, batch: readonly ExportedJob[]): Promise<number> {
  return db.transaction(async (tx) => {
    const there = new Set(
      (
        await readFacts(
          tx,
          batch.map(({ job }) => job.id),
        )
      ).map(({ id }) => id),
    );
    const missing = batch.filter(({ job }) => !there.has(job.id));
    if (missing.length === 0) return 0;
    for (const some of splitBySize(missing, ({ job }) => job.input.length, BOUNDS.statement)) await restoreJobs(tx, some);
    for (const some of splitBySize(missing, historySize, BOUNDS.statement)) await restoreHistory(tx, some);
    await restoreDead(
      tx,
      missing.filter(({ job }) => job.state === "dead"),
    );
    await count(
      tx,
      missing.map(({ job }) => ({ lane: job.lane, from: undefined, to: job.state })),
      true,
    );
    return missing.length;
  });
}

/** In characters, about. */
function historySize({ history }: ExportedJob): number {
  return history.reduce((sum, { output, replacedInput, failure }) => {
    return sum + (output ?? replacedInput ?? "").length + (failure === undefined ? 0 : JSON.stringify(failure).length);
  }, 0);
}

async function restoreJobs(tx: DriverTransaction, batch: readonly ExportedJob[]): Promise<void> {
  const jobs = batch.map(({ job }) => job);
  await tx.query(RESTORE_JOBS, [
    plainArray(jobs.map((job) => job.createdAt)),
    plainArray(jobs.map((job) => job.dueAt)),
    plainArray(jobs.map((job) => job.id)),
    plainArray(jobs.map((job) => job.lane.priority)),
    textArray(jobs.map((job) => job.lane.queue)),
    textArray(jobs.map((job) => job.lane.tenant)),
    textArray(jobs.map((job) => job.lane.task)),
    textArray(jobs.map((job) => job.input)),
    textArray(jobs.map((job) => JSON.stringify(job.options))),
  ]);
}

async function restoreHistory(tx: DriverTransaction, batch: readonly ExportedJob[]): Promise<void> {
  const lines = batch.flatMap(({ job, history }) => history.map((line) => ({ line, job })));
  const names = [...new Set(lines.flatMap(({ line }) => line.worker ?? []))];
  const workers = new Map((await tx.query<{ id: number; name: string }>(RESTORE_WORKERS, [textArray(names)])).map(({ id, name }) => [name, id]));
  const column = (value: (line: AttemptRecord) => string | number | undefined): string => plainArray(lines.map(({ line }) => value(line)));
  await tx.query(RESTORE_HISTORY, [
    column((line) => line.lease),
    column((line) => line.startedAt),
    column((line) => line.finishedAt),
    column((line) => line.job),
    column((line) => (line.worker === undefined ? undefined : workers.get(line.worker))),
    column((line) => outcomeCode(line.outcome)),
    column((line) => stateCode(line.next)),
    // Only the counts the job ended with are exported: they stand for all its lines.
    plainArray(lines.map(({ job }) => job.attempts)),
    plainArray(lines.map(({ job }) => job.crashes)),
    textArray(lines.map(({ line }) => line.output ?? line.replacedInput)),
    textArray(lines.map(({ line }) => (line.failure === undefined ? undefined : JSON.stringify(line.failure)))),
  ]);
}

async function restoreDead(tx: DriverTransaction, batch: readonly ExportedJob[]): Promise<void> {
  if (batch.length === 0) return;
  const jobs = batch.map(({ job }) => job);
  await tx.query(RESTORE_DEAD, [
    plainArray(jobs.map((job) => job.finishedAt ?? job.dueAt)),
    plainArray(jobs.map((job) => job.id)),
    plainArray(jobs.map((job) => job.lane.priority)),
    textArray(jobs.map((job) => job.lane.queue)),
    textArray(jobs.map((job) => job.lane.tenant)),
    textArray(jobs.map((job) => job.lane.task)),
    textArray(jobs.map((job) => job.failure?.kind ?? "error")),
    textArray(jobs.map((job) => job.failure?.name ?? "error")),
  ]);
}
