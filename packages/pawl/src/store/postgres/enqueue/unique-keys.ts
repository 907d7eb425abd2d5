import { type JobId, jobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import { debouncedUntil, judgeKey, type UniqueKeyHolder, type UniqueRule } from "../../../core/jobs/unique-key.js";
import { type Db, ms, type WriteTransaction } from "../connection/db.js";
import { sqlText } from "../connection/sql-statement.js";
import { endWaiting, MAX_TRIES } from "../jobs/control.js";
import { type Facts, readFacts } from "../jobs/job-state.js";
import { takeWaiting } from "../jobs/waiting-jobs.js";
import { clampDue, type PartitionRange } from "../schema/partition-range.js";
import { type Candidate, uniqueKey } from "./candidate.js";

/** Takes keys that nobody holds, and locks all of them: sorted, so that two batches never wait in a circle. */
const LOCK_KEYS = sqlText(
  "lock_keys",
  `insert into pawl.unique_key as k (tenant, task, key, job, hold, until, since)
   select g.tenant, g.task, g.key, g.job,
     g.hold  -- stop: between-unique-keys
     , to_timestamp(g.until / 1000), to_timestamp(:now::float8 / 1000)
   from unnest(:key.tenant::text[], :key.task::text[], :key.key::text[], :key.job::uuid[], :key.hold::text[], :key.until::float8[])
     as g(tenant, task, key, job, hold, until)
   order by g.tenant collate "C", g.task collate "C", g.key collate "C"  -- guard: unique-keys-in-order
   on conflict (tenant, task, key) do update set job =
     k.job  -- guard: holder-stays
   returning tenant, task, key, job, hold, ${ms("until")} as until, ${ms("since")} as since`,
);
const MOVE_KEY = sqlText(
  "move_key",
  `update pawl.unique_key set job = :job::uuid, hold = :hold::text, until = to_timestamp(:until::float8 / 1000), since = to_timestamp(:since::float8 / 1000)
   where tenant = :tenant::text and task = :task::text and key = :key::text`,
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
  tx: WriteTransaction,
  candidates: readonly Candidate[],
  range: PartitionRange,
  answers: Map<NewJob, Enqueued>,
): Promise<ReadonlyMap<NewJob, Candidate>> {
  const redated = new Map<NewJob, Candidate>();
  const keyed = candidates.filter(({ job }) => job.unique !== undefined);
  if (keyed.length === 0) return redated;
  const rows = await LOCK_KEYS.query<KeyRow>(tx, {
    now: range.now,
    key: {
      tenant: keyed.map(({ job }) => job.lane.tenant),
      task: keyed.map(({ job }) => job.lane.task),
      key: keyed.map(({ job }) => job.unique?.key),
      job: keyed.map(({ id }) => id),
      hold: keyed.map(({ job }) => holdText(job.unique as UniqueRule)),
      until: keyed.map(({ job }) => holdUntil(job.unique as UniqueRule, range)),
    },
  });
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
  tx: WriteTransaction,
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
  const { tenant, task } = job.lane;
  await MOVE_KEY.query(tx, { tenant, task, key: rule.key, job: id, hold: holdText(rule), until: holdUntil(rule, range) ?? null, since });
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
