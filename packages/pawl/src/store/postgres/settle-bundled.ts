import type { Settlement } from "../port-leases.js";
import { plainArray } from "./arrays.js";
import type { Bundle } from "./bundles.js";
import { hotStatement } from "./db.js";
import { deltaParameters } from "./settle-parameters.js";
import { UNFIT } from "./unfit.js";

/**
 * The hottest exit: as `settle.ts`, for attempts that all went the usual way. Which jobs they were of says the lease, so
 * nothing but times is sent, and a row per run of them is written. A place that was settled before, however it was
 * written, is in `settled` of the lease's row, which is read after the lock. Nothing is appended to the jobs there: but what
 * comes of that is here, while the column itself is stored apart, and would be fetched anew for every bundle.
 */
export const SETTLE_BUNDLED = hotStatement(
  "settle",
  "settle_bundled",
  `
  with own as materialized (
    select id, open, watched, settled, jobs || '{}'::uuid[] as jobs from pawl.lease where id = any($2::bigint[]) and worker = $1 order by id for update
  ),
  aside as materialized (
    select exists (select from own where watched)
      or (exists (select from pawl.dependency) and exists (select from pawl.dependency where parent = any(array(select unnest(jobs) from own))))
      or (exists (select from pawl.intent) and exists (select from pawl.intent where job = any(array(select unnest(jobs) from own)))) as raised
  ),
  free as materialized (
    select own.*, c.done, c.places from own join unnest($2::bigint[], $3::int[], $4::int4multirange[]) as c(id, done, places) on c.id = own.id
    where not (select raised from aside) and not own.settled && c.places
  ),
  fresh as (
    insert into pawl.bundle (seq, lease, since, worker, first, jobs, started, finished)
    select g.seq, f.id, to_timestamp($12), $1, f.jobs[g.first], f.jobs[g.first : g.last], ($10::int[])[g.time : g.time + g.last - g.first], ($11::int[])[g.time : g.time + g.last - g.first]
    from unnest($5::bigint[], $6::bigint[], $7::int[], $8::int[], $9::int[]) as g(lease, seq, first, last, time) join free f on f.id = g.lease
    where f.jobs[g.first] >= (select floor from pawl.span) and g.last <= cardinality(f.jobs)
    returning 1
  ),
  closed as (delete from pawl.lease l using free f where l.id = f.id and f.open <= f.done),
  lowered as (update pawl.lease l set open = f.open - f.done, settled = f.settled + f.places from free f where l.id = f.id and f.open > f.done),
  counted as (
    insert into pawl.delta (queue, task, running, succeeded, ready, scheduled, dead, cancelled)
    select * from unnest($13::text[], $14::text[], $15::int[], $16::int[], $17::int[], $18::int[], $19::int[], $20::int[]) where not (select raised from aside)
  )
  select raised, case when raised then true when (select count(*) from fresh) = cardinality($5::bigint[]) then true
    else ('${UNFIT}: only ' || (select count(*) from fresh) || ' of ' || cardinality($5::bigint[]) || ' bundles fit')::bool end as settled from aside`,
);

/** µs that the columns hold. */
const LONGEST = 2_147_483_647;

/**
 * When the attempts of bundles began and ended, in µs since a second that is before all of them. What runs for every job is
 * apart from what runs for a batch, here and where jobs are claimed: small loops are compiled soon, and in no time.
 */
class Times {
  readonly since: number;
  readonly started: number[] = [];
  readonly finished: number[] = [];
  latest = 0;

  constructor(bundles: readonly Bundle[]) {
    let first = Number.POSITIVE_INFINITY;
    for (const { settlements } of bundles) first = Math.min(first, earliest(settlements));
    this.since = Math.floor(first / 1_000);
    for (const { settlements } of bundles) this.#add(settlements, this.since * 1_000);
  }

  #add(settlements: readonly Settlement[], since: number): void {
    for (let i = 0; i < settlements.length; i++) {
      const { startedAt, finishedAt } = settlements[i] as Settlement;
      const finished = Math.round((finishedAt - since) * 1_000);
      this.started.push(Math.round((startedAt - since) * 1_000));
      this.finished.push(finished);
      if (finished > this.latest) this.latest = finished;
    }
  }
}

function earliest(settlements: readonly Settlement[]): number {
  let first = Number.POSITIVE_INFINITY;
  for (let i = 0; i < settlements.length; i++) first = Math.min(first, (settlements[i] as Settlement).startedAt);
  return first;
}

/** What SETTLE_BUNDLED is sent from its second parameter on; undefined if they are too far apart in time. */
export function bundledParameters(bundles: readonly Bundle[]): readonly (string | number)[] | undefined {
  const { since, started, finished, latest } = new Times(bundles);
  if (latest > LONGEST) return undefined;
  const leases = new Map<string, { done: number; places: string }>();
  let time = 1;
  const times: number[] = [];
  for (const { lease, from, to, settlements } of bundles) {
    const places = `[${from},${to + 1})`;
    const known = leases.get(lease);
    if (known === undefined) leases.set(lease, { done: settlements.length, places });
    else {
      known.done += settlements.length;
      known.places += `,${places}`;
    }
    times.push(time);
    time += settlements.length;
  }
  return [
    plainArray([...leases.keys()]),
    plainArray([...leases.values()].map(({ done }) => done)),
    `{${[...leases.values()].map(({ places }) => `"{${places}}"`).join(",")}}`,
    plainArray(bundles.map(({ lease }) => lease)),
    plainArray(bundles.map(({ seq }) => seq)),
    plainArray(bundles.map(({ from }) => from)),
    plainArray(bundles.map(({ to }) => to)),
    plainArray(times),
    `{${started.join(",")}}`,
    `{${finished.join(",")}}`,
    since,
    ...deltaParameters(bundles),
  ];
}
