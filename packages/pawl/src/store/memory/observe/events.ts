import { newEpoch } from "../../../runtime/process/identity.js";
import type { EventStore, RecordedBatch, WatchPeriod } from "../../port/observe/events.js";
import type { Tables } from "../state.js";

/** Who watches, and what was recorded for them. */
export interface EventLog {
  epoch: string;
  until: number;
  forgotten: number;
  last: number;
  batches: readonly (RecordedBatch & { readonly at: number })[];
}

export function eventLog(): EventLog {
  return { epoch: "", until: Number.NEGATIVE_INFINITY, forgotten: 0, last: 0, batches: [] };
}

export function watchedIn({ now, events }: Tables): WatchPeriod | undefined {
  return events.until > now ? { epoch: events.epoch, for: events.until - now } : undefined;
}

export function memoryEvents(tables: Tables): EventStore {
  const { events } = tables;
  const forget = (kept: EventLog["batches"]): number => {
    const gone = events.batches.length - kept.length;
    events.forgotten = events.batches[gone - 1]?.number ?? events.forgotten;
    events.batches = kept;
    return gone;
  };
  return {
    watch: (duration) =>
      tables.step(() => {
        if (events.until <= tables.now) {
          events.epoch = newEpoch();
          forget([]);
          events.forgotten = events.last;
        }
        events.until = Math.max(events.until, tables.now + duration);
        tables.wakeups.watch = true;
        return { epoch: events.epoch, for: events.until - tables.now, last: events.last };
      }),
    watched: () => tables.step(() => watchedIn(tables)),
    append: (entries) =>
      tables.step(() => {
        events.last++;
        events.batches = [...events.batches, { number: events.last, at: tables.now, entries: [...entries] }];
        tables.wakeups.events = true;
      }),
    read: (after, limit) =>
      tables.step(() => ({
        forgotten: events.forgotten,
        batches: events.batches
          .filter(({ number }) => number > after)
          .slice(0, limit)
          .map(({ number, entries }) => ({ number, entries })),
      })),
    trim: (age, most) =>
      tables.step(() => {
        const old = tables.now - age;
        let size = 0;
        const kept = [...events.batches].reverse().filter(({ at, entries }) => {
          size += entries.length;
          return at >= old && size <= most;
        });
        return forget(kept.reverse());
      }),
  };
}
