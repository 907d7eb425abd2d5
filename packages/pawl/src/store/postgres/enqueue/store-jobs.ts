import { dependencyMeaning, failureOfParent } from "../../../core/jobs/dependency.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { JobState } from "../../../core/jobs/job.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, statement, type WriteTransaction } from "../connection/db.js";
import { LaneNumbers } from "../connection/lane-numbers.js";
import { sqlFile } from "../connection/sql-statement.js";
import type { Queryable } from "../drivers/driver.js";
import { count } from "../jobs/counters.js";
import { type Facts, readFacts } from "../jobs/job-state.js";
import { addDeath, type JobMove, putWaiting } from "../jobs/waiting-jobs.js";
import type { PartitionRange } from "../schema/partition-range.js";
import type { Candidate } from "./candidate.js";
import { optionsText } from "./job-options.js";

const STORE_JOBS = sqlFile("enqueue/store-jobs.sql");

export async function storeJobs(tx: Queryable, created: readonly Candidate[], range: PartitionRange): Promise<void> {
  if (created.length === 0) return;
  const lanes = new LaneNumbers();
  const numbers = created.map(({ job }) => lanes.number(job.lane));
  await STORE_JOBS.query(tx, {
    now: range.now,
    lane: lanes.columns(),
    job: {
      id: created.map(({ id }) => id),
      lane: numbers,
      input: created.map(({ job }) => job.input),
      options: created.map(({ job }) => optionsText(job)),
      due: created.map(({ due }) => due),
      expire: created.map(({ job }) => job.options?.startWithin),
      deadline: created.map(({ job }) => job.options?.finishWithin),
    },
  });
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
  tx: WriteTransaction,
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
