import type { IngestLimit } from "../../../core/limits/ingest-limit.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

/** Kept by deltas: reads nothing that grows with the work. */
const QUEUES = statement(
  "queue_depths",
  `
  select queue as name, sum(ready + parked)::float8 as depth from (
    select queue, ready, parked from pawl.counter where queue = any($1::text[])
    union all select queue, ready, parked from pawl.counter_delta where id >= $2::float8::bigint and queue = any($1::text[])
  ) all_rows group by queue`,
);

/**
 * Nobody keeps count of tenants, so it is counted, no further than the limit: the tenant's part of each queue and priority by the
 * index, and the queues of limit keys, whose names begin with it (see `limitKeyId`). The pairs of queue and priority are found by leaps, whatever is in them.
 */
const TENANTS = statement(
  "tenant_depths",
  `
  with recursive pair as (
    (select queue, priority from pawl.ready order by queue, priority limit 1)
    union all
    select n.queue, n.priority from pair p
    cross join lateral (select r.queue, r.priority from pawl.ready r where (r.queue, r.priority) > (p.queue, p.priority) order by r.queue, r.priority limit 1) n
  )
  select g.name, (
    (select coalesce(sum(c.jobs), 0) from pair p cross join lateral (
      select sum(r.size) as jobs from (select r.size from pawl.ready r where r.queue = p.queue and r.priority = p.priority and r.tenant = g.name limit g.most) r
    ) c)
    + (select count(*) from (select from pawl.suspect u where u.tenant = g.name limit g.most) u)
    + (select count(*) from (select from pawl.parked k where k.limit_key >= g.name || chr(1) and k.limit_key < g.name || chr(2) limit g.most) k)
  )::float8 as depth
  from unnest($1::text[], $2::bigint[]) as g(name, most)`,
);

/** How many jobs wait, ready or parked, under each of these limits; up to the limit it is exact. */
export async function countDepths(
  on: Queryable,
  watermarks: LowWatermarks,
  limits: readonly IngestLimit[],
): Promise<ReadonlyMap<IngestLimit, number>> {
  const of = (kind: IngestLimit["kind"]) => limits.filter((limit) => limit.kind === kind);
  const [queues, tenants] = [of("queue"), of("tenant")];
  const names = (some: readonly IngestLimit[]) => textArray(some.map(({ name }) => name));
  const read = async (limitsOfKind: readonly IngestLimit[], call: () => Promise<readonly { name: string; depth: number }[]>) =>
    limitsOfKind.length === 0 ? [] : [...(await call())];
  const queueRows = await read(queues, () => on.query(QUEUES, [names(queues), watermarks.delta.value]));
  const tenantRows = await read(tenants, () => on.query(TENANTS, [names(tenants), plainArray(tenants.map(({ depth }) => depth))]));
  const depths = { queue: new Map(queueRows.map((row) => [row.name, row.depth])), tenant: new Map(tenantRows.map((row) => [row.name, row.depth])) };
  return new Map(limits.map((limit) => [limit, depths[limit.kind].get(limit.name) ?? 0]));
}
