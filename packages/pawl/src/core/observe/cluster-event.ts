import type { Failure } from "../jobs/failure.js";
import type { Lane } from "../jobs/lane.js";
import type { EventName, Events } from "./event.js";

/** An event as other processes read it. */
export interface RecordedEvent {
  /** `gap`: some of what happened in a process could not be recorded */
  readonly name: EventName | "gap";
  readonly data: object;
  /** what it is about; absent: the service as a whole, which only those hear of who may hear of all tenants */
  readonly lanes?: readonly Pick<Lane, "tenant" | "task" | "queue">[];
}

type RecordedData = Omit<RecordedEvent, "name">;
type EventRecorder<E extends EventName> = (event: Events[E], discreet: boolean) => RecordedData | readonly RecordedData[];

/** What is recorded of each event. Stacks and causes stay in the history of the job; faults of the store with the operator. */
const RECORDERS: { readonly [E in EventName]?: EventRecorder<E> } = {
  // One for each lane: what is one write to the store may be of many tenants.
  "jobs.enqueued": ({ lanes }) => lanes.map(({ lane, count }) => ({ data: { count, lanes: [{ lane, count }] }, lanes: [lane] })),
  "attempt.started": (event) => ({ data: event, lanes: [event.lane] }),
  "attempt.settled": ({ failure, ...event }, discreet) => ({
    data: { ...event, ...(failure === undefined ? {} : { failure: briefly(failure, discreet) }) },
    lanes: [event.lane],
  }),
  "retry.failed": ({ reason, ...event }, discreet) => ({ data: { ...event, ...(discreet ? {} : { reason }) }, lanes: [event.lane] }),
  "job.changed": (event) => ({ data: event, lanes: [event.lane] }),
  "claims.paused": (event) => ({ data: event }),
  "claims.resumed": (event) => ({ data: event }),
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
  "store.restored": (event) => ({ data: event }),
};

/** Events that are recorded for others; the rest are about this process alone. */
export const RECORDED_EVENTS = Object.keys(RECORDERS) as readonly EventName[];

/** `discreet`: payloads are encrypted in the store, so what a failure says, which may repeat them, is not told beside it. */
export function recordedEventsOf<E extends EventName>(name: E, event: Events[E], discreet = false): readonly RecordedEvent[] {
  const recorded = (RECORDERS[name] as EventRecorder<E>)(event, discreet);
  return (Array.isArray(recorded) ? (recorded as readonly RecordedData[]) : [recorded as RecordedData]).map((one) => ({ name, ...one }));
}

function briefly({ kind, name, message }: Failure, discreet: boolean): object {
  return { kind, name, ...(discreet ? {} : { message }) };
}
