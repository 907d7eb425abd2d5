import type { IdSuffix, IdSuffixSource } from "../src/core/jobs/id.js";
import { ADMIT, type DutyReport, type DutyRequest, PROMOTE, REAP, TICK } from "../src/store/port/duties/duties.js";
import type { PruneRules } from "../src/store/port/duties/prune.js";
import type { EngineStore } from "../src/store/port/index.js";

const FOREVER_MS = Number.MAX_SAFE_INTEGER / 1_000;
const KEEP_ALL = { finished: FOREVER_MS, dead: FOREVER_MS, series: FOREVER_MS, seriesRows: 1_000_000, events: FOREVER_MS };
const noIdSuffix: IdSuffixSource = (): IdSuffix => {
  throw new Error("this duty makes no jobs");
};

/** One step of a duty, if the store declares it: a store may have no need of one. */
export async function runDuty(store: EngineStore, name: string, request: Partial<DutyRequest>): Promise<DutyReport> {
  const { duties } = store;
  if (!duties.declared.some((duty) => duty.name === name)) return { count: 0, more: false };
  return duties.run(name, { limit: 1_000, keep: KEEP_ALL, idSuffixes: noIdSuffix, ...request });
}

/** The duties that tests run by themselves, each by its name and what it is about. */
export function dutiesOf(store: EngineStore) {
  const countOf = async (name: string, limit: number) => (await runDuty(store, name, { limit })).count;
  const withNext = ({ nextIn }: DutyReport) => (nextIn === undefined ? {} : { nextIn });
  return {
    async promote(limit: number): Promise<{ readonly count: number; readonly nextIn?: number }> {
      const report = await runDuty(store, PROMOTE, { limit });
      return { count: report.count, ...withNext(report) };
    },
    async reap(limit: number): Promise<{ readonly leases: number; readonly jobs: number }> {
      const { counts = {} } = await runDuty(store, REAP, { limit });
      return { leases: counts.leases as number, jobs: counts.jobs as number };
    },
    async tick(limit: number, idSuffixes: IdSuffixSource) {
      const report = await runDuty(store, TICK, { limit, idSuffixes });
      const { schedules, jobs, latest } = report.counts as { readonly schedules: number; readonly jobs: number; readonly latest: number };
      return { schedules, jobs, latest, ...withNext(report), ...(report.failures === undefined ? {} : { failures: report.failures }) };
    },
    async admit(limit: number): Promise<{ readonly count: number; readonly more: boolean; readonly nextIn?: number }> {
      return runDuty(store, ADMIT, { limit });
    },
    expire: (limit: number) => countOf("expire", limit),
    unblock: (limit: number) => countOf("unblock", limit),
    carryOut: (limit: number) => countOf("carry out intents", limit),
    fold: (limit: number) => countOf("fold counts", limit),
    async prune({ finished, dead, limit, exportFinished }: PruneRules): Promise<Readonly<Record<string, number>>> {
      const keep = { ...KEEP_ALL, finished, dead };
      const { counts = {} } = await runDuty(store, "prune", { limit, keep, ...(exportFinished === undefined ? {} : { exportFinished }) });
      return counts;
    },
    trimSchedules: async (limit: number, age: number) => (await runDuty(store, "trim", { limit, keep: { ...KEEP_ALL, dead: age } })).count,
    trimSeries: async (age: number, most: number) =>
      (await runDuty(store, "trim series", { keep: { ...KEEP_ALL, series: age, seriesRows: most } })).count,
  };
}
