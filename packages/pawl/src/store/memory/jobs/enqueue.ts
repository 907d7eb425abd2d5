import { dependencyMeaning, failureOfParent } from "../../../core/jobs/dependency.js";
import { type JobId, jobId } from "../../../core/jobs/id.js";
import { type Enqueued, isSameRequest, type JobRequest, type NewJob } from "../../../core/jobs/job.js";
import { attemptsSoFar, deathOf, decide } from "../../../core/jobs/outcome.js";
import { debouncedUntil, judgeKey, type UniqueKeyVerdict, type UniqueRule } from "../../../core/jobs/unique-key.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import { pawlError } from "../../../core/values/error.js";
import { bringRules, statusUnderLimits } from "../limits/limit-queues.js";
import { noteMove } from "../observe/series.js";
import type { JobStatus, MemoryJob, Tables } from "../state.js";
import { apply, releaseDependents, systemEntry } from "./history.js";
import { addEdge, enter, hasStarted, waiting } from "./move.js";

/** One by one, so that the first of two alike wins. Nothing is stored before every id is known to be new. */
export function enqueue(tables: Tables, jobs: readonly NewJob[]): readonly Enqueued[] {
  const ids = new Set<JobId>();
  for (const job of jobs) {
    const id = jobId(dueTime(tables, job), job.idSuffix);
    if (tables.jobs.has(id) || ids.has(id)) throw pawlError("store_failed", { operation: "enqueue", reason: `job ${id} exists already` });
    ids.add(id);
  }
  return jobs.map((job) => enqueueOne(tables, job));
}

function enqueueOne(tables: Tables, job: NewJob): Enqueued {
  const idempotencyKey = job.idempotencyKey === undefined ? undefined : `${job.lane.tenant}\u0001${job.idempotencyKey.id}`;
  const seen = idempotencyKey === undefined ? undefined : tables.requests.get(idempotencyKey);
  if (seen !== undefined && seen.until > tables.now) {
    return isSameRequest(job.idempotencyKey as JobRequest, seen.digest)
      ? { kind: "existing", id: seen.job }
      : { kind: "idempotencyKeyReused", first: seen.job };
  }

  const unknownParent = job.dependsOn?.parents.find((parent) => tables.jobs.get(parent)?.lane.tenant !== job.lane.tenant);
  if (unknownParent !== undefined) return { kind: "dependencyUnknown", parent: unknownParent };

  const answer = takeKey(tables, job);
  if (idempotencyKey !== undefined && answer.kind !== "rejected") {
    tables.requests.set(idempotencyKey, { job: answer.id, digest: job.idempotencyKey?.digest, until: tables.now + DEFAULTS.keep.idempotencyKey });
  }
  return answer;
}

function takeKey(tables: Tables, job: NewJob): Exclude<Enqueued, { kind: "dependencyUnknown" | "idempotencyKeyReused" }> {
  if (job.unique === undefined) return { kind: "created", id: create(tables, job, undefined).id };
  const key = `${job.lane.tenant}\u0001${job.lane.task}\u0001${job.unique.key}`;
  const { verdict, holder, since } = judge(tables, key, job.unique);
  if (holder !== undefined && verdict.kind === "existing") return { kind: "existing", id: holder.id };
  if (holder !== undefined && verdict.kind === "rejected") return { kind: "rejected", holder: holder.id };
  if (holder !== undefined && verdict.kind === "replace") cancelNow(tables, holder, "replaced");

  const due = verdict.kind === "replace" ? debouncedUntil(job.unique, since, tables.now) : undefined;
  const { id } = create(tables, due === undefined ? job : { ...job, runAt: due }, key);
  const { hold } = job.unique;
  const first = verdict.kind === "replace" ? since : tables.now;
  tables.keys.set(key, { job: id, hold, until: typeof hold === "number" ? tables.now + hold : 0, since: first });
  return holder !== undefined && verdict.kind === "replace" ? { kind: "created", id, replaced: holder.id } : { kind: "created", id };
}

function judge(
  tables: Tables,
  key: string,
  rule: UniqueRule,
): { readonly verdict: UniqueKeyVerdict; readonly holder?: MemoryJob; readonly since: number } {
  const held = tables.keys.get(key);
  const holder = held === undefined ? undefined : tables.jobs.get(held.job);
  if (held === undefined || holder === undefined) return { verdict: { kind: "free" }, since: tables.now };
  const seen = { job: held.job, hold: held.hold, state: holder.status.state, started: hasStarted(holder), remaining: held.until - tables.now };
  return { verdict: judgeKey(seen, rule), holder, since: held.since };
}

export function cancelNow(tables: Tables, row: MemoryJob, reason: string): void {
  const soFar = attemptsSoFar(row, row.options, tables.now);
  apply(
    tables,
    row,
    "cancel",
    decide(soFar, { kind: "cancelled", reason }, 0, () => 0),
    systemEntry(tables),
  );
  releaseDependents(tables, [row]);
}

function dueTime(tables: Tables, job: NewJob): number {
  return Math.max(tables.now, job.runAt ?? tables.now + (job.delay ?? 0));
}

function create(tables: Tables, job: NewJob, key: string | undefined): MemoryJob {
  const dueAt = dueTime(tables, job);
  const onDependencyDeath = job.dependsOn?.onDependencyDeath ?? "die";
  const row: MemoryJob = {
    id: jobId(dueAt, job.idSuffix),
    lane: job.lane,
    options: job.options,
    createdAt: tables.now,
    dueAt,
    input: job.input,
    status: { state: "blocked" },
    attempts: 0,
    crashes: 0,
    waits: new Set(),
    onDependencyDeath,
    progress: undefined,
    key,
    history: [],
    logs: [],
    effects: new Map(),
  };
  tables.jobs.set(row.id, row);

  const parents = (job.dependsOn?.parents ?? []).map((id) => ({
    id,
    means: dependencyMeaning((tables.jobs.get(id) as MemoryJob).status.state, onDependencyDeath),
  }));
  for (const { id, means } of parents) if (means === "waits") addEdge(tables, id, row);
  const failedParent = parents.find(({ means }) => means === "dying");
  bringRules(tables, row);
  if (failedParent === undefined && row.waits.size === 0) row.status = statusAtEnqueue(tables, row, waiting(tables, dueAt));
  noteMove(tables, row.lane, undefined, row.status.state);
  enter(tables, row);
  if (failedParent !== undefined) apply(tables, row, "unblock", deathOf(row, failureOfParent(failedParent.id)), systemEntry(tables));
  return row;
}

function statusAtEnqueue(tables: Tables, row: MemoryJob, to: JobStatus): JobStatus {
  return to.state === "ready" ? statusUnderLimits(tables, row) : to;
}
