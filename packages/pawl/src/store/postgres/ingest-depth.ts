import type { IngestLimit } from "../../core/backpressure.js";
import { plainArray, textArray } from "./arrays.js";
import { statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import type { LowWaters } from "./low-water.js";

/** Kept by deltas: reads nothing that grows with the work. */
const QUEUES = statement(
  "queue_depths",
  `
  select queue as name, sum(ready + parked)::float8 as depth from (
    select queue, ready, parked from pawl.tally where queue = any($1::text[])
    union all select queue, ready, parked from pawl.delta where id >= $2::float8::bigint and queue = any($1::text[])
  ) all_rows group by queue`,
);

/**
 * Nobody keeps count of tenants, so it is counted, no further than the limit: the tenant's part of each queue and band by the
 * index, and the lines at gates, whose names begin with it (see `gateKey`). The pairs of queue and band are found by leaps, whatever is in them.
 */
const TENANTS = statement(
  "tenant_depths",
  `
  with recursive pair as (
    (select queue, band from pawl.ready order by queue, band limit 1)
    union all
    select n.queue, n.band from pair p
    cross join lateral (select r.queue, r.band from pawl.ready r where (r.queue, r.band) > (p.queue, p.band) order by r.queue, r.band limit 1) n
  )
  select g.name, (
    (select coalesce(sum(c.jobs), 0) from pair p cross join lateral (
      select sum(r.size) as jobs from (select r.size from pawl.ready r where r.queue = p.queue and r.band = p.band and r.tenant = g.name limit g.most) r
    ) c)
    + (select count(*) from (select from pawl.suspect u where u.tenant = g.name limit g.most) u)
    + (select count(*) from (select from pawl.parked k where k.gate >= g.name || chr(1) and k.gate < g.name || chr(2) limit g.most) k)
  )::float8 as depth
  from unnest($1::text[], $2::bigint[]) as g(name, most)`,
);

/** How many jobs wait, ready or parked, under each of these limits; up to the limit it is exact. */
export async function countDepths(on: Queryable, low: LowWaters, limits: readonly IngestLimit[]): Promise<ReadonlyMap<IngestLimit, number>> {
  const of = (kind: IngestLimit["kind"]) => limits.filter((limit) => limit.kind === kind);
  const [queues, tenants] = [of("queue"), of("tenant")];
  const names = (some: readonly IngestLimit[]) => textArray(some.map(({ name }) => name));
  const read = async (asked: readonly IngestLimit[], call: () => Promise<readonly { name: string; depth: number }[]>) =>
    asked.length === 0 ? [] : [...(await call())];
  const queueRows = await read(queues, () => on.query(QUEUES, [names(queues), low.delta.value]));
  const tenantRows = await read(tenants, () => on.query(TENANTS, [names(tenants), plainArray(tenants.map(({ depth }) => depth))]));
  const depths = { queue: new Map(queueRows.map((row) => [row.name, row.depth])), tenant: new Map(tenantRows.map((row) => [row.name, row.depth])) };
  return new Map(limits.map((limit) => [limit, depths[limit.kind].get(limit.name) ?? 0]));
}
