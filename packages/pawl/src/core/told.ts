import type { EventName, Events } from "./event.js";
import type { Failure } from "./failure.js";
import type { Lane } from "./lane.js";

/** An event as other processes hear of it. */
export interface ToldEvent {
  /** `gap`: some of what happened in a process could not be recorded */
  readonly name: EventName | "gap";
  readonly data: object;
  /** what it is about; absent: the service as a whole, which only those hear of who may hear of all tenants */
  readonly lanes?: readonly Pick<Lane, "tenant" | "task" | "queue">[];
}

type Told = Omit<ToldEvent, "name">;
type Tell<E extends EventName> = (event: Events[E], discreet: boolean) => Told | readonly Told[];

/** What is told of each event. Stacks and causes stay in the history of the job; faults of the store with the operator. */
const TELL: { readonly [E in EventName]?: Tell<E> } = {
  // One for each lane: what is one write to the store may be of many tenants.
  "jobs.enqueued": ({ lanes, counts }) =>
    lanes.map((lane, place) => {
      const count = counts[place] ?? 0;
      return { data: { count, lanes: [lane], counts: [count] }, lanes: [lane] };
    }),
  "attempt.started": (event) => ({ data: event, lanes: [event.lane] }),
  "attempt.settled": ({ failure, ...event }, discreet) => ({
    data: { ...event, ...(failure === undefined ? {} : { failure: briefly(failure, discreet) }) },
    lanes: [event.lane],
  }),
  "retry.failed": ({ why, ...event }, discreet) => ({ data: { ...event, ...(discreet ? {} : { why }) }, lanes: [event.lane] }),
  "job.changed": (event) => ({ data: event, lanes: [event.lane] }),
  "lanes.paused": (event) => ({ data: event }),
  "lanes.resumed": (event) => ({ data: event }),
  "ingest.refused": (event) => ({ data: event }),
  "jobs.claimed": (event) => ({ data: event }),
  "jobs.promoted": (event) => ({ data: event }),
  "leases.reaped": (event) => ({ data: event }),
  "lease.lost": (event) => ({ data: event }),
  "schedules.ticked": (event) => ({ data: event }),
  "worker.started": (event) => ({ data: event }),
  "worker.stopping": (event) => ({ data: event }),
  "worker.stopped": (event) => ({ data: event }),
  "worker.stalled": (event) => ({ data: event }),
  "worker.stuck": (event) => ({ data: event }),
  "worker.unstuck": (event) => ({ data: event }),
  "breaker.changed": (event) => ({ data: event }),
  "store.lost": () => ({ data: {} }),
  "store.back": (event) => ({ data: event }),
};

/** Events that are told to others; the rest are about this process alone. */
export const TOLD_EVENTS = Object.keys(TELL) as readonly EventName[];

/** `discreet`: payloads are encrypted in the store, so what a failure says, which may repeat them, is not told beside it. */
export function toldOf<E extends EventName>(name: E, event: Events[E], discreet = false): readonly ToldEvent[] {
  const told = (TELL[name] as Tell<E>)(event, discreet);
  return (Array.isArray(told) ? (told as readonly Told[]) : [told as Told]).map((one) => ({ name, ...one }));
}

function briefly({ kind, name, message }: Failure, discreet: boolean): object {
  return { kind, name, ...(discreet ? {} : { message }) };
}
