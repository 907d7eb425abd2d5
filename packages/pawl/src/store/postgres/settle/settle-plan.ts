import { dueTimeOf, type JobId, type LeaseId } from "../../../core/jobs/id.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { isSuspect } from "../../../core/jobs/outcome.js";
import type { LeaseIndex, Settlement } from "../../port/settle/leases.js";
import { numbersText, textArray } from "../connection/arrays.js";
import { outcomeCode, stateCode } from "../connection/codes.js";
import { LaneNumbers } from "../connection/lane-numbers.js";
import { MAX_HOME_DISTANCE } from "../connection/sql-constants.js";
import type { SqlParameters } from "../connection/sql-parameters.js";
import { firstId, monthOf } from "../schema/partitions.js";

/** A settlement of a job whose index in its lease is known. */
export type IndexedSettlement = Settlement & { readonly at: LeaseIndex };

export function hasIndex(item: Settlement): item is IndexedSettlement {
  return item.at !== undefined;
}

/** Jobs of one lane, one after the other in a lease, whose attempts become one row of history. */
export interface Run {
  readonly items: readonly [IndexedSettlement, ...IndexedSettlement[]];
  /** of their home numbers */
  readonly leastHome: number;
  readonly greatestHome: number;
  /** All are first attempts that succeeded without an output, as most are: there is nothing to say of them but their times. */
  readonly isPlain: boolean;
}

/** Not so many that their ids, or their attempts, need more than a row. */
const MAX_RUN_JOBS = 64;
/** Characters of outputs in a row. */
const MAX_OUTPUT_CHARS = 16_384;
/** Microseconds that a column of a row with several attempts holds. */
const MAX_MICROSECONDS = 2_147_483_647;

/** The runs of a batch, lease by lease, in the order of the leases' numbers: that is the order in which all who settle lock them. */
export interface SettlePlan {
  readonly leases: readonly { readonly id: LeaseId; readonly from: number; readonly to: number }[];
  readonly runs: readonly Run[];
  /** as they were given */
  readonly items: readonly IndexedSettlement[];
  /** seconds */
  readonly since: number;
}

export function planSettlement(items: readonly IndexedSettlement[]): SettlePlan {
  const byLease = new Map<LeaseId, IndexedSettlement[]>();
  let since = Number.POSITIVE_INFINITY;
  let last: { readonly id: LeaseId; readonly items: IndexedSettlement[] } | undefined;
  for (const item of items) {
    if (item.startedAt < since) since = item.startedAt;
    if (last?.id !== item.lease) {
      const ofLease = byLease.get(item.lease) ?? [];
      byLease.set(item.lease, ofLease);
      last = { id: item.lease, items: ofLease };
    }
    last.items.push(item);
  }
  since = Math.floor(since / 1_000);
  const leases: { id: LeaseId; from: number; to: number }[] = [];
  const runs: Run[] = [];
  for (const id of [...byLease.keys()].sort(byNumber)) {
    const from = runs.length + 1;
    cutRuns(inOrder(byLease.get(id) as IndexedSettlement[]), since * 1_000, runs);
    leases.push({ id, from, to: runs.length });
  }
  return { leases, runs, items, since };
}

/** Numbers of leases, as texts. */
function byNumber(a: LeaseId, b: LeaseId): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

/** Jobs are settled much as they were claimed, so most are in order already. */
function inOrder(items: IndexedSettlement[]): readonly IndexedSettlement[] {
  for (let i = 1; i < items.length; i++) {
    if ((items[i] as IndexedSettlement).at.index < (items[i - 1] as IndexedSettlement).at.index) return items.sort((a, b) => a.at.index - b.at.index);
  }
  return items;
}

/** A run that is being made. */
interface GrowingRun extends Run {
  readonly items: [IndexedSettlement, ...IndexedSettlement[]];
  readonly month: IdRange;
  leastHome: number;
  greatestHome: number;
  isPlain: boolean;
  outputChars: number;
  /** Its only job ended too late for the column of a row with several. */
  readonly isAlone: boolean;
}

function cutRuns(items: readonly IndexedSettlement[], since: number, runs: Run[]): void {
  let run: GrowingRun | undefined;
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as IndexedSettlement;
    if (run !== undefined) {
      // Of two settlements of one job the first counts.
      if (run.items[run.items.length - 1]?.at.index === item.at.index) continue;
      if (grow(run, item, since)) continue;
    }
    run = newRun(item, since);
    runs.push(run);
  }
}

