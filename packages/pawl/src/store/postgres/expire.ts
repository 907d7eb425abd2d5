import type { JobId } from "../../core/id.js";
import { isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { type DueTimer, dueTimer, lateFailure } from "../../core/timer.js";
import { plainArray } from "./arrays.js";
import { type Db, NOW, statement } from "./db.js";
import { die } from "./die.js";
import { readFacts } from "./facts.js";
import type { LowWaters } from "./low-water.js";
import { take } from "./pending.js";
import { release } from "./release.js";
import { readSpan } from "./span.js";

const DUE_TIMERS = statement(
  "due_timers",
  `delete from pawl.timer where (job, kind) in (select job, kind from pawl.timer where at >= to_timestamp($3::float8 / 1000) and at <= ${NOW} and job <> all($4::uuid[]) order by at limit $2 for update skip locked) returning job`,
);
const LOOK_AGAIN = statement(
  "timer_again",
  `insert into pawl.timer (at, job, kind) select ${NOW}, g.job, 'deadline' from unnest($2::uuid[]) as g(job) on conflict do nothing`,
);

interface Expired {
  readonly readied: readonly Lane[];
  readonly finished: readonly JobId[];
}

/**
 * A timer kills a job that waits. One that runs is stopped by its worker, and looked at again until it is. Most timers
 * are of jobs that ended in time: they take up nothing of the limit.
 */
export async function expire(db: Db, low: LowWaters, limit: number): Promise<Expired> {
  const readied: Lane[] = [];
  const finished: JobId[] = [];
  const running = new Set<JobId>();
  for (;;) {
    const asked = limit - finished.length;
    const some = await expireSome(db, low, asked, running);
    readied.push(...some.readied);
    finished.push(...some.finished);
    if (some.seen < asked || finished.length >= limit) return { readied, finished };
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
function expireSome(db: Db, low: LowWaters, limit: number, except: ReadonlySet<JobId>): Promise<SomeExpired> {
  return db.transaction(async (tx) => {
    const due = await tx.query<{ job: JobId }>(DUE_TIMERS, [db.now(), limit, low.timer.value, plainArray([...except])]);
    if (due.length === 0) return { readied: [], finished: [], seen: 0, again: [] };
    const { now } = await readSpan(db, tx);
    const doomed = new Map<JobId, DueTimer["kind"]>();
    const running: JobId[] = [];
    for (const job of await readFacts(tx, [...new Set(due.map((timer) => timer.job))])) {
      const timer = dueTimer(job.dueAt, job.options, job.started);
      if (timer === undefined || timer.at > now || isFinished(job.state)) continue;
      if (job.state === "running") running.push(job.id);
      else doomed.set(job.id, timer.kind);
    }
    const victims = await take(tx, [...doomed.keys()]);
    await die(db, tx, victims, (job) => lateFailure(doomed.get(job.id) as DueTimer["kind"]));
    // Some may have been claimed or promoted since they were looked at: their timers must not be lost.
    const taken = new Set(victims.map((job) => job.id));
    const again = [...running, ...[...doomed.keys()].filter((id) => !taken.has(id))];
    if (again.length > 0) await tx.query(LOOK_AGAIN, [db.now(), plainArray(again)]);
    const readied = await release(
      db,
      tx,
      victims.map((job) => ({ id: job.id, state: "dead" as const })),
    );
    return { readied, finished: victims.map((job) => job.id), seen: due.length, again };
  });
}
