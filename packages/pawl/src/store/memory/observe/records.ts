import { JOB_STATES } from "../../../core/jobs/job.js";
import { compareText } from "../../../core/jobs/lane.js";
import { COUNTED_STATES, type CountedState, NO_JOBS } from "../../../core/observe/series.js";
import type { RecordStore, TenantCountRow } from "../../port/settle/records.js";
import { heldBy } from "../claim/leases.js";
import type { MemoryJob, Tables } from "../state.js";

export function memoryRecords(tables: Tables): RecordStore {
  /** The job, if that worker holds it under that lease now. */
  const heldJob = (worker: Parameters<typeof heldBy>[1], { lease, job }: { lease: Parameters<typeof heldBy>[2]; job: MemoryJob["id"] }) =>
    heldBy(tables, worker, lease)?.open.has(job) ? tables.jobs.get(job) : undefined;

  const valid = (row: MemoryJob | undefined, name: string) => {
    const effect = row?.effects.get(name);
    return effect !== undefined && effect.until > tables.now ? effect.value : undefined;
  };

  return {
    counts: () =>
      tables.step(() =>
        [...tables.counts.values()]
          .filter(({ counts }) => JOB_STATES.some((state) => counts[state] > 0))
          .sort((a, b) => compareText(a.queue, b.queue) || compareText(a.task, b.task))
          .map(({ queue, task, counts }) => ({ queue, task, counts: { ...counts } })),
      ),

    tenantCounts: (tenant) =>
      tables.step(() => {
        const found = new Map<string, TenantCountRow & { readonly counts: Record<CountedState, number> }>();
        for (const { lane, status } of tables.jobs.values()) {
          const { queue, task } = lane;
          const state = COUNTED_STATES.find((one) => one === status.state);
          if (lane.tenant !== tenant || state === undefined) continue;
          const key = `${queue}\u0001${task}`;
          const row = found.get(key) ?? { queue, task, counts: { ...NO_JOBS } };
          found.set(key, row);
          row.counts[state]++;
        }
        return [...found.values()].sort((a, b) => compareText(a.queue, b.queue) || compareText(a.task, b.task));
      }),

    log: (worker, entries) =>
      tables.step(() => {
        for (const entry of entries) {
          const row = heldJob(worker, entry);
          if (row === undefined) continue;
          const { at, level, message, data } = entry;
          if (level === "progress") row.progress = data ?? JSON.stringify(message);
          else row.logs.push({ at, level, message, ...(data === undefined ? {} : { data }) });
        }
      }),

    recall: (job, name) => tables.step(() => valid(tables.jobs.get(job), name)),

    record: (worker, entry) =>
      tables.step(() => {
        const row = heldJob(worker, entry);
        if (row === undefined) return "stale";
        const recorded = valid(row, entry.name);
        if (recorded !== undefined) return { value: recorded };
        row.effects.set(entry.name, { value: entry.value, until: tables.now + entry.ttl });
        return { value: entry.value };
      }),
  };
}