function newRun(item: IndexedSettlement, since: number): GrowingRun {
  const { home } = item.at;
  return {
    items: [item],
    month: idsOfMonth(item.job),
    leastHome: home,
    greatestHome: home,
    isPlain: isPlain(item),
    outputChars: outputOf(item),
    isAlone: endsTooLate(item, since),
  };
}

/** Whether the job can be in the run; then it is. */
function grow(run: GrowingRun, item: IndexedSettlement, since: number): boolean {
  const { items } = run;
  const last = items[items.length - 1] as IndexedSettlement;
  const { index, home } = item.at;
  if (index !== last.at.index + 1 || items.length >= MAX_RUN_JOBS || run.isAlone || !isSameLane(item.lane, last.lane)) return false;
  if (item.job < run.month.from || item.job >= run.month.to || endsTooLate(item, since)) return false;
  const leastHome = Math.min(home, run.leastHome);
  const greatestHome = Math.max(home, run.greatestHome);
  const outputChars = run.outputChars + outputOf(item);
  if (greatestHome - leastHome >= MAX_HOME_DISTANCE || outputChars > MAX_OUTPUT_CHARS) return false;
  items.push(item);
  run.leastHome = leastHome;
  run.greatestHome = greatestHome;
  run.outputChars = outputChars;
  if (run.isPlain && item.patch !== last.patch) run.isPlain = isPlain(item);
  return true;
}

function endsTooLate({ finishedAt }: IndexedSettlement, since: number): boolean {
  return (finishedAt - since) * 1_000 > MAX_MICROSECONDS;
}

function isPlain({ patch }: IndexedSettlement): boolean {
  return patch.output === undefined && isPlainSuccess(patch);
}

function outputOf({ patch }: IndexedSettlement): number {
  return patch.output?.length ?? 0;
}

