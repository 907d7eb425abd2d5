import type { JobId } from "../../core/id.js";
import { NOBODY, type Standing } from "../../core/series.js";
import { Limiter } from "../../runtime/limiter.js";
import type { StandingRow } from "../port-records.js";
import { plainArray } from "./arrays.js";
import { type Db, statement } from "./db.js";
import { readFor } from "./wall.js";

/**
 * Jobs of a tenant that a lease holds. Leases hold jobs of several tenants, so nobody sees them behind the wall: this tells ids
 * alone. Whose a job is comes first, in CASE, so that of others nothing else is asked.
 */
const HELD = statement(
  "held_of_tenant",
  `
  select u.id from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(id, place)
  where case
    when u.place::int <@ l.settled then false
    else coalesce((select tenant = $1 from pawl.job j where j.id = u.id), (select tenant = $1 from pawl.job_kept j where j.id = u.id), false)
  end`,
);

const counted = (state: Standing, table: string, count = "count(*)") =>
  `select queue, task, '${state}' as state, ${count} as jobs from pawl.${table} where tenant = $1 group by queue, task`;

const COUNT = statement(
  "standing_of_tenant",
  `
  select queue, task, state, sum(jobs)::float8 as jobs from (
    ${[
      counted("blocked", "blocked"),
      counted("scheduled", "scheduled"),
      counted("ready", "ready", "sum(size)"),
      counted("ready", "suspect"),
      counted("parked", "parked"),
      counted("dead", "dead"),
    ].join("\n    union all ")}
    union all select queue, task, 'running', count(*) from pawl.any_job where id = any($2::uuid[]) and tenant = $1 group by queue, task
  ) s group by queue, task, state order by queue, task`,
);

/**
 * There is no index by tenant: what waits, is held or is dead is looked through, whosever it is. So one look goes on at a
 * time, and all who ask for a tenant before its look has begun share it: however many ask, it is one connection's work.
 * (One that has begun may not show what whoever asks now has done.)
 */
export class Standings {
  readonly #looks = new Limiter(1);
  readonly #toCome = new Map<string, Promise<readonly StandingRow[]>>();

  constructor(private readonly look: (tenant: string) => Promise<readonly StandingRow[]>) {}

  of(tenant: string): Promise<readonly StandingRow[]> {
    let look = this.#toCome.get(tenant);
    if (look === undefined) {
      look = this.#inTurn(tenant);
      this.#toCome.set(tenant, look);
    }
    return look;
  }

  async #inTurn(tenant: string): Promise<readonly StandingRow[]> {
    await undefined; // until it is known to be coming
    return this.#looks.run(() => {
      this.#toCome.delete(tenant);
      return this.look(tenant);
    });
  }
}

/** A job that moves meanwhile may be missed, or told twice. */
export async function readStanding(db: Db, tenant: string): Promise<readonly StandingRow[]> {
  const held = await db.query<{ id: JobId }>(HELD, [tenant]);
  const rows = await readFor(db, { tenant }, (on) =>
    on.query<{ queue: string; task: string; state: Standing; jobs: number }>(COUNT, [tenant, plainArray(held.map(({ id }) => id))]),
  );
  const found = new Map<string, StandingRow & { readonly counts: Record<Standing, number> }>();
  for (const { queue, task, state, jobs } of rows) {
    const key = `${queue}\u0001${task}`;
    const row = found.get(key) ?? { queue, task, counts: { ...NOBODY } };
    found.set(key, row);
    row.counts[state] = jobs;
  }
  return [...found.values()];
}
