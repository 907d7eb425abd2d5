import { STATES, type State } from "../core/job.js";
import { NOBODY, STANDING, type StandingCounts } from "../core/series.js";
import type { Scope, Store } from "../store/port.js";
import type { CountRow } from "../store/port-records.js";
import { checkKeys, checkObject } from "./check.js";

export type StateCounts = Readonly<Record<State, number>>;

/** Of one tenant: jobs that have succeeded or were cancelled are not counted by tenant. */
export type Counts = StandingCounts & Partial<StateCounts>;

export interface CountsOf {
  readonly queue?: string;
  readonly task?: string;
}

const KEYS: ReadonlySet<string> = new Set(["queue", "task"] satisfies readonly (keyof CountsOf)[]);

export function checkCounts(of: CountsOf): CountsOf {
  checkKeys(checkObject("of", of), KEYS);
  return of;
}

export async function allCounts(store: Store, of: CountsOf = {}): Promise<StateCounts> {
  checkCounts(of);
  return sum((await store.records.counts()).filter(among(of)));
}

export async function countsOf(store: Store, scope: Scope, of: CountsOf = {}): Promise<Counts> {
  if (scope === "everyone") return allCounts(store, of);
  checkCounts(of);
  const total = { ...NOBODY } as Record<(typeof STANDING)[number], number>;
  for (const { counts } of (await store.records.standing(scope.tenant)).filter(among(of)))
    for (const state of STANDING) total[state] += counts[state];
  return total;
}

export function sum(rows: readonly CountRow[]): StateCounts {
  const total = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  for (const { counts } of rows) for (const state of STATES) total[state] += counts[state];
  return total;
}

/** Whether finished ones are counted too. */
export function isWhole(counts: Counts): counts is StateCounts {
  return STATES.every((state) => counts[state] !== undefined);
}

function among(of: CountsOf): (row: Required<CountsOf>) => boolean {
  return ({ queue, task }) => (of.queue ?? queue) === queue && (of.task ?? task) === task;
}
