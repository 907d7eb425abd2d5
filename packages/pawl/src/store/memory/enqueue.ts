import { DEFAULTS } from "../../core/defaults.js";
import { doomedBy, releaseOf } from "../../core/dependency.js";
import { pawlError } from "../../core/error.js";
import { type JobId, jobId } from "../../core/id.js";
import { type Enqueued, isSameRequest, type JobRequest, type NewJob } from "../../core/job.js";
import { deathOf, decide, standingOf } from "../../core/outcome.js";
import { debouncedUntil, judgeKey, type KeyVerdict, type UniqueRule } from "../../core/unique.js";
import { apply, mark, releaseDependents } from "./endings.js";
import { bringRules, linedUp } from "./gate-lines.js";
import { addEdge, enter, hasStarted, waiting } from "./places.js";
import { noteMove } from "./series.js";
import type { JobRow, Place, Tables } from "./state.js";

/** One by one, so that the first of two alike wins. Nothing is stored before every id is known to be new. */
export function enqueue(tables: Tables, jobs: readonly NewJob[]): readonly Enqueued[] {
  const ids = new Set<JobId>();
  for (const job of jobs) {
    const id = jobId(dueTime(tables, job), job.tail);
    if (tables.jobs.has(id) || ids.has(id)) throw pawlError("store_failed", { operation: "enqueue", reason: `job ${id} exists already` });
    ids.add(id);
  }
  return jobs.map((job) => enqueueOne(tables, job));
}

function enqueueOne(tables: Tables, job: NewJob): Enqueued {
  const request = job.request === undefined ? undefined : `${job.lane.tenant}\u0001${job.request.id}`;
  const seen = request === undefined ? undefined : tables.requests.get(request);
  if (seen !== undefined && seen.until > tables.now) {
    return isSameRequest(job.request as JobRequest, seen.digest) ? { kind: "existing", id: seen.job } : { kind: "requestReused", first: seen.job };
  }

  const orphan = job.dependsOn?.parents.find((parent) => tables.jobs.get(parent)?.lane.tenant !== job.lane.tenant);
  if (orphan !== undefined) return { kind: "orphaned", parent: orphan };

  const answer = takeKey(tables, job);
  if (request !== undefined && answer.kind !== "rejected") {
    tables.requests.set(request, { job: answer.id, digest: job.request?.digest, until: tables.now + DEFAULTS.keep.request });
  }
  return answer;
}

function takeKey(tables: Tables, job: NewJob): Exclude<Enqueued, { kind: "orphaned" | "requestReused" }> {
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

function judge(tables: Tables, key: string, rule: UniqueRule): { readonly verdict: KeyVerdict; readonly holder?: JobRow; readonly since: number } {
  const held = tables.keys.get(key);
  const holder = held === undefined ? undefined : tables.jobs.get(held.job);
  if (held === undefined || holder === undefined) return { verdict: { kind: "free" }, since: tables.now };
  const seen = { job: held.job, hold: held.hold, state: holder.place.state, started: hasStarted(holder), remaining: held.until - tables.now };
  return { verdict: judgeKey(seen, rule), holder, since: held.since };
}

export function cancelNow(tables: Tables, row: JobRow, reason: string): void {
  const standing = standingOf(row, row.options, tables.now);
  apply(
    tables,
    row,
    "cancel",
    decide(standing, { kind: "cancelled", reason }, 0, () => 0),
    mark(tables),
  );
  releaseDependents(tables, [row]);
}

function dueTime(tables: Tables, job: NewJob): number {
  return Math.max(tables.now, job.runAt ?? tables.now + (job.delay ?? 0));
}

function create(tables: Tables, job: NewJob, key: string | undefined): JobRow {
  const dueAt = dueTime(tables, job);
  const onDeath = job.dependsOn?.onDeath ?? "die";
  const row: JobRow = {
    id: jobId(dueAt, job.tail),
    lane: job.lane,
    options: job.options,
    createdAt: tables.now,
    dueAt,
    input: job.input,
    place: { state: "blocked" },
    spent: 0,
    crashes: 0,
    waits: new Set(),
    onDeath,
    progress: undefined,
    key,
    history: [],
    logs: [],
    effects: new Map(),
  };
  tables.jobs.set(row.id, row);

  const parents = (job.dependsOn?.parents ?? []).map((id) => ({ id, means: releaseOf((tables.jobs.get(id) as JobRow).place.state, onDeath) }));
  for (const { id, means } of parents) if (means === "waits") addEdge(tables, id, row);
  const doom = parents.find(({ means }) => means === "doomed");
  bringRules(tables, row);
  if (doom === undefined && row.waits.size === 0) row.place = placed(tables, row, waiting(tables, dueAt));
  noteMove(tables, row.lane, undefined, row.place.state);
  enter(tables, row);
  if (doom !== undefined) apply(tables, row, "unblock", deathOf(row, doomedBy(doom.id)), mark(tables));
  return row;
}

function placed(tables: Tables, row: JobRow, to: Place): Place {
  return to.state === "ready" ? linedUp(tables, row) : to;
}
