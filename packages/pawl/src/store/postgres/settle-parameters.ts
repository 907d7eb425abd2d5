import type { LeaseId } from "../../core/id.js";
import type { State } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { isSuspect } from "../../core/outcome.js";
import type { Settlement } from "../port-leases.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import type { Bundle } from "./bundles.js";
import { outcomeCode, stateCode } from "./codes.js";
import { LanesTable } from "./lanes-table.js";

type Column = (string | number | boolean | undefined)[];

/** What SETTLE is sent from its third parameter on. */
export function settleParameters(settlements: readonly Settlement[]): readonly (string | number)[] {
  const leases = new Leases();
  const tallies = new Tallies();
  const moved = new Moved();
  const [lease, job, started, finished]: [Column, Column, Column, Column] = [[], [], [], []];
  const since = Math.floor((settlements[0] as Settlement).startedAt / 1000);
  const microseconds = (at: number) => Math.round((at - since * 1000) * 1000);
  let usual = true;
  let plain = true;
  for (const item of settlements) {
    const { patch } = item;
    lease.push(leases.number(item.lease));
    job.push(item.job);
    started.push(microseconds(item.startedAt));
    finished.push(microseconds(item.finishedAt));
    tallies.add(item.lane, patch.next);
    usual &&= patch.next === "succeeded" && patch.spent === 1 && patch.crashes === 0;
    plain &&= patch.output === undefined && patch.failure === undefined;
    if (patch.next !== "succeeded" && patch.next !== "cancelled") moved.add(item);
  }
  return [
    ...leases.parameters(),
    plainArray(lease),
    plainArray(job),
    plainArray(started),
    plainArray(finished),
    ...(usual ? ALL_USUAL : unusual(settlements)),
    plain ? ALL_NULL : textArray(settlements.map(({ patch }) => patch.output)),
    plain ? ALL_NULL : textArray(settlements.map(({ patch }) => (patch.failure === undefined ? undefined : JSON.stringify(patch.failure)))),
    ...moved.parameters(),
    ...tallies.parameters(),
    settlements.length,
    since,
  ];
}

/** The leases of a batch, and how many of its settlements are of each. */
class Leases {
  readonly #ids: LeaseId[] = [];
  readonly #counts: number[] = [];
  readonly #numbers = new Map<LeaseId, number>();
  #last: LeaseId | undefined;
  #number = 0;

  /** Its number in the batch, from 1; one more settlement is of it. */
  number(lease: LeaseId): number {
    if (lease !== this.#last) {
      this.#last = lease;
      this.#number = this.#numbers.get(lease) ?? this.#add(lease);
    }
    (this.#counts[this.#number - 1] as number)++;
    return this.#number;
  }

  #add(lease: LeaseId): number {
    const number = this.#ids.push(lease);
    this.#counts.push(0);
    this.#numbers.set(lease, number);
    return number;
  }

  parameters(): readonly string[] {
    return [plainArray(this.#ids), plainArray(this.#counts)];
  }
}

/** outcome, next, spent and crashes of a first attempt that succeeded: what the statement takes for granted */
const ALL_USUAL = [ALL_NULL, ALL_NULL, ALL_NULL, ALL_NULL];

function unusual(settlements: readonly Settlement[]): readonly string[] {
  return [
    plainArray(settlements.map(({ patch }) => outcomeCode(patch.outcome))),
    plainArray(settlements.map(({ patch }) => stateCode(patch.next))),
    plainArray(settlements.map(({ patch }) => patch.spent)),
    plainArray(settlements.map(({ patch }) => patch.crashes)),
  ];
}

/** The jobs that go on: back to a lane, to the calendar, or to the dead. */
class Moved {
  readonly #lanes = new LanesTable();
  readonly #items: Settlement[] = [];
  readonly #numbers: number[] = [];

  add(item: Settlement): void {
    this.#items.push(item);
    this.#numbers.push(this.#lanes.number(item.lane));
  }

  parameters(): readonly string[] {
    const items = this.#items;
    return [
      ...this.#lanes.parameters(),
      plainArray(items.map((item) => item.job)),
      plainArray(this.#numbers),
      plainArray(items.map(({ patch }) => stateCode(patch.next))),
      plainArray(items.map(({ patch }) => patch.spent)),
      plainArray(items.map(({ patch }) => patch.crashes)),
      plainArray(items.map(({ patch }) => patch.delay)),
      plainArray(items.map(({ patch }) => isSuspect(patch.crashes))),
      textArray(items.map(({ patch }) => patch.failure?.kind ?? "error")),
      textArray(items.map(({ patch }) => patch.failure?.name ?? "error")),
    ];
  }
}

const COUNTED = ["succeeded", "ready", "scheduled", "dead", "cancelled"] as const;

interface Tally {
  readonly queue: string;
  readonly task: string;
  all: number;
  readonly next: Map<State, number>;
}

/** The rows of counts of bundles, each of which is of one lane. */
export function deltaParameters(bundles: readonly Bundle[]): readonly string[] {
  const tallies = new Tallies();
  for (const { settlements } of bundles) tallies.add((settlements[0] as Settlement).lane, "succeeded", settlements.length);
  return tallies.parameters();
}

/** How many jobs of each queue and task went where: a row of counts per pair, however many lanes it has. */
class Tallies {
  readonly #tallies: Tally[] = [];
  #last: Lane | undefined;
  #tally: Tally | undefined;

  add(lane: Lane, next: State, count = 1): void {
    if (lane !== this.#last) {
      this.#tally = this.#of(lane);
      this.#last = lane;
    }
    const tally = this.#tally as Tally;
    tally.all += count;
    tally.next.set(next, (tally.next.get(next) ?? 0) + count);
  }

  #of({ queue, task }: Lane): Tally {
    let tally = this.#tallies.find((one) => one.queue === queue && one.task === task);
    if (tally === undefined) {
      tally = { queue, task, all: 0, next: new Map() };
      this.#tallies.push(tally);
    }
    return tally;
  }

  parameters(): readonly string[] {
    const tallies = this.#tallies;
    return [
      textArray(tallies.map(({ queue }) => queue)),
      textArray(tallies.map(({ task }) => task)),
      plainArray(tallies.map(({ all }) => -all)),
      ...COUNTED.map((state) => plainArray(tallies.map(({ next }) => next.get(state) ?? 0))),
    ];
  }
}