function isSameLane(a: Lane, b: Lane): boolean {
  return a === b || (a.queue === b.queue && a.priority === b.priority && a.tenant === b.tenant && a.task === b.task);
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

type NumberColumn = (number | undefined)[];

/** What SETTLE is sent. What runs for every job is apart from what runs for a batch: small loops are compiled soon. */
export function settleParameters({ leases, runs, items, since }: SettlePlan, now: number | null, worker: number): SqlParameters["settle/settle.sql"] {
  const lanes = new LaneNumbers();
  const times = new Times(since * 1_000);
  const outcomes = new OutcomeColumn();
  const outputs = new Outputs();
  const move = new MoveColumns(lanes);
  const at: number[] = [];
  const homes: number[] = [];
  const lastHomes: number[] = [];
  const laneNumbers: number[] = [];
  const counts = { ready: [] as NumberColumn, scheduled: [] as NumberColumn, dead: [] as NumberColumn, cancelled: [] as NumberColumn };
  runs.forEach((run, index) => {
    at.push(times.add(run));
    homes.push(run.leastHome);
    lastHomes.push(run.greatestHome);
    laneNumbers.push(lanes.number(run.items[0].lane));
    outcomes.add(run);
    outputs.add(run);
    const gone = move.add(run, index + 1);
    for (const state of ["ready", "scheduled", "dead", "cancelled"] as const) counts[state].push(gone?.[state]);
  });
  const moves = move.columns(items);
  return {
    now,
    worker,
    since,
    started: numbersText(times.started),
    finished: numbersText(times.finished),
    outputs: outputs.texts,
    outcomes: outcomes.numbers,
    // As many as there are outcomes, even if none of them failed: they are taken apart by their places.
    failures: textArray(outcomes.failures),
    lease: { id: leases.map(({ id }) => id), runFrom: leases.map(({ from }) => from), runTo: leases.map(({ to }) => to) },
    run: {
      first: runs.map(({ items: [first] }) => first.at.index),
      last: runs.map((run) => (run.items[run.items.length - 1] as IndexedSettlement).at.index),
      home: homes,
      lastHome: lastHomes,
      at,
      outputs: outputs.from,
      outcomesFrom: outcomes.from,
      outcomesTo: outcomes.to,
      lane: laneNumbers,
      ...counts,
    },
    lane: lanes.columns(),
    move: moves,
  };
}

/** When attempts began and ended, in microseconds after `since` (ms), run by run. */
class Times {
  readonly started: number[] = [];
  readonly finished: number[] = [];

  constructor(private readonly since: number) {}

  /** Where the run begins, from 1. */
  add({ items }: Run): number {
    const from = this.started.length + 1;
    for (let i = 0; i < items.length; i++) {
      const { startedAt, finishedAt } = items[i] as IndexedSettlement;
      this.started.push(Math.round((startedAt - this.since) * 1_000));
      this.finished.push(Math.round((finishedAt - this.since) * 1_000));
    }
    return from;
  }
}

/** Attempts that were not first ones that succeeded: the numbers of each (OUTCOMES_NUMBERS), and its failure. */
class OutcomeColumn {
  readonly numbers: number[] = [];
  readonly failures: (string | undefined)[] = [];
  readonly from: NumberColumn = [];
  readonly to: NumberColumn = [];

  add({ items, isPlain: plain }: Run): void {
    const before = this.failures.length;
    for (let i = 0; i < items.length && !plain; i++) {
      const { patch } = items[i] as IndexedSettlement;
      if (isPlainSuccess(patch)) continue;
      this.numbers.push(i + 1, outcomeCode(patch.outcome), stateCode(patch.next), patch.attempts, patch.crashes);
      this.failures.push(patch.failure === undefined ? undefined : JSON.stringify(patch.failure));
    }
    const any = this.failures.length > before;
    this.from.push(any ? before + 1 : undefined);
    this.to.push(any ? this.failures.length : undefined);
  }
}

function isPlainSuccess({ outcome, next, attempts, crashes, failure }: Settlement["patch"]): boolean {
  return outcome === "succeeded" && next === "succeeded" && attempts === 1 && crashes === 0 && failure === undefined;
}

/** Outputs of runs that have any, one for each of their jobs. */
class Outputs {
  readonly texts: (string | undefined)[] = [];
  readonly from: NumberColumn = [];

  add({ items, isPlain: plain }: Run): void {
    if (plain || !items.some(({ patch }) => patch.output !== undefined)) return void this.from.push(undefined);
    this.from.push(this.texts.length + 1);
    for (const { patch } of items) this.texts.push(patch.output);
  }
}

type MoveCounts = Record<"ready" | "scheduled" | "dead" | "cancelled", number>;

interface PlannedMove {
  readonly run: number;
  /** in its run, from 1 */
  readonly nth: number;
  readonly item: IndexedSettlement;
}

/** The jobs that go on: back to a lane, to the calendar, or to the dead. */
class MoveColumns {
  readonly #jobs: PlannedMove[] = [];

  constructor(private readonly lanes: LaneNumbers) {}

  /** How many of the run went where, if not all of them succeeded. */
  add({ items, isPlain: plain }: Run, number: number): MoveCounts | undefined {
    if (plain) return undefined;
    let gone: MoveCounts | undefined;
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as IndexedSettlement;
      const { next } = item.patch;
      if (next === "succeeded") continue;
      gone ??= { ready: 0, scheduled: 0, dead: 0, cancelled: 0 };
      gone[next as keyof MoveCounts]++;
      if (next !== "cancelled") this.#jobs.push({ run: number, nth: i + 1, item });
    }
    return gone;
  }

  /** In the order in which they were given: those that go back to their lanes line up by it. */
  columns(given: readonly IndexedSettlement[]): SqlParameters["settle/settle.sql"]["move"] {
    const jobs = this.#jobs;
    if (jobs.length > 1) {
      const turns = new Map(given.map((item, turn) => [item, turn]));
      jobs.sort((a, b) => (turns.get(a.item) as number) - (turns.get(b.item) as number));
    }
    const patches = jobs.map(({ item }) => item.patch);
    return {
      run: jobs.map(({ run }) => run),
      nth: jobs.map(({ nth }) => nth),
      lane: jobs.map(({ item }) => this.lanes.number(item.lane)),
      next: patches.map(({ next }) => stateCode(next)),
      attempts: patches.map(({ attempts }) => attempts),
      crashes: patches.map(({ crashes }) => crashes),
      delay: patches.map(({ delay }) => delay),
      suspect: patches.map(({ crashes }) => isSuspect(crashes)),
      kind: patches.map(({ failure }) => failure?.kind ?? "error"),
      name: patches.map(({ failure }) => failure?.name ?? "error"),
    };
  }
}
