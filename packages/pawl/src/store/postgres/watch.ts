import type { JobId } from "../../core/id.js";
import { plainArray } from "./arrays.js";
import { statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";

const WATCH_HOLDERS = statement(
  "watch_holders",
  `with held as (select id from pawl.lease where jobs && $1::uuid[] order by id for update)
   update pawl.lease l set watched = true from held where l.id = held.id and not l.watched`,
);

/**
 * Waits for settlements of these jobs that are under way, and sends those that come later the long way: one that has
 * its snapshot already, and waits for the lock, must not trust what it saw. It sees `watched`, which it reads after.
 */
export async function watchHolders(on: Queryable, jobs: readonly JobId[]): Promise<void> {
  if (jobs.length > 0) await on.query(WATCH_HOLDERS, [plainArray(jobs)]);
}
