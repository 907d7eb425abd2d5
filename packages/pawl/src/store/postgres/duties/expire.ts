import type { JobId } from "../../../core/jobs/id.js";
import { isFinished } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { type DueTimer, dueTimer, lateFailure } from "../../../core/jobs/timer.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { plainArray } from "../connection/arrays.js";
import { NOW, type StoreDb, statement } from "../connection/db.js";
import { readFacts } from "../jobs/job-state.js";
import { takeWaiting } from "../jobs/waiting-jobs.js";
import { readPartitionRange } from "../schema/partition-range.js";
import { killJobs } from "../settle/kill-jobs.js";
import { releaseDependents } from "../settle/release-dependents.js";

const DUE_TIMERS = statement(
  "due_timers",
  `delete from pawl.timer where (job, kind) in (select job, kind from pawl.timer where at >= to_timestamp($3::float8 / 1000) and at <= ${NOW} and job <> all($4::uuid[]) order by at limit $2 for update skip locked) returning job`,
);
const LOOK_AGAIN = statement(
  "timer_again",
  `insert into pawl.timer (at, job, kind) select ${NOW}, g.job, 'deadline' from unnest($2::uuid[]) as g(job)  -- guard: running-is-looked-at-again
   on conflict do nothing`,
);

interface Expired {
  readonly readied: readonly Lane[];
  readonly finished: readonly JobId[];
}

/**
 * A timer kills a job that waits. One that runs is stopped by its worker, and looked at again until it is. Most timers
 * are of jobs that ended in time: they take up nothing of the limit.
 */
export async function expire(db: StoreDb, watermarks: LowWatermarks, limit: number): Promise<Expired> {
  const readied: Lane[] = [];
  const finished: JobId[] = [];
  const running = new Set<JobId>();
  for (;;) {
    const batchSize = limit - finished.length;
    const some = await expireSome(db, watermarks, batchSize, running);
    readied.push(...some.readied);
    finished.push(...some.finished);
    if (some.seen < batchSize || finished.length >= limit) return { readied, finished };
    for (const job of some.again) running.add(job);
  }
}

interface SomeExpired extends Expired {
  /** how many timers were due */
  readonly seen: number;
  /** jobs to be looked at again, the next time */
  readonly again: readonly JobId[];
}

/** One batch of timers, but not of jobs that were looked at just now. */
function expireSome(db: StoreDb, watermarks: LowWatermarks, limit: number, except: ReadonlySet<JobId>): Promise<SomeExpired> {
  return db.transaction(async (tx) => {
    const due = await tx.query<{ job: JobId }>(DUE_TIMERS, [db.now(), limit, watermarks.timer.value, plainArray([...except])]);
    if (due.length === 0) return { readied: [], finished: [], seen: 0, again: [] };
    const { now } = await readPartitionRange(db, tx);
    const overdue = new Map<JobId, DueTimer["kind"]>();
    const running: JobId[] = [];
    for (const job of await readFacts(tx, [...new Set(due.map((timer) => timer.job))])) {
      const timer = dueTimer(job.dueAt, job.options, job.started);
      if (timer === undefined || timer.at > now || isFinished(job.state)) continue;
      if (job.state === "running") running.push(job.id);
      else overdue.set(job.id, timer.kind);
    }
    const victims = await takeWaiting(tx, [...overdue.keys()]);
    await killJobs(db, tx, victims, (job) => lateFailure(overdue.get(job.id) as DueTimer["kind"]));
    // Some may have been claimed or promoted since they were looked at: their timers must not be lost.
    const taken = new Set(victims.map((job) => job.id));
    const again = [...running, ...[...overdue.keys()].filter((id) => !taken.has(id))];
    if (again.length > 0) await tx.query(LOOK_AGAIN, [db.now(), plainArray(again)]);
    const readied = await releaseDependents(
      db,
      tx,
      victims.map((job) => ({ id: job.id, state: "dead" as const })),
    );
    return { readied, finished: victims.map((job) => job.id), seen: due.length, again };
  });
}
