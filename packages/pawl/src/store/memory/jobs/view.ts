import { type Fingerprint, fingerprintOf } from "../../../core/jobs/fingerprint.js";
import { firstIdAt, type JobId } from "../../../core/jobs/id.js";
import { type AttemptRecord, isFinished, type JobRecord } from "../../../core/jobs/job.js";
import { compareText } from "../../../core/jobs/lane.js";
import { limitKeyParts } from "../../../core/limits/limit-rule.js";
import type { Scope } from "../../port/index.js";
import type { JobPageResult, PageRequest, StoredJobFilter, WholePage } from "../../port/jobs/jobs.js";
import { withinBytes } from "../../port/jobs/pages.js";
import type { LimitWait, MemoryJob, Tables } from "../state.js";
import { lastOf } from "./history.js";
import { recordBytes, wholeBytes } from "./page-size.js";

/** The job, if the scope may know of it: another tenant's is not told from one that does not exist. */
export function visible(tables: Tables, scope: Scope, id: JobId): MemoryJob | undefined {
  const row = tables.jobs.get(id);
  return row !== undefined && (scope === "everyone" || row.lane.tenant === scope.tenant) ? row : undefined;
}

export function recordOf(tables: Tables, row: MemoryJob): JobRecord {
  const { status } = row;
  const intent = tables.intents.get(row.id)?.intent;
  const last = lastOf(row);
  return {
    id: row.id,
    lane: row.lane,
    state: status.state,
    input: row.input,
    options: row.options ?? {},
    createdAt: row.createdAt,
    dueAt: row.dueAt,
    ...("runAt" in status ? { runAt: status.runAt } : {}),
    attempts: row.attempts,
    crashes: row.crashes,
    ...(status.state === "parked" ? parkedFor(status.limitWait) : {}),
    ...(status.state === "blocked" ? { waitsFor: [...row.waits].sort(compareText) } : {}),
    ...(intent === undefined ? {} : { intent }),
    ...(isFinished(status.state) && last !== undefined ? { finishedAt: last.finishedAt } : {}),
    ...(status.state === "succeeded" && last?.output !== undefined ? { output: last.output } : {}),
    ...(last?.failure === undefined ? {} : { failure: last.failure }),
    ...(row.progress === undefined ? {} : { progress: row.progress }),
  };
}

function parkedFor(limitWait: LimitWait | undefined): Pick<JobRecord, "parkedFor" | "limitKey"> {
  if (limitWait === undefined) return { parkedFor: "paused" };
  const { limit, key } = limitKeyParts(limitWait.limitKey);
  return { parkedFor: limitWait.reason, limitKey: { limit, key } };
}

export function historyOf(row: MemoryJob): readonly AttemptRecord[] {
  return row.history.map(({ instance: _, ...record }) => record);
}

export function page(tables: Tables, scope: Scope, filter: StoredJobFilter, request: PageRequest): JobPageResult {
  const found = from(tables, scope, filter, request);
  const shown = found.slice(0, request.limit).map((row) => recordOf(tables, row));
  const jobs = withinBytes(shown, request.bytes ?? Number.POSITIVE_INFINITY, recordBytes);
  const last = jobs.at(-1);
  return found.length > jobs.length && last !== undefined ? { jobs, next: last.id } : { jobs };
}

export function wholePage(tables: Tables, scope: Scope, request: PageRequest): WholePage {
  const found = from(tables, scope, {}, request);
  const shown = found.slice(0, request.limit).map((row) => ({ job: recordOf(tables, row), history: historyOf(row), logs: [...row.logs] }));
  const jobs = withinBytes(shown, request.bytes ?? Number.POSITIVE_INFINITY, wholeBytes);
  const last = jobs.at(-1);
  return found.length > jobs.length && last !== undefined ? { jobs, next: last.job.id } : { jobs };
}

/** Those of a page and all that come after it, newest first. */
function from(tables: Tables, scope: Scope, filter: StoredJobFilter, { after }: PageRequest): readonly MemoryJob[] {
  return [...tables.jobs.values()]
    .filter((row) => (scope === "everyone" || row.lane.tenant === scope.tenant) && (after === undefined || row.id < after) && matches(row, filter))
    .sort((a, b) => compareText(b.id, a.id));
}

export function matches(row: MemoryJob, { state, queue, task, tag, uniqueKey, failure, fingerprint, since, until }: StoredJobFilter): boolean {
  const failed = lastOf(row)?.failure;
  return (
    (state === undefined || row.status.state === state) &&
    (queue === undefined || row.lane.queue === queue) &&
    (task === undefined || row.lane.task === task) &&
    (tag === undefined || (row.options?.tags?.includes(tag) ?? false)) &&
    (uniqueKey === undefined || row.options?.uniqueKey === uniqueKey) &&
    (failure === undefined || (row.status.state === "dead" && (failed?.kind === failure || failed?.name === failure))) &&
    (fingerprint === undefined || causeOf(row) === fingerprint) &&
    (since === undefined || row.id >= firstIdAt(since)) &&
    (until === undefined || row.id < firstIdAt(until))
  );
}

/** What killed a dead job; undefined for others. */
export function causeOf(row: MemoryJob): Fingerprint | undefined {
  const failure = lastOf(row)?.failure;
  return row.status.state === "dead" && failure !== undefined ? fingerprintOf(row.lane.task, failure) : undefined;
}
