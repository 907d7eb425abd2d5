import type { JobId } from "../../../core/jobs/id.js";
import { isFinished } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { plainArray } from "../connection/arrays.js";
import { type StoreDb, statement } from "../connection/db.js";
import { readFacts } from "../jobs/job-state.js";
import { releaseDependents } from "../settle/release-dependents.js";
import { touchLeases } from "../settle/touch-leases.js";

const UNVERIFIED = statement(
  "unverified",
  `select parent, child from pawl.dependency where not verified order by child, parent
  limit $1  -- guard: unverified-are-shared`,
);
const LOCK_WAITING = statement(
  "lock_waiting",
  ["ready", "suspect", "scheduled", "parked", "blocked"]
    .map(
      (table) => `select id from (select id from pawl.${table} where id = any($1::uuid[]) order by id
      for share  -- guard: waiting-locked
    ) ${table}`,
    )
    .join(" union all "),
);
const VERIFY = statement(
  "verify_ties",
  "update pawl.dependency d set verified = true from unnest($1::uuid[], $2::uuid[]) as g(parent, child) where d.parent = g.parent and d.child = g.child",
);

/**
 * A parent may have ended while its dependent was being enqueued, neither seeing the other. This looks at each new tie
 * once, after its commit: it waits for whoever is about to end the parent (they hold its lease, or the row it waits
 * in), so that whatever ends later sees the tie, and whatever ended before is seen here. Leases first, then children,
 * then ties: the order in which a settlement locks them, or both would wait in a circle.
 */
export function unblock(db: StoreDb, limit: number): Promise<{ count: number; readied: readonly Lane[] }> {
  return db.transaction(async (tx) => {
    const ties = await tx.query<{ parent: JobId; child: JobId }>(UNVERIFIED, [limit]);
    if (ties.length === 0) return { count: 0, readied: [] };
    const parents = [...new Set(ties.map((tie) => tie.parent))];
    await touchLeases(tx, parents);
    await tx.query(LOCK_WAITING, [plainArray(parents)]);
    const states = new Map((await readFacts(tx, parents)).map((job) => [job.id, job.state]));
    const ended = parents.map((id) => ({ id, state: states.get(id) ?? ("cancelled" as const) }));
    const readied = await releaseDependents(
      db,
      tx,
      ended.filter(({ state }) => isFinished(state)),
    );
    await tx.query(VERIFY, [plainArray(ties.map((tie) => tie.parent)), plainArray(ties.map((tie) => tie.child))]);
    return { count: ties.length, readied };
  });
}
