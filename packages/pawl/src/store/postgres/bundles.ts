import type { JobId, LeaseId } from "../../core/id.js";
import type { Settlement } from "../port-leases.js";
import { plainArray } from "./arrays.js";
import { outcomeCode, stateCode } from "./codes.js";
import { statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { SEQ_STEP } from "./parcels.js";

/** Jobs of a lease, by their places in it from 1, that came out of one parcel, one after the other. */
export interface Run {
  /** place of the first one in its lane */
  readonly seq: number;
  readonly from: number;
  readonly to: number;
}

/** What this process knows of a lease it claimed: where in it each job is. */
interface Held {
  readonly jobs: readonly JobId[];
  readonly runs: readonly Run[];
  places: Map<JobId, number> | undefined;
  /** the place after the one asked for last: jobs are settled much as they were claimed */
  next: number;
  /** jobs not settled yet */
  left: number;
}

/** Those of a batch whose attempts can be recorded together, and the rest. */
export interface Sorted {
  readonly bundles: readonly Bundle[];
  readonly rest: readonly Settlement[];
}

/** Contiguous jobs of one run, settled at once. */
export interface Bundle extends Run {
  readonly lease: LeaseId;
  readonly settlements: readonly Settlement[];
}

/** What a batch settles of one lease, by its places. */
interface Part {
  readonly lease: LeaseId;
  readonly held: Held;
  readonly items: (Settlement | undefined)[];
  first: number;
  last: number;
}

/** A lease that is lost is never heard of again. */
const MOST_HELD = 4_096;

/**
 * The leases of this process with jobs out of parcels. It only says what may be bundled; whether it was settled before
 * says the lease's row. A lease that is not known here is settled row by row.
 */
export class HeldLeases {
  readonly #held = new Map<LeaseId, Held>();

  /** `smallest`: for fewer attempts, rows of their own are as good */
  constructor(private readonly smallest: number) {}

  add(lease: LeaseId, jobs: readonly JobId[], runs: readonly Run[]): void {
    if (runs.length === 0) return;
    if (this.#held.size >= MOST_HELD) this.#held.delete(this.#held.keys().next().value as LeaseId);
    this.#held.set(lease, { jobs, runs, places: undefined, next: 0, left: jobs.length });
  }

  /** Undefined if one of them is there twice. */
  sort(settlements: readonly Settlement[]): Sorted | undefined {
    const parts = new Map<LeaseId, Part | undefined>();
    const rest: Settlement[] = [];
    let part: Part | undefined;
    let lease: LeaseId | undefined;
    for (const settlement of settlements) {
      if (settlement.lease !== lease) {
        lease = settlement.lease;
        if (!parts.has(lease)) parts.set(lease, this.#partOf(lease));
        part = parts.get(lease);
      }
      const place = part === undefined ? 0 : placeOf(part.held, settlement.job);
      if (part !== undefined && place > 0 && !put(part, place, settlement)) return undefined;
      // In the order they were given: those that go back to their lanes line up by it.
      if (part === undefined || place === 0 || !isUsual(settlement)) rest.push(settlement);
    }
    if (rest.length > 1 && new Set(rest.map(settlementKey)).size < rest.length) return undefined;
    const bundles: Bundle[] = [];
    for (const one of parts.values()) if (one !== undefined) bundle(one, bundles, rest);
    return this.#worthWhile(bundles, rest);
  }

  /** They are settled, or never will be: a lease whose jobs are all done is forgotten. */
  settled({ bundles, rest }: Sorted): void {
    for (const { lease, settlements } of bundles) this.#done(lease, settlements.length);
    for (const { lease } of rest) this.#done(lease, 1);
  }

  #done(lease: LeaseId, count: number): void {
    const held = this.#held.get(lease);
    if (held === undefined) return;
    held.left -= count;
    if (held.left <= 0) this.#held.delete(lease);
  }

  #partOf(lease: LeaseId): Part | undefined {
    const held = this.#held.get(lease);
    return held === undefined ? undefined : { lease, held, items: new Array(held.jobs.length + 1), first: held.jobs.length, last: 0 };
  }

  /** Small ones go along with large ones only where no rows are to be written anyway. */
  #worthWhile(bundles: readonly Bundle[], rest: Settlement[]): Sorted {
    const large = bundles.filter(({ settlements }) => settlements.length >= this.smallest);
    if (large.length === bundles.length || (rest.length === 0 && large.length > 0)) return { bundles, rest };
    for (const { settlements } of bundles) if (settlements.length < this.smallest) rest.push(...settlements);
    return { bundles: large, rest };
  }
}

