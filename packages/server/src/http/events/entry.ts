import { type EventName, type Events, type Failure, type Lane, permit } from "pawl";
import type { Principal } from "../access.js";

/** One event as it is told: its text is made once, for all who hear it. */
export interface Entry {
  readonly seq: number;
  readonly name: EventName;
  /** what it is about; absent: the service as a whole, which only a credential of all tenants hears of */
  readonly lanes: readonly Pick<Lane, "tenant" | "task" | "queue">[] | undefined;
  readonly text: string;
}

export interface EventFilter {
  readonly names: ReadonlySet<string> | undefined;
  readonly queue: string | undefined;
  readonly task: string | undefined;
}

type Told = { readonly data: object; readonly lanes?: Entry["lanes"] };

/** What is told of each event. Stacks and causes stay in the history of the job; faults of the store with the operator. */
const TELL: { readonly [E in EventName]?: (event: Events[E]) => Told } = {
  "jobs.enqueued": ({ lanes }) => ({ data: { lanes }, lanes }),
  "attempt.started": (event) => ({ data: event, lanes: [event.lane] }),
  "attempt.settled": ({ failure, ...event }) => ({
    data: { ...event, ...(failure === undefined ? {} : { failure: briefly(failure) }) },
    lanes: [event.lane],
  }),
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
  "breaker.changed": (event) => ({ data: event }),
  "store.lost": () => ({ data: {} }),
  "store.back": (event) => ({ data: event }),
};

export const TOLD = Object.keys(TELL) as readonly EventName[];

export function entryOf<E extends EventName>(name: E, event: Events[E], seq: number, boot: string): Entry {
  const { data, lanes } = (TELL[name] as (event: Events[E]) => Told)(event);
  return { seq, name, lanes, text: `id: ${boot}-${seq}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n` };
}

/** Whether it is told to this caller. An event of several lanes is told only to who may hear of all of them. */
export function isFor({ name, lanes }: Entry, principal: Principal, { names, queue, task }: EventFilter): boolean {
  if (names !== undefined && !names.has(name)) return false;
  if (lanes === undefined)
    return principal.tenant === undefined && queue === undefined && task === undefined && permit(principal, "events.read").allowed;
  return lanes.every(
    (lane) => (queue ?? lane.queue) === lane.queue && (task ?? lane.task) === lane.task && permit(principal, "events.read", lane).allowed,
  );
}

function briefly({ kind, name, message }: Failure): object {
  return { kind, name, message };
}
