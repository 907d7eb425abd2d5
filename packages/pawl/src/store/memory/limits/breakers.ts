import { compareText } from "../../../core/jobs/lane.js";
import { type Breaker, type BreakerRule, force, forgottenAfter, newBreaker, observe, probe } from "../../../core/limits/breaker.js";
import { breakerKey, breakerRecord, UNREPORTED_RULE } from "../../port/limits/breaker-record.js";
import type { BreakerRecord, BreakerRef, BreakerStore } from "../../port/limits/breakers.js";
import type { Tables } from "../state.js";

export interface MemoryBreaker extends BreakerRef {
  breaker: Breaker;
  rule: BreakerRule;
  /** when it is forgotten, unless somebody reports on it before */
  until: number;
}

export function memoryBreakers(tables: Tables): BreakerStore {
  const find = (ref: BreakerRef) => tables.breakers.get(breakerKey(ref));
  const rowOf = (ref: BreakerRef): MemoryBreaker => {
    const found = find(ref);
    if (found !== undefined) return found;
    const made: MemoryBreaker = { tenant: ref.tenant, task: ref.task, breaker: newBreaker(tables.now), rule: UNREPORTED_RULE, until: 0 };
    tables.breakers.set(breakerKey(ref), made);
    return made;
  };
  const change = (row: MemoryBreaker, breaker: Breaker): BreakerRecord => {
    // Said when the step is over, so once for all that it changed.
    if (breaker.state !== row.breaker.state || breaker.forced !== row.breaker.forced) tables.wakeups.lanes = true;
    row.breaker = breaker;
    row.until = breaker.forced ? Number.POSITIVE_INFINITY : tables.now + forgottenAfter(breaker, row.rule);
    return breakerRecord(row, breaker, tables.now);
  };
  const sorted = () => [...tables.breakers.values()].sort((a, b) => compareText(a.tenant, b.tenant) || compareText(a.task, b.task));
  const step = <T>(work: () => T): Promise<T> =>
    tables.step(() => {
      for (const [key, { until }] of tables.breakers) if (until <= tables.now) tables.breakers.delete(key);
      return work();
    });

  return {
    report: (reports) =>
      step(() => {
        for (const report of reports) {
          const row = rowOf(report);
          row.rule = report.rule;
          change(row, observe(row.breaker, row.rule, report, tables.now));
        }
        return reports.map((report) => breakerRecord(report, rowOf(report).breaker, tables.now));
      }),
    probe: (refs) =>
      step(() =>
        refs.flatMap((ref) => {
          const row = find(ref);
          const leave = row === undefined ? undefined : probe(row.breaker, row.rule, tables.now);
          return row === undefined || leave === undefined ? [] : [change(row, leave)];
        }),
      ),
    get: (refs) =>
      step(() => {
        const requested = new Set(refs.map(breakerKey));
        return sorted()
          .filter((row) => requested.has(breakerKey(row)))
          .map((row) => breakerRecord(row, row.breaker, tables.now));
      }),
    list: ({ tenant, task, state }, { limit, after }) =>
      step(() =>
        sorted()
          .filter(
            (row) => (tenant ?? row.tenant) === row.tenant && (task ?? row.task) === row.task && (state ?? row.breaker.state) === row.breaker.state,
          )
          .filter((row) => after === undefined || (compareText(row.tenant, after.tenant) || compareText(row.task, after.task)) > 0)
          .slice(0, limit)
          .map((row) => breakerRecord(row, row.breaker, tables.now)),
      ),
    listNotClosed: () =>
      step(() =>
        sorted()
          .filter(({ breaker }) => breaker.state !== "closed")
          .map((row) => breakerRecord(row, row.breaker, tables.now)),
      ),
    force: (ref, how) =>
      step(() => {
        const row = rowOf(ref);
        return change(row, force(row.breaker, how, tables.now));
      }),
  };
}