function bundle({ lease, held, items, first, last }: Part, bundles: Bundle[], rest: Settlement[]): void {
  for (let place = first; place <= last; ) {
    const run = runAt(held.runs, place);
    const from = place;
    const end = run === undefined ? from : Math.min(run.to, last);
    while (place <= end && isUsual(items[place])) place++;
    const settlements = items.slice(from, place) as Settlement[];
    if (run === undefined) rest.push(...settlements);
    else if (settlements.length > 0) bundles.push({ lease, seq: run.seq + from - run.from, from, to: place - 1, settlements });
    if (place === from) place++;
  }
}

/** Whether nothing was there. */
function put(part: Part, place: number, settlement: Settlement): boolean {
  if (part.items[place] !== undefined) return false;
  part.items[place] = settlement;
  if (place < part.first) part.first = place;
  if (place > part.last) part.last = place;
  return true;
}

/** What stands for an attempt among all others. */
export function settlementKey({ lease, job }: Pick<Settlement, "lease" | "job">): string {
  return `${lease}:${job}`;
}

/** A first attempt that succeeded, and leaves nothing behind: no output, no slot of a limit. */
function isUsual(settlement: Settlement | undefined): boolean {
  if (settlement === undefined) return false;
  const { patch, limited } = settlement;
  return (
    limited !== true &&
    patch.next === "succeeded" &&
    patch.spent === 1 &&
    patch.crashes === 0 &&
    patch.output === undefined &&
    patch.failure === undefined
  );
}

function placeOf(held: Held, job: JobId): number {
  if (held.jobs[held.next] !== job) {
    held.places ??= new Map(held.jobs.map((id, index) => [id, index]));
    held.next = held.places.get(job) ?? -1;
  }
  return ++held.next;
}

function runAt(runs: readonly Run[], place: number): Run | undefined {
  let low = 0;
  let high = runs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((runs[middle] as Run).from <= place) low = middle;
    else high = middle - 1;
  }
  const run = runs[low] as Run;
  return run.from <= place && place <= run.to ? run : undefined;
}

/** What of a job's history is in a bundle, found by its number. `j` is its row. */
export const OUT_OF_BUNDLES = `
  (select b.lease, ${stateCode("succeeded")}::int2 as next, b.since + b.finished[array_position(b.jobs, j.id)] * interval '1 microsecond' as finished_at
   from pawl.bundle b where b.seq > j.home - ${SEQ_STEP} and b.seq <= j.home and j.id = any(b.jobs) limit 1)`;

/** Attempts of jobs that were dropped meanwhile stay away. */
const OPEN_BUNDLES = statement(
  "open_bundles",
  `
  with found as materialized (
    select distinct b.seq from unnest($1::uuid[]) as g(id) cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
    cross join lateral (
      select b.seq from pawl.bundle b where b.seq > j.home - ${SEQ_STEP} and b.seq <= j.home and g.id = any(b.jobs)
    ) b order by b.seq
  ),
  opened as (delete from pawl.bundle b using found f where b.seq = f.seq returning b.*)
  insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes)
  select o.lease, o.since + u.started * interval '1 microsecond', o.since + u.finished * interval '1 microsecond', u.job, o.worker,
    ${outcomeCode("succeeded")}, ${stateCode("succeeded")}, 1, 0
  from opened o cross join lateral unnest(o.jobs, o.started, o.finished) as u(job, started, finished)
  where exists (select from pawl.job j where j.id = u.job)`,
);

/** Whoever takes a job out of the history, or elsewhere, finds each of its attempts as a row. */
export async function openBundles(on: Queryable, ids: readonly JobId[]): Promise<void> {
  if (ids.length > 0) await on.query(OPEN_BUNDLES, [plainArray(ids)]);
}
