import type { JobId } from "../../core/jobs/id.js";
import type { JobRecord } from "../../core/jobs/job.js";
import type { Scope } from "../../store/port/index.js";
import type { JobPageResult, JobStore, PageRequest, StoredJobFilter } from "../../store/port/jobs/jobs.js";
import type { PartRequest } from "../../store/port/jobs/pages.js";
import { jobIdOf } from "../enqueue/read-options.js";
import { type CursorFormat, cursorFormat, type Page } from "../page.js";

/** Looks at the store for one page: some hundred thousand jobs may be passed by. */
const MAX_READS = 20;

/** Lists of jobs, dead ones too, go on after a job. */
export const JOBS_CURSOR: CursorFormat<JobId> = cursorFormat("jobs", (place) => jobIdOf(place as string));

const partNumber = (place: unknown) => (Number.isInteger(place) && Number(place) >= 0 && Number(place) < 2 ** 31 ? Number(place) : undefined);
/** Parts of a job go on after as many as came before. */
export const HISTORY_CURSOR: CursorFormat<number> = cursorFormat("history", partNumber);
export const LOGS_CURSOR: CursorFormat<number> = cursorFormat("logs", partNumber);

/** The cursor of the page that begins after this job, in a list of jobs. */
export function jobsCursorAfter(job: JobId): string {
  return JOBS_CURSOR.encode(job);
}

/** A page that is bounded by bytes too. */
export type BoundedPage = PageRequest & { readonly bytes: number };

/** A page as people want it: a store may give a short one where it went a long way and found little, so it is asked to go on. */
export async function fullPage(jobs: JobStore, scope: Scope, filter: StoredJobFilter, { limit, bytes, after }: BoundedPage): Promise<JobPageResult> {
  const found: JobRecord[] = [];
  let next = after;
  let room = bytes;
  for (let reads = 0; reads < MAX_READS; reads++) {
    const page = await jobs.list(scope, filter, { limit: limit - found.length, bytes: room, ...(next === undefined ? {} : { after: next }) });
    found.push(...page.jobs);
    next = page.next;
    for (const job of page.jobs) room -= job.input.length + (job.output?.length ?? 0);
    if (next === undefined || found.length === limit || room <= 0) break;
  }
  return { jobs: found, ...(next === undefined ? {} : { next }) };
}

/** Reads one part and whether there is more. The part may be shorter than asked for because it was full. */
export async function partPage<T>(
  format: CursorFormat<number>,
  read: (page: PartRequest) => Promise<readonly T[]>,
  page: PartRequest,
): Promise<Page<T>> {
  const items = await read(page);
  const next = page.after + items.length;
  const more = items.length > 0 && (await read({ limit: 1, after: next, bytes: 1 })).length > 0;
  return { items, ...(more ? { next: format.encode(next) } : {}) };
}
