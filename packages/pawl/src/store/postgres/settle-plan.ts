import { dueTimeOf, type JobId, type LeaseId } from "../../core/id.js";
import type { Lane } from "../../core/lane.js";
import { isSuspect } from "../../core/outcome.js";
import type { ClaimPlace, Settlement } from "../port-leases.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import { outcomeCode, stateCode } from "./codes.js";
import { HISTORY_SPAN } from "./history.js";
import { LanesTable } from "./lanes-table.js";
import { firstId, monthOf } from "./partitions.js";
import type { SettleParameter } from "./settle-statements.js";

/** A settlement of a job whose place in its lease is known. */
export type Placed = Settlement & { readonly at: ClaimPlace };

export function isPlaced(item: Settlement): item is Placed {
  return item.at !== undefined;
}

/** Jobs of one lane, one after the other in a lease, whose attempts become one row of history. */
export type Run = readonly [Placed, ...Placed[]];

/** Not so many that their ids, or their attempts, need more than a row. */
const MOST_IN_RUN = 64;
/** Characters of outputs in a row. */
const MOST_OUTPUT = 16_384;
/** Microseconds that a column of a row with several attempts holds. */
const LONGEST = 2_147_483_647;

/** The runs of a batch, lease by lease, in the order of the leases' numbers: that is the order in which all who settle lock them. */
export interface SettlePlan {
  readonly leases: readonly { readonly id: LeaseId; readonly from: number; readonly to: number }[];
  readonly runs: readonly Run[];
  /** as they were given */
  readonly items: readonly Placed[];
  /** seconds */
  readonly since: number;
}

export function planSettlement(items: readonly Placed[]): SettlePlan {
  const byLease = new Map<LeaseId, Placed[]>();
  let since = Number.POSITIVE_INFINITY;
  let last: { readonly id: LeaseId; readonly items: Placed[] } | undefined;
  for (const item of items) {
    if (item.startedAt < since) since = item.startedAt;
    if (last?.id !== item.lease) {
      const known = byLease.get(item.lease) ?? [];
      byLease.set(item.lease, known);
      last = { id: item.lease, items: known };
    }
    last.items.push(item);
  }
  since = Math.floor(since / 1_000);
  const leases: { id: LeaseId; from: number; to: number }[] = [];
  const runs: Run[] = [];
  for (const id of [...byLease.keys()].sort(byNumber)) {
    const from = runs.length + 1;
    cutRuns(inOrder(byLease.get(id) as Placed[]), since * 1_000, runs);
    leases.push({ id, from, to: runs.length });
  }
  return { leases, runs, items, since };
}

/** Numbers of leases, as texts. */
function byNumber(a: LeaseId, b: LeaseId): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

/** Jobs are settled much as they were claimed, so most are in order already. */
function inOrder(items: Placed[]): readonly Placed[] {
  for (let i = 1; i < items.length; i++) {
    if ((items[i] as Placed).at.place < (items[i - 1] as Placed).at.place) return items.sort((a, b) => a.at.place - b.at.place);
  }
  return items;
}

/** What a run that grows holds so far. */
interface Growing {
  readonly items: [Placed, ...Placed[]];
  readonly month: IdRange;
  least: number;
  most: number;
  output: number;
}

function cutRuns(items: readonly Placed[], since: number, runs: Run[]): void {
  let run: Growing | undefined;
  for (const item of items) {
    // Of two settlements of one job the first counts.
    if (run !== undefined && run.items[run.items.length - 1]?.at.place === item.at.place) continue;
    if (run !== undefined && grow(run, item, since)) continue;
    if (run !== undefined) runs.push(run.items);
    const { home } = item.at;
    run = { items: [item], month: idsOfMonth(item.job), least: home, most: home, output: outputOf(item) };
  }
  if (run !== undefined) runs.push(run.items);
}

