import { JOB_STATES, type JobState } from "../../core/jobs/job.js";
import type { Scope, Store } from "../../store/port/index.js";
import type { StoredJobFilter } from "../../store/port/jobs/jobs.js";
import { MAX_PAGE_BYTES } from "./filter.js";

const JOBS_PER_PAGE = 1_000;

/** How many jobs a filter finds. Counts are kept by queue, task and state, for all tenants together; anything finer is listed. */
export async function countJobs(store: Store, scope: Scope, filter: StoredJobFilter): Promise<number> {
  if (scope === "everyone" && isCounted(filter)) return keptCount(store, filter);
  let count = 0;
  let after: Awaited<ReturnType<Store["jobs"]["list"]>>["next"];
  do {
    const page = await store.jobs.list(scope, filter, { limit: JOBS_PER_PAGE, bytes: MAX_PAGE_BYTES, ...(after === undefined ? {} : { after }) });
    count += page.jobs.length;
    after = page.next;
  } while (after !== undefined);
  return count;
}

function isCounted(filter: StoredJobFilter): boolean {
  return Object.keys(filter).every((name) => name === "queue" || name === "task" || name === "state");
}

async function keptCount(store: Store, { queue, task, state }: StoredJobFilter): Promise<number> {
  const states: readonly JobState[] = state === undefined ? JOB_STATES : [state];
  let count = 0;
  for (const row of await store.records.counts()) {
    if ((queue === undefined || row.queue === queue) && (task === undefined || row.task === task)) for (const one of states) count += row.counts[one];
  }
  return count;
}
