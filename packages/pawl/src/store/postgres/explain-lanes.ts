import type { JobId } from "../../core/id.js";
import { compareLanes, type Lane } from "../../core/lane.js";
import { MOST_RIVALS } from "../port-explain.js";
import { type Db, statement } from "./db.js";

/** The lanes of one queue and task, found by leaps from one band and tenant to the next. */
const LANES = statement(
  "explain_lanes",
  `
  select f.band, f.tenant from (
    with recursive pair as (
      (select r.band, r.tenant from pawl.ready r where r.queue = $1 order by r.band, r.tenant limit 1)
      union all
      select n.band, n.tenant from pair p
      cross join lateral (select r.band, r.tenant from pawl.ready r where r.queue = $1 and (r.band, r.tenant) > (p.band, p.tenant) order by r.band, r.tenant limit 1) n
    )
    select band, tenant from pair limit ${5 * MOST_RIVALS}
  ) f where exists (select from pawl.ready r where r.queue = $1 and r.band = f.band and r.tenant = f.tenant and r.task = $2)
  order by band, tenant limit ${MOST_RIVALS}`,
);

export async function lanesOf(db: Db, { queue, task }: Pick<Lane, "queue" | "task">): Promise<readonly Lane[]> {
  const rows = await db.query<{ band: Lane["band"]; tenant: string }>(LANES, [queue, task]);
  return rows.map(({ band, tenant }) => ({ queue, band, tenant, task }));
}

/** The first job of each lane, lane by lane, up to so many lanes. */
const HEADS = statement(
  "explain_heads",
  `
  with recursive lane as (
    (select r.queue, r.band, r.tenant, r.task, coalesce(r.id, r.jobs[1]) as id from pawl.ready r order by r.queue, r.band, r.tenant, r.task, r.seq limit 1)
    union all
    select n.* from lane l cross join lateral (
      select r.queue, r.band, r.tenant, r.task, coalesce(r.id, r.jobs[1]) as id from pawl.ready r
      where (r.queue, r.band, r.tenant, r.task) > (l.queue, l.band, l.tenant, l.task) order by r.queue, r.band, r.tenant, r.task, r.seq limit 1
    ) n
  )
  select queue, band, tenant, task, id from lane limit $1`,
);

export async function heads(db: Db, lanes: number): Promise<readonly (Lane & { readonly id: JobId })[]> {
  const rows = await db.query<Lane & { id: JobId }>(HEADS, [lanes]);
  return [...rows].sort(compareLanes);
}