/** Whether the job can be in the run; then it is. */
function grow(run: Growing, item: Placed, since: number): boolean {
  const { items } = run;
  const last = items[items.length - 1] as Placed;
  const least = Math.min(run.least, item.at.home);
  const most = Math.max(run.most, item.at.home);
  const output = run.output + outputOf(item);
  const fits =
    item.at.place === last.at.place + 1 &&
    items.length < MOST_IN_RUN &&
    isSameLane(item.lane, last.lane) &&
    most - least < HISTORY_SPAN &&
    output <= MOST_OUTPUT &&
    (item.finishedAt - since) * 1_000 <= LONGEST &&
    (last.finishedAt - since) * 1_000 <= LONGEST &&
    item.job >= run.month.from &&
    item.job < run.month.to;
  if (!fits) return false;
  items.push(item);
  run.least = least;
  run.most = most;
  run.output = output;
  return true;
}

function outputOf({ patch }: Placed): number {
  return patch.output?.length ?? 0;
}

function isSameLane(a: Lane, b: Lane): boolean {
  return a === b || (a.queue === b.queue && a.band === b.band && a.tenant === b.tenant && a.task === b.task);
}

interface IdRange {
  readonly from: string;
  readonly to: string;
}

let lastMonth: IdRange = { from: "", to: "" };

/** The ids of the month that the job is in. Most jobs are of the month that was asked for last. */
function idsOfMonth(job: JobId): IdRange {
  if (job >= lastMonth.from && job < lastMonth.to) return lastMonth;
  const { from, to } = monthOf(dueTimeOf(job));
  lastMonth = { from: firstId(from), to: firstId(to) };
  return lastMonth;
}

type Column = (string | number | boolean | undefined)[];

/** An array parameter with nothing but nulls is as good as an empty one. */
function sparse(column: Column): string {
  return column.some((value) => value !== undefined) ? plainArray(column) : ALL_NULL;
}

/** What SETTLE is sent. What runs for every job is apart from what runs for a batch: small loops are compiled soon. */
export function settleParameters({ leases, runs, items, since }: SettlePlan, now: number | null, worker: number): Record<SettleParameter, unknown> {
  const lanes = new LanesTable();
  const times = new Times(since * 1_000);
  const odd = new OddAttempts();
  const outputs = new Outputs();
  const moved = new MovedJobs(lanes);
  const at: number[] = [];
  const homes: number[] = [];
  const lastHomes: number[] = [];
  const laneNumbers: number[] = [];
  const counts = { ready: [] as Column, scheduled: [] as Column, dead: [] as Column, cancelled: [] as Column };
  runs.forEach((run, index) => {
    at.push(times.add(run));
    const [first, last] = homesOf(run);
    homes.push(first);
    lastHomes.push(last);
    laneNumbers.push(lanes.number(run[0].lane));
    odd.add(run);
    outputs.add(run);
    const gone = moved.add(run, index + 1);
    for (const state of ["ready", "scheduled", "dead", "cancelled"] as const) counts[state].push(gone?.[state]);
  });
  const [queue, band, tenant, task] = lanes.parameters();
  return {
    now,
    worker,
    since,
    started: `{${times.started.join(",")}}`,
    finished: `{${times.finished.join(",")}}`,
    outputs: textArray(outputs.texts),
    odd: plainArray(odd.numbers),
    failures: textArray(odd.failures),
    lease_ids: plainArray(leases.map(({ id }) => id)),
    lease_from: plainArray(leases.map(({ from }) => from)),
    lease_to: plainArray(leases.map(({ to }) => to)),
    run_first: plainArray(runs.map(([first]) => first.at.place)),
    run_last: plainArray(runs.map((run) => (run[run.length - 1] as Placed).at.place)),
    run_home: plainArray(homes),
    run_last_home: plainArray(lastHomes),
    run_at: plainArray(at),
    run_outputs: sparse(outputs.from),
    run_odd_from: sparse(odd.from),
    run_odd_to: sparse(odd.to),
    run_lane: plainArray(laneNumbers),
    run_ready: sparse(counts.ready),
    run_scheduled: sparse(counts.scheduled),
    run_dead: sparse(counts.dead),
    run_cancelled: sparse(counts.cancelled),
    queue,
    band,
    tenant,
    task,
    ...moved.parameters(items),
  };
}

function homesOf(run: Run): readonly [number, number] {
  let least = run[0].at.home;
  let most = least;
  for (let i = 1; i < run.length; i++) {
    const { home } = (run[i] as Placed).at;
    if (home < least) least = home;
    if (home > most) most = home;
  }
  return [least, most];
}

/** When attempts began and ended, in microseconds after `since` (ms), run by run. */
class Times {
  readonly started: number[] = [];
  readonly finished: number[] = [];

