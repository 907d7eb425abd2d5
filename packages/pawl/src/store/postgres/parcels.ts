import type { JobId } from "../../core/id.js";
import type { NewJob } from "../../core/job.js";
import { plainArray } from "./arrays.js";
import { statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";

/** How enqueued jobs of one lane are put together: from how many on, and how many at most. */
export interface ParcelSize {
  readonly from: number;
  readonly most: number;
}

/** Not so many that their ids, or a bundle of them, need more than a row, nor that taking a few writes much anew. */
export const PARCELS: ParcelSize = { from: 2, most: 64 };

/**
 * How many jobs a parcel holds, lately: a claim locks as many as it wants, and one more, as others find them locked. It
 * begins with full ones, and learns of small ones at once: who takes too few takes again, and what is locked for nothing
 * is passed over by others, who then start what is behind it.
 */
export class ParcelGuess {
  #jobs: number;

  constructor({ most }: ParcelSize) {
    this.#jobs = most;
  }

  get jobs(): number {
    return this.#jobs;
  }

  saw(parcels: number, jobs: number): void {
    if (parcels === 0) return;
    const seen = Math.max(1, jobs / parcels);
    this.#jobs = seen < this.#jobs ? seen : this.#jobs + (seen - this.#jobs) / 4;
  }
}

/** The step of `pawl.ready_seq`: the places of a parcel's jobs lie between its number and the next. */
export const SEQ_STEP = 1024;

/** Contiguous jobs of a batch, from 1, that go into one parcel. */
export interface Parcel {
  readonly lane: number;
  readonly first: number;
  readonly last: number;
}

/** A batch in an order in which the jobs of each parcel stand together; the order inside a lane stays. */
export interface Packed {
  readonly jobs: readonly NewJob[];
  /** the lane of each job, by number from 1 */
  readonly lanes: readonly number[];
  readonly parcels: readonly Parcel[];
}

export function pack(jobs: readonly NewJob[], lanes: readonly number[], laneCount: number, { from, most }: ParcelSize): Packed {
  if (jobs.length < from) return { jobs, lanes, parcels: [] };
  if (laneCount === 1) return { jobs, lanes, parcels: cut(1, 1, jobs.length, most) };
  const places = Array.from({ length: laneCount }, (): number[] => []);
  lanes.forEach((lane, place) => void places[lane - 1]?.push(place));
  const order: number[] = [];
  const parcels: Parcel[] = [];
  places.forEach((own, index) => {
    if (own.length < from) return;
    parcels.push(...cut(index + 1, order.length + 1, own.length, most));
    order.push(...own);
  });
  if (parcels.length === 0) return { jobs, lanes, parcels };
  lanes.forEach((lane, place) => {
    if ((places[lane - 1]?.length ?? 0) < from) order.push(place);
  });
  return { jobs: order.map((place) => jobs[place] as NewJob), lanes: order.map((place) => lanes[place] as number), parcels };
}

function cut(lane: number, first: number, count: number, most: number): readonly Parcel[] {
  const parcels: Parcel[] = [];
  for (let done = 0; done < count; done += most) {
    parcels.push({ lane, first: first + done, last: first + Math.min(count, done + most) - 1 });
  }
  return parcels;
}

/**
 * Whoever wants a job by its id finds it as a row of its own. A claim that takes out of a parcel at the same moment
 * leaves the rest in another row, which this statement's snapshot does not have: then it is `missed`.
 * `offset 0`: each is looked for by the key. Joined as it is estimated, for ten jobs, all parcels were read for every batch.
 * By `ctid`, which is the order that all who open lock them in; a parcel is never updated, so it stays where it is.
 */
const OPEN_PARCELS = statement(
  "open_parcels",
  `
  with wanted as materialized (
    select j.queue, j.band, j.tenant, j.task, j.home, j.id from unnest($1::uuid[]) as g(id)
    cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
  ),
  found as materialized (
    select distinct p.ctid as place
    from (select queue, band, tenant, task, min(home) as first, max(home) as last, array_agg(id) as ids from wanted group by queue, band, tenant, task, home / ${SEQ_STEP}) w
    cross join lateral (
      select p.ctid from pawl.parcel p
      where p.queue = w.queue and p.band = w.band and p.tenant = w.tenant and p.task = w.task and p.seq > w.first - ${SEQ_STEP} and p.seq <= w.last
        and p.jobs && w.ids
      offset 0
    ) p
  ),
  opened as (
    delete from pawl.parcel p where p.ctid = any(array(select place from found))
    returning p.seq, p.band, p.queue, p.tenant, p.task, p.jobs
  ),
  readied as (
    insert into pawl.ready (seq, id, band, spent, crashes, queue, tenant, task)
    select o.seq + u.place - 1, u.id, o.band, 0, 0, o.queue, o.tenant, o.task from opened o cross join lateral unnest(o.jobs) with ordinality as u(id, place)
  )
  select (select count(*) from found) > (select count(*) from opened) as missed`,
);

const MOST_LOOKS = 100;

export async function openParcels(on: Queryable, ids: readonly JobId[]): Promise<void> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const [answer] = await on.query<{ missed: boolean }>(OPEN_PARCELS, [plainArray(ids)]);
    if (answer?.missed !== true) return;
  }
}
