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

interface Candidate {
  readonly lease: LeaseId;
  readonly held: Held;
  readonly place: number;
  readonly settlement: Settlement;
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

  sort(settlements: readonly Settlement[]): Sorted {
    if (this.#held.size === 0) return { bundles: [], rest: settlements };
    const rest: Settlement[] = [];
    const candidates: Candidate[] = [];
    let ordered = true;
    let last: Candidate | undefined;
    for (const settlement of settlements) {
      const { lease } = settlement;
      const held = last?.lease === lease ? last.held : this.#held.get(lease);
      const place = held === undefined || !isUsual(settlement) ? 0 : placeOf(held, settlement.job);
      if (held === undefined || place === 0) rest.push(settlement);
      else {
        if (last !== undefined && (last.lease === lease ? last.place > place : last.lease > lease)) ordered = false;
        last = { lease, held, place, settlement };
        candidates.push(last);
      }
    }
    if (!ordered) candidates.sort((a, b) => (a.lease === b.lease ? a.place - b.place : a.lease < b.lease ? -1 : 1));
    return { bundles: this.#bundle(candidates, rest), rest };
  }

  /** They are settled, or never will be: a lease whose jobs are all done is forgotten. */
  settled(settlements: readonly Settlement[]): void {
    for (const { lease } of settlements) {
      const held = this.#held.get(lease);
      if (held !== undefined && --held.left <= 0) this.#held.delete(lease);
    }
  }

  #bundle(candidates: readonly Candidate[], rest: Settlement[]): readonly Bundle[] {
    const bundles: Bundle[] = [];
    for (let i = 0; i < candidates.length; ) {
      const { lease, held, place } = candidates[i] as Candidate;
      const run = runAt(held.runs, place);
      const settlements: Settlement[] = [];
      const most = run === undefined ? 1 : run.to - place + 1;
      for (; settlements.length < most && i < candidates.length; i++) {
        const next = candidates[i] as Candidate;
        if (next.lease !== lease || next.place !== place + settlements.length) break;
        settlements.push(next.settlement);
      }
      if (run === undefined || settlements.length < this.smallest) rest.push(...settlements);
      else bundles.push({ lease, seq: run.seq + place - run.from, from: place, to: place + settlements.length - 1, settlements });
    }
    return bundles;
  }
}

/** A first attempt that succeeded, and leaves nothing behind: no output, no slot of a limit. */
function isUsual({ patch, limited }: Settlement): boolean {
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

/** What of a job's history is in a bundle, found by the parcel it was enqueued in. `j` is its row. */
export const OUT_OF_BUNDLES = `
  (select b.lease, ${stateCode("succeeded")}::int2 as next, b.since + b.finished[array_position(b.jobs, j.id)] * interval '1 microsecond' as finished_at
   from pawl.bundle b where b.seq >= j.parcel and b.seq < j.parcel + ${SEQ_STEP} and j.id = any(b.jobs) limit 1)`;

/** Attempts of jobs that were dropped meanwhile stay away. */
const OPEN_BUNDLES = statement(
  "open_bundles",
  `
  with found as materialized (
    select distinct b.seq from unnest($1::uuid[]) as g(id) cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
    cross join lateral (
      select b.seq from pawl.bundle b where b.seq >= j.parcel and b.seq < j.parcel + ${SEQ_STEP} and g.id = any(b.jobs)
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
