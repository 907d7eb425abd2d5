import type { JobId } from "../../core/id.js";
import { plainArray } from "./arrays.js";
import { statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";

const WATCH_HOLDERS = statement(
  "watch_holders",
  `with held as (select id from pawl.lease where jobs && $1::uuid[] order by id for update)
   update pawl.lease l set watched = pg_current_xact_id() from held where l.id = held.id`,
);

/**
 * Waits for settlements of these jobs that are under way, and has those made again that have their snapshot already and wait for the
 * lock: they must not trust what they saw. They see `watched`, which they read after it, and that their snapshot lacks this transaction.
 */
export async function watchHolders(on: Queryable, jobs: readonly JobId[]): Promise<void> {
  if (jobs.length > 0) await on.query(WATCH_HOLDERS, [plainArray(jobs)]);
}
