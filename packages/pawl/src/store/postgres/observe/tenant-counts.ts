import type { JobId } from "../../../core/jobs/id.js";
import { type CountedState, NO_JOBS } from "../../../core/observe/series.js";
import { ConcurrencyLimiter } from "../../../runtime/io/concurrency-limiter.js";
import type { TenantCountRow } from "../../port/settle/records.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";

/**
 * Jobs of a tenant that a lease holds. Leases hold jobs of several tenants, so nobody sees them as the tenant's role: this tells ids
 * alone. Whose a job is comes first, in CASE, so that of others nothing else is asked.
 */
const RUNNING_JOBS = statement(
  "running_of_tenant",
  `
  select u.id from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(id, index)
  where case
    when u.index::int <@ l.settled then false
    else coalesce((select tenant = $1 from pawl.job j where j.id = u.id), (select tenant = $1 from pawl.job_kept j where j.id = u.id), false)
  end`,
);

const countIn = (state: CountedState, table: string, count = "count(*)") =>
  `select queue, task, '${state}' as state, ${count} as jobs from pawl.${table} where tenant = $1 group by queue, task`;

const COUNT = statement(
  "counts_of_tenant",
  `
  select queue, task, state, sum(jobs)::float8 as jobs from (
    ${[
      countIn("blocked", "blocked"),
      countIn("scheduled", "scheduled"),
      countIn("ready", "ready", "sum(size)"),
      countIn("ready", "suspect"),
      countIn("parked", "parked"),
      countIn("dead", "dead"),
    ].join("\n    union all ")}
    union all select queue, task, 'running', count(*) from pawl.any_job where id = any($2::uuid[]) and tenant = $1 group by queue, task
  ) s group by queue, task, state order by queue, task`,
);

/**
 * There is no index by tenant: what waits, is held or is dead is looked through, whosever it is. So one look goes on at a
 * time, and all who ask for a tenant before its look has begun share it: however many ask, it is one connection's work.
 * (One that has begun may not show what whoever asks now has done.)
 */
export class TenantCounts {
  readonly #reads = new ConcurrencyLimiter(1);
  readonly #pending = new Map<string, Promise<readonly TenantCountRow[]>>();

  constructor(private readonly read: (tenant: string) => Promise<readonly TenantCountRow[]>) {}

  of(tenant: string): Promise<readonly TenantCountRow[]> {
    let read = this.#pending.get(tenant);
    if (read === undefined) {
      read = this.#readNext(tenant);
      this.#pending.set(tenant, read);
    }
    return read;
  }

  async #readNext(tenant: string): Promise<readonly TenantCountRow[]> {
    await undefined; // until it is known to be coming
    return this.#reads.run(() => {
      this.#pending.delete(tenant);
      return this.read(tenant);
    });
  }
}

/** A job that moves meanwhile may be missed, or told twice. */
export async function readTenantCounts(db: Db, tenant: string): Promise<readonly TenantCountRow[]> {
  const running = await db.query<{ id: JobId }>(RUNNING_JOBS, [tenant]);
  const rows = await readFor(db, { tenant }, (on) =>
    on.query<{ queue: string; task: string; state: CountedState; jobs: number }>(COUNT, [tenant, plainArray(running.map(({ id }) => id))]),
  );
  const found = new Map<string, TenantCountRow & { readonly counts: Record<CountedState, number> }>();
  for (const { queue, task, state, jobs } of rows) {
    const key = `${queue}\u0001${task}`;
    const row = found.get(key) ?? { queue, task, counts: { ...NO_JOBS } };
    found.set(key, row);
    row.counts[state] = jobs;
  }
  return [...found.values()];
}
