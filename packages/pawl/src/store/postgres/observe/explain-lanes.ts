import type { JobId } from "../../../core/jobs/id.js";
import { compareLanes, type Lane } from "../../../core/jobs/lane.js";
import { MAX_RIVALS } from "../../port/observe/explain.js";
import { type Db, statement } from "../connection/db.js";

/** The lanes of one queue and task, found by leaps from one priority and tenant to the next. */
const LANES = statement(
  "explain_lanes",
  `
  select f.priority, f.tenant from (
    with recursive pair as (
      (select r.priority, r.tenant from pawl.ready r where r.queue = $1 order by r.priority, r.tenant limit 1)
      union all
      select n.priority, n.tenant from pair p
      cross join lateral (select r.priority, r.tenant from pawl.ready r where r.queue = $1 and (r.priority, r.tenant) > (p.priority, p.tenant) order by r.priority, r.tenant limit 1) n
    )
    select priority, tenant from pair limit ${5 * MAX_RIVALS}
  ) f where exists (select from pawl.ready r where r.queue = $1 and r.priority = f.priority and r.tenant = f.tenant and r.task = $2)
  order by priority, tenant limit ${MAX_RIVALS}`,
);

export async function lanesOf(db: Db, { queue, task }: Pick<Lane, "queue" | "task">): Promise<readonly Lane[]> {
  const rows = await db.query<{ priority: Lane["priority"]; tenant: string }>(LANES, [queue, task]);
  return rows.map(({ priority, tenant }) => ({ queue, priority, tenant, task }));
}

/** The first job of each lane, lane by lane, up to so many lanes. */
const HEADS = statement(
  "explain_heads",
  `
  with recursive lane as (
    (select r.queue, r.priority, r.tenant, r.task, coalesce(r.id, r.jobs[1]) as id from pawl.ready r order by r.queue, r.priority, r.tenant, r.task, r.seq limit 1)
    union all
    select n.* from lane l cross join lateral (
      select r.queue, r.priority, r.tenant, r.task, coalesce(r.id, r.jobs[1]) as id from pawl.ready r
      where (r.queue, r.priority, r.tenant, r.task) > (l.queue, l.priority, l.tenant, l.task) order by r.queue, r.priority, r.tenant, r.task, r.seq limit 1
    ) n
  )
  select queue, priority, tenant, task, id from lane limit $1`,
);

export async function heads(db: Db, lanes: number): Promise<readonly (Lane & { readonly id: JobId })[]> {
  const rows = await db.query<Lane & { id: JobId }>(HEADS, [lanes]);
  return [...rows].sort(compareLanes);
}