  constructor(private readonly since: number) {}

  /** Where the run begins, from 1. */
  add(run: Run): number {
    const from = this.started.length + 1;
    for (let i = 0; i < run.length; i++) {
      const { startedAt, finishedAt } = run[i] as Placed;
      this.started.push(Math.round((startedAt - this.since) * 1_000));
      this.finished.push(Math.round((finishedAt - this.since) * 1_000));
    }
    return from;
  }
}

/** Attempts that were not first ones that succeeded: the numbers of each (ODD_NUMBERS), and its failure. */
class OddAttempts {
  readonly numbers: number[] = [];
  readonly failures: (string | undefined)[] = [];
  readonly from: Column = [];
  readonly to: Column = [];

  add(run: Run): void {
    const before = this.failures.length;
    for (let i = 0; i < run.length; i++) {
      const { patch } = run[i] as Placed;
      if (isUsual(patch)) continue;
      this.numbers.push(i + 1, outcomeCode(patch.outcome), stateCode(patch.next), patch.spent, patch.crashes);
      this.failures.push(patch.failure === undefined ? undefined : JSON.stringify(patch.failure));
    }
    const any = this.failures.length > before;
    this.from.push(any ? before + 1 : undefined);
    this.to.push(any ? this.failures.length : undefined);
  }
}

function isUsual({ outcome, next, spent, crashes, failure }: Settlement["patch"]): boolean {
  return outcome === "succeeded" && next === "succeeded" && spent === 1 && crashes === 0 && failure === undefined;
}

/** Outputs of runs that have any, one for each of their jobs. */
class Outputs {
  readonly texts: (string | undefined)[] = [];
  readonly from: Column = [];

  add(run: Run): void {
    if (!run.some(({ patch }) => patch.output !== undefined)) return void this.from.push(undefined);
    this.from.push(this.texts.length + 1);
    for (const { patch } of run) this.texts.push(patch.output);
  }
}

type Gone = Record<"ready" | "scheduled" | "dead" | "cancelled", number>;

interface MovedJob {
  readonly run: number;
  /** in its run, from 1 */
  readonly nth: number;
  readonly item: Placed;
}

/** The jobs that go on: back to a lane, to the calendar, or to the dead. */
class MovedJobs {
  readonly #jobs: MovedJob[] = [];

  constructor(private readonly lanes: LanesTable) {}

  /** How many of the run went where, if not all of them succeeded. */
  add(run: Run, number: number): Gone | undefined {
    let gone: Gone | undefined;
    for (let i = 0; i < run.length; i++) {
      const item = run[i] as Placed;
      const { next } = item.patch;
      if (next === "succeeded") continue;
      gone ??= { ready: 0, scheduled: 0, dead: 0, cancelled: 0 };
      gone[next as keyof Gone]++;
      if (next !== "cancelled") this.#jobs.push({ run: number, nth: i + 1, item });
    }
    return gone;
  }

  /** In the order in which they were given: those that go back to their lanes line up by it. */
  parameters(given: readonly Placed[]) {
    const jobs = this.#jobs;
    if (jobs.length > 1) {
      const turns = new Map(given.map((item, turn) => [item, turn]));
      jobs.sort((a, b) => (turns.get(a.item) as number) - (turns.get(b.item) as number));
    }
    const patches = jobs.map(({ item }) => item.patch);
    return {
      moved_run: plainArray(jobs.map(({ run }) => run)),
      moved_nth: plainArray(jobs.map(({ nth }) => nth)),
      moved_lane: plainArray(jobs.map(({ item }) => this.lanes.number(item.lane))),
      moved_next: plainArray(patches.map(({ next }) => stateCode(next))),
      moved_spent: plainArray(patches.map(({ spent }) => spent)),
      moved_crashes: plainArray(patches.map(({ crashes }) => crashes)),
      moved_delay: plainArray(patches.map(({ delay }) => delay)),
      moved_suspect: plainArray(patches.map(({ crashes }) => isSuspect(crashes))),
      moved_kind: textArray(patches.map(({ failure }) => failure?.kind ?? "error")),
      moved_name: textArray(patches.map(({ failure }) => failure?.name ?? "error")),
    };
  }
}
