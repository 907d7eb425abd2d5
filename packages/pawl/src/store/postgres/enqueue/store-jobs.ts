import { dependencyMeaning, failureOfParent } from "../../../core/jobs/dependency.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { JobState } from "../../../core/jobs/job.js";
import { ALL_NULL, plainArray, textArray } from "../connection/arrays.js";
import { type Db, statement } from "../connection/db.js";
import { LaneNumbers, laneCte } from "../connection/lane-numbers.js";
import type { DriverTransaction, Queryable } from "../drivers/driver.js";
import { count } from "../jobs/counters.js";
import { type Facts, readFacts } from "../jobs/job-state.js";
import { addDeath, type JobMove, putWaiting } from "../jobs/waiting-jobs.js";
import type { PartitionRange } from "../schema/partition-range.js";
import type { Candidate } from "./candidate.js";
import { optionsText } from "./job-options.js";

const STORE = statement(
  "store_jobs",
  `
  with ${laneCte(2)},
  items as materialized (
    select l.queue, l.priority, l.tenant, l.task, g.* from unnest($6::uuid[], $7::int[], $8::text[], $9::text[], $10::float8[], $11::float8[], $12::float8[]) as g(id, lane, input, options, due, expire, deadline)
    join lane l on l.no = g.lane
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
    select to_timestamp($1::float8 / 1000), to_timestamp(due / 1000), id, priority, queue, tenant, task, input::json, options::json, nextval('pawl.ready_seq') from items
    where pg_current_xact_id() is not null
  )
  insert into pawl.timer (at, job, kind)
  select to_timestamp((g.due + t.after) / 1000), g.id, t.kind
  from items g cross join lateral (values ('expire', g.expire), ('deadline', g.deadline)) as t(kind, after) where t.after is not null`,
);

export async function storeJobs(tx: Queryable, created: readonly Candidate[], range: PartitionRange): Promise<void> {
  if (created.length === 0) return;
  const lanes = new LaneNumbers();
  const numbers = created.map(({ job }) => lanes.number(job.lane));
  const timed = created.some(({ job }) => job.options?.startWithin !== undefined || job.options?.finishWithin !== undefined);
  await tx.query(STORE, [
    range.now,
    ...lanes.parameters(),
    plainArray(created.map(({ id }) => id)),
    plainArray(numbers),
    textArray(created.map(({ job }) => job.input)),
    textArray(created.map(({ job }) => optionsText(job))),
    plainArray(created.map(({ due }) => due)),
    timed ? plainArray(created.map(({ job }) => job.options?.startWithin)) : ALL_NULL,
    timed ? plainArray(created.map(({ job }) => job.options?.finishWithin)) : ALL_NULL,
  ]);
}

export async function readParents(tx: Queryable, candidates: readonly Candidate[]): Promise<ReadonlyMap<JobId, Facts>> {
  const ids = new Set(candidates.flatMap(({ job }) => job.dependsOn?.parents ?? []));
  return new Map((await readFacts(tx, [...ids])).map((facts) => [facts.id, facts]));
}

const INSERT_DEPENDENCIES = statement(
  "tie",
  "insert into pawl.dependency (parent, child, on_dependency_death) select * from unnest($1::uuid[], $2::uuid[], $3::text[]) on conflict do nothing",
);

/** Where each new job goes: ready or scheduled by its time, blocked while a parent is not done, dead if one dooms it. */
export async function storeStates(
  db: Db,
  tx: DriverTransaction,
  created: readonly Candidate[],
  parents: ReadonlyMap<JobId, Facts>,
  range: PartitionRange,
): Promise<void> {
  const ties: { parent: JobId; child: JobId; onDependencyDeath: string }[] = [];
  const moves = created.map(({ job, id, due }): JobMove => {
    const base = { id, lane: job.lane, attempts: 0, crashes: 0, runAt: due };
    const { parents: ids = [], onDependencyDeath = "die" } = job.dependsOn ?? {};
    const judged = ids.map((parent) => ({ parent, release: dependencyMeaning((parents.get(parent) as Facts).state, onDependencyDeath) }));
    const failedParent = judged.find(({ release }) => release === "dying");
    if (failedParent !== undefined) return { ...base, to: "dead", failure: failureOfParent(failedParent.parent) };
    const waits = judged.filter(({ release }) => release === "waits");
    for (const { parent } of waits) ties.push({ parent, child: id, onDependencyDeath });
    if (waits.length > 0) return { ...base, to: "blocked" };
    return { ...base, to: due <= range.now ? "ready" : "scheduled" };
  });
  if (ties.length > 0)
    await tx.query(INSERT_DEPENDENCIES, [
      plainArray(ties.map((tie) => tie.parent)),
      plainArray(ties.map((tie) => tie.child)),
      textArray(ties.map((tie) => tie.onDependencyDeath)),
    ]);
  await putWaiting(db, tx, moves);
  const deadOnArrival = moves.filter((job) => job.to === "dead");
  await addDeath(db, tx, deadOnArrival);
  await count(
    tx,
    moves.map((job) => ({ lane: job.lane, from: undefined, to: job.to as JobState })),
  );
}
