import type { JobRecord } from "../core/job.js";
import type { Scope } from "../store/port.js";
import type { JobFilter, JobStore, Page, PageRequest } from "../store/port-jobs.js";
import type { PartRequest } from "../store/port-pages.js";

/** Looks at the store for one page: some hundred thousand jobs may be passed by. */
const LOOKS = 20;

/** One that is bounded by bytes too. */
export type BoundedPage = PageRequest & { readonly bytes: number };

/** A page as people want it: a store may give a short one where it went a long way and found little, so it is asked to go on. */
export async function fullPage(jobs: JobStore, scope: Scope, filter: JobFilter, { limit, bytes, after }: BoundedPage): Promise<Page> {
  const found: JobRecord[] = [];
  let next = after;
  let room = bytes;
  for (let looks = 0; looks < LOOKS; looks++) {
    const page = await jobs.list(scope, filter, { limit: limit - found.length, bytes: room, ...(next === undefined ? {} : { after: next }) });
    found.push(...page.jobs);
    next = page.next;
    for (const job of page.jobs) room -= job.input.length + (job.output?.length ?? 0);
    if (next === undefined || found.length === limit || room <= 0) break;
  }
  return { jobs: found, ...(next === undefined ? {} : { next }) };
}

/** A part of many, and where the next one begins. */
export interface Part<T> {
  readonly items: readonly T[];
  readonly next?: number;
}

/** One part, and whether there is more: it may be shorter than asked for because it was full. */
export async function partWithNext<T>(read: (part: PartRequest) => Promise<readonly T[]>, part: PartRequest): Promise<Part<T>> {
  const items = await read(part);
  const next = part.after + items.length;
  const more = items.length > 0 && (await read({ limit: 1, after: next, bytes: 1 })).length > 0;
  return { items, ...(more ? { next } : {}) };
}

/** All of them, part by part. */
export async function allParts<T>(read: (after: number) => Promise<Part<T>>): Promise<readonly T[]> {
  const all: T[] = [];
  let next: number | undefined = 0;
  while (next !== undefined) {
    const part: Part<T> = await read(next);
    all.push(...part.items);
    next = part.next;
  }
  return all;
}
