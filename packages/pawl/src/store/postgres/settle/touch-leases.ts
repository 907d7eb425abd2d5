import type { JobId } from "../../../core/jobs/id.js";
import { plainArray } from "../connection/arrays.js";
import { statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

const TOUCH_LEASES = statement(
  "touch_leases",
  `with locked as (
     select id from pawl.lease
     where jobs && $1::uuid[]  -- guard: lease-is-touched
     order by id for update
   )
   update pawl.lease l
   set changed_by = pg_current_xact_id()  -- guard: change-is-noted
   from locked where l.id = locked.id`,
);

/**
 * Waits for settlements of these jobs that are under way, and has those made again that have their snapshot already and wait for the
 * lock: they must not trust what they saw. They see `changed_by`, which they read after it, and that their snapshot lacks this transaction.
 */
export async function touchLeases(on: Queryable, jobs: readonly JobId[]): Promise<void> {
  if (jobs.length > 0) await on.query(TOUCH_LEASES, [plainArray(jobs)]);
}
