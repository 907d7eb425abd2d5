import { JOB_STATES, type JobState } from "../../core/jobs/job.js";
import { COUNTED_STATES, type CountsByState, NO_JOBS } from "../../core/observe/series.js";
import type { Scope, Store } from "../../store/port/index.js";
import type { CountRow } from "../../store/port/settle/records.js";
import { checkKeys, checkObject } from "../check.js";

export type StateCounts = Readonly<Record<JobState, number>>;

/** Of one tenant: jobs that have succeeded or were cancelled are not counted by tenant. */
export type JobCounts = CountsByState & Partial<StateCounts>;

export interface CountsOptions {
  readonly queue?: string;
  readonly task?: string;
}

const KEYS: ReadonlySet<string> = new Set(["queue", "task"] satisfies readonly (keyof CountsOptions)[]);

export function checkCountsOptions(of: CountsOptions): CountsOptions {
  checkKeys(checkObject("of", of), KEYS);
  return of;
}

export async function allCounts(store: Store, of: CountsOptions = {}): Promise<StateCounts> {
  checkCountsOptions(of);
  return sumCounts((await store.records.counts()).filter(matchesQueueAndTask(of)));
}

export async function countsOf(store: Store, scope: Scope, of: CountsOptions = {}): Promise<JobCounts> {
  if (scope === "everyone") return allCounts(store, of);
  checkCountsOptions(of);
  const total = { ...NO_JOBS } as Record<(typeof COUNTED_STATES)[number], number>;
  for (const { counts } of (await store.records.tenantCounts(scope.tenant)).filter(matchesQueueAndTask(of)))
    for (const state of COUNTED_STATES) total[state] += counts[state];
  return total;
}

export function sumCounts(rows: readonly CountRow[]): StateCounts {
  const total = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>;
  for (const { counts } of rows) for (const state of JOB_STATES) total[state] += counts[state];
  return total;
}

/** Whether finished ones are counted too. */
export function countsAllStates(counts: JobCounts): counts is StateCounts {
  return JOB_STATES.every((state) => counts[state] !== undefined);
}

function matchesQueueAndTask(of: CountsOptions): (row: Required<CountsOptions>) => boolean {
  return ({ queue, task }) => (of.queue ?? queue) === queue && (of.task ?? task) === task;
}
