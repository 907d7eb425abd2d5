import { STATES } from "../../core/job.js";
import { compareText } from "../../core/lane.js";
import { NOBODY, STANDING, type Standing } from "../../core/series.js";
import type { RecordStore, StandingRow } from "../port-records.js";
import { heldBy } from "./leases.js";
import type { JobRow, Tables } from "./state.js";

export function memoryRecords(tables: Tables): RecordStore {
  /** The job, if that worker holds it under that lease now. */
  const held = (worker: Parameters<typeof heldBy>[1], { lease, job }: { lease: Parameters<typeof heldBy>[2]; job: JobRow["id"] }) =>
    heldBy(tables, worker, lease)?.open.has(job) ? tables.jobs.get(job) : undefined;

  const valid = (row: JobRow | undefined, name: string) => {
    const effect = row?.effects.get(name);
    return effect !== undefined && effect.until > tables.now ? effect.value : undefined;
  };

  return {
    counts: () =>
      tables.step(() =>
        [...tables.counts.values()]
          .filter(({ counts }) => STATES.some((state) => counts[state] > 0))
          .sort((a, b) => compareText(a.queue, b.queue) || compareText(a.task, b.task))
          .map(({ queue, task, counts }) => ({ queue, task, counts: { ...counts } })),
      ),

    standing: (tenant) =>
      tables.step(() => {
        const found = new Map<string, StandingRow & { readonly counts: Record<Standing, number> }>();
        for (const { lane, place } of tables.jobs.values()) {
          const { queue, task } = lane;
          const state = STANDING.find((one) => one === place.state);
          if (lane.tenant !== tenant || state === undefined) continue;
          const key = `${queue}\u0001${task}`;
          const row = found.get(key) ?? { queue, task, counts: { ...NOBODY } };
          found.set(key, row);
          row.counts[state]++;
        }
        return [...found.values()].sort((a, b) => compareText(a.queue, b.queue) || compareText(a.task, b.task));
      }),

    log: (worker, entries) =>
      tables.step(() => {
        for (const entry of entries) {
          const row = held(worker, entry);
          if (row === undefined) continue;
          const { at, level, message, data } = entry;
          if (level === "progress") row.progress = data ?? JSON.stringify(message);
          else row.logs.push({ at, level, message, ...(data === undefined ? {} : { data }) });
        }
      }),

    recall: (job, name) => tables.step(() => valid(tables.jobs.get(job), name)),

    record: (worker, entry) =>
      tables.step(() => {
        const row = held(worker, entry);
        if (row === undefined) return "stale";
        const known = valid(row, entry.name);
        if (known !== undefined) return { value: known };
        row.effects.set(entry.name, { value: entry.value, until: tables.now + entry.ttl });
        return { value: entry.value };
      }),
  };
}
