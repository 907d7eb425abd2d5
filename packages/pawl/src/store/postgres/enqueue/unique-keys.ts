import { type JobId, jobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { debouncedUntil, judgeKey, type UniqueKeyHolder, type UniqueRule } from "../../../core/jobs/unique-key.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, ms, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { endWaiting, MAX_TRIES } from "../jobs/control.js";
import { type Facts, readFacts } from "../jobs/job-state.js";
import { takeWaiting } from "../jobs/waiting-jobs.js";
import { clampDue, type PartitionRange } from "../schema/partition-range.js";
import { type Candidate, uniqueKey } from "./candidate.js";

const LOCK_KEYS = statement(
  "lock_keys",
  `insert into pawl.unique_key as k (tenant, task, key, job, hold, until, since)
   select g.tenant, g.task, g.key, g.job, g.hold, to_timestamp(g.until / 1000), to_timestamp($7::float8 / 1000)
   from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::float8[]) as g(tenant, task, key, job, hold, until)
   order by g.tenant collate "C", g.task collate "C", g.key collate "C"
   on conflict (tenant, task, key) do update set job = k.job
   returning tenant, task, key, job, hold, ${ms("until")} as until, ${ms("since")} as since`,
);
const MOVE_KEY = statement(
  "move_key",
  "update pawl.unique_key set job = $4::uuid, hold = $5, until = to_timestamp($6::float8 / 1000), since = to_timestamp($7::float8 / 1000) where tenant = $1 and task = $2 and key = $3",
);

interface KeyRow {
  readonly tenant: string;
  readonly task: string;
  readonly key: string;
  readonly job: JobId;
  readonly hold: "unstarted" | "unfinished" | "period";
  readonly until: number | null;
  readonly since: number | null;
}

/** Answers those that are due at another time than they asked for: debounced for as long as that may be. */
export async function checkUniqueKeys(
  db: Db,
  tx: DriverTransaction,
  candidates: readonly Candidate[],
  range: PartitionRange,
  answers: Map<NewJob, Enqueued>,
): Promise<ReadonlyMap<NewJob, Candidate>> {
  const redated = new Map<NewJob, Candidate>();
  const keyed = candidates.filter(({ job }) => job.unique !== undefined);
  if (keyed.length === 0) return redated;
  const rows = await tx.query<KeyRow>(LOCK_KEYS, [
    textArray(keyed.map(({ job }) => job.lane.tenant)),
    textArray(keyed.map(({ job }) => job.lane.task)),
    textArray(keyed.map(({ job }) => job.unique?.key)),
    plainArray(keyed.map(({ id }) => id)),
    textArray(keyed.map(({ job }) => holdText(job.unique as UniqueRule))),
    plainArray(keyed.map(({ job }) => holdUntil(job.unique as UniqueRule, range))),
    range.now,
  ]);
  const keyRows = new Map(rows.map((row) => [`${row.tenant}\u0001${row.task}\u0001${row.key}`, row]));
  const contested = keyed.filter(({ job, id }) => keyRows.get(uniqueKey(job))?.job !== id);
  const holders = new Map(
    (
      await readFacts(
        tx,
        contested.map(({ job }) => (keyRows.get(uniqueKey(job)) as KeyRow).job),
      )
    ).map((facts) => [facts.id, facts]),
  );
  for (const candidate of contested) {
    const row = keyRows.get(uniqueKey(candidate.job)) as KeyRow;
    const due = debouncedUntil(candidate.job.unique as UniqueRule, row.since ?? range.now, range.now);
    const later = due === undefined ? candidate : { ...candidate, due, id: jobId(clampDue(due, range), candidate.job.idSuffix) };
    const answer = await checkUniqueKey(db, tx, { now: candidate, later }, row, holders.get(row.job), range);
    answers.set(candidate.job, answer);
    if (answer.kind === "created" && answer.replaced !== undefined) redated.set(candidate.job, later);
  }
  return redated;
}

async function checkUniqueKey(
  db: Db,
  tx: DriverTransaction,
  candidate: { readonly now: Candidate; readonly later: Candidate },
  row: KeyRow,
  facts: Facts | undefined,
  range: PartitionRange,
  tries = 1,
): Promise<Enqueued> {
  const rule = candidate.now.job.unique as UniqueRule;
  const verdict = facts === undefined ? ({ kind: "free" } as const) : judgeKey(holderOf(row, facts, range), rule);
  if (verdict.kind === "existing") return { kind: "existing", id: row.job };
  if (verdict.kind === "rejected") return { kind: "rejected", holder: row.job };
  if (verdict.kind === "replace") {
    const [old] = await takeWaiting(tx, [row.job]);
    if (old === undefined) {
      // Between the look and the take it was claimed (a running job is not replaced), promoted or ended: look again.
      if (tries === MAX_TRIES) return { kind: "rejected", holder: row.job };
      const [now] = await readFacts(tx, [row.job]);
      return checkUniqueKey(db, tx, candidate, row, now, range, tries + 1);
    }
    await endWaiting(db, tx, old, "cancelled", "replaced");
  }
  const { job, id } = verdict.kind === "replace" ? candidate.later : candidate.now;
  const since = verdict.kind === "replace" ? (row.since ?? range.now) : range.now;
  await tx.query(MOVE_KEY, [job.lane.tenant, job.lane.task, rule.key, id, holdText(rule), holdUntil(rule, range) ?? null, since]);
  return { kind: "created", id, ...(verdict.kind === "replace" ? { replaced: row.job } : {}) };
}

function holderOf(row: KeyRow, facts: Facts, range: PartitionRange): UniqueKeyHolder {
  const remaining = (row.until ?? 0) - range.now;
  return { job: row.job, state: facts.state, started: facts.started, remaining, hold: row.hold === "period" ? remaining : row.hold };
}
function holdText(rule: UniqueRule): string {
  return typeof rule.hold === "number" ? "period" : rule.hold;
}
function holdUntil(rule: UniqueRule, range: PartitionRange): number | undefined {
  return typeof rule.hold === "number" ? range.now + rule.hold : undefined;
}
