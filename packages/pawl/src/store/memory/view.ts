import { type Fingerprint, fingerprintOf } from "../../core/fingerprint.js";
import { firstIdAt, type JobId } from "../../core/id.js";
import { type AttemptRecord, isFinished, type JobRecord } from "../../core/job.js";
import { compareText } from "../../core/lane.js";
import { gateParts } from "../../core/limit.js";
import type { Scope } from "../port.js";
import type { JobFilter, Page, PageRequest, WholePage } from "../port-jobs.js";
import { withinBytes } from "../port-pages.js";
import { lastOf } from "./endings.js";
import { recordBytes, wholeBytes } from "./sizes.js";
import type { JobRow, Standing, Tables } from "./state.js";

/** The job, if the scope may know of it: another tenant's is not told from one that does not exist. */
export function visible(tables: Tables, scope: Scope, id: JobId): JobRow | undefined {
  const row = tables.jobs.get(id);
  return row !== undefined && (scope === "everyone" || row.lane.tenant === scope.tenant) ? row : undefined;
}

export function recordOf(tables: Tables, row: JobRow): JobRecord {
  const { place } = row;
  const intent = tables.intents.get(row.id)?.intent;
  const last = lastOf(row);
  return {
    id: row.id,
    lane: row.lane,
    state: place.state,
    input: row.input,
    options: row.options ?? {},
    createdAt: row.createdAt,
    dueAt: row.dueAt,
    ...("runAt" in place ? { runAt: place.runAt } : {}),
    spent: row.spent,
    crashes: row.crashes,
    ...(place.state === "parked" ? parkedFor(place.standing) : {}),
    ...(place.state === "blocked" ? { waitsFor: [...row.waits].sort(compareText) } : {}),
    ...(intent === undefined ? {} : { intent }),
    ...(isFinished(place.state) && last !== undefined ? { finishedAt: last.finishedAt } : {}),
    ...(place.state === "succeeded" && last?.output !== undefined ? { output: last.output } : {}),
    ...(last?.failure === undefined ? {} : { failure: last.failure }),
    ...(row.progress === undefined ? {} : { progress: row.progress }),
  };
}

function parkedFor(standing: Standing | undefined): Pick<JobRecord, "parkedFor" | "parkedAt"> {
  if (standing === undefined) return { parkedFor: "paused" };
  const { limit, key } = gateParts(standing.gate);
  return { parkedFor: standing.reason, parkedAt: { limit, key } };
}

export function historyOf(row: JobRow): readonly AttemptRecord[] {
  return row.history.map(({ boot: _, ...record }) => record);
}

export function page(tables: Tables, scope: Scope, filter: JobFilter, request: PageRequest): Page {
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
function from(tables: Tables, scope: Scope, filter: JobFilter, { after }: PageRequest): readonly JobRow[] {
  return [...tables.jobs.values()]
    .filter((row) => (scope === "everyone" || row.lane.tenant === scope.tenant) && (after === undefined || row.id < after) && matches(row, filter))
    .sort((a, b) => compareText(b.id, a.id));
}

export function matches(row: JobRow, { state, queue, task, tag, key, failure, fingerprint, dueFrom, dueBefore }: JobFilter): boolean {
  const failed = lastOf(row)?.failure;
  return (
    (state === undefined || row.place.state === state) &&
    (queue === undefined || row.lane.queue === queue) &&
    (task === undefined || row.lane.task === task) &&
    (tag === undefined || (row.options?.tags?.includes(tag) ?? false)) &&
    (key === undefined || row.options?.key === key) &&
    (failure === undefined || (row.place.state === "dead" && (failed?.kind === failure || failed?.name === failure))) &&
    (fingerprint === undefined || causeOf(row) === fingerprint) &&
    (dueFrom === undefined || row.id >= firstIdAt(dueFrom)) &&
    (dueBefore === undefined || row.id < firstIdAt(dueBefore))
  );
}

/** What killed a dead job; undefined for others. */
export function causeOf(row: JobRow): Fingerprint | undefined {
  const failure = lastOf(row)?.failure;
  return row.place.state === "dead" && failure !== undefined ? fingerprintOf(row.lane.task, failure) : undefined;
}
