import type { JobRecord } from "../../core/jobs/job.js";
import type { Scope } from "../../store/port/index.js";
import type { JobPageResult, JobStore, PageRequest, StoredJobFilter } from "../../store/port/jobs.js";
import type { PartRequest } from "../../store/port/pages.js";

/** Looks at the store for one page: some hundred thousand jobs may be passed by. */
const MAX_READS = 20;

/** One that is bounded by bytes too. */
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

/** A part of many, and where the next one begins. */
export interface NumberedPage<T> {
  readonly items: readonly T[];
  readonly next?: number;
}

/** One part, and whether there is more: it may be shorter than asked for because it was full. */
export async function pageWithNext<T>(read: (page: PartRequest) => Promise<readonly T[]>, page: PartRequest): Promise<NumberedPage<T>> {
  const items = await read(page);
  const next = page.after + items.length;
  const more = items.length > 0 && (await read({ limit: 1, after: next, bytes: 1 })).length > 0;
  return { items, ...(more ? { next } : {}) };
}

/** All of them, part by part. */
export async function allPages<T>(read: (after: number) => Promise<NumberedPage<T>>): Promise<readonly T[]> {
  const all: T[] = [];
  let next: number | undefined = 0;
  while (next !== undefined) {
    const page: NumberedPage<T> = await read(next);
    all.push(...page.items);
    next = page.next;
  }
  return all;
}
