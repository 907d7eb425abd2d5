import { type EventBatch, type EventPosition, permit, type ToldEvent } from "pawl";
import type { Principal } from "../access.js";

/** One event as it is told to streams: its text is made once, for all who hear it. */
export interface Entry extends Pick<ToldEvent, "name" | "lanes"> {
  readonly batch: number;
  /** its place in the batch */
  readonly place: number;
  readonly text: string;
}

export interface EventFilter {
  readonly names: ReadonlySet<string> | undefined;
  readonly queue: string | undefined;
  readonly task: string | undefined;
}

/** Where a stream was, as the id of its last event says: the last one of a batch stands for all of it. */
export interface LastSeen extends EventPosition {
  readonly place?: number;
}

export const GAP = "event: gap\ndata: {}\n\n";

export function entriesOf({ position: { epoch, batch }, events }: EventBatch): readonly Entry[] {
  return events.map(({ name, lanes, data }, place) => {
    const id = place === events.length - 1 ? `${epoch}-${batch}` : `${epoch}-${batch}.${place}`;
    const text = name === "gap" ? `id: ${id}\n${GAP}` : `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    return { name, batch, place, text, ...(lanes === undefined ? {} : { lanes }) };
  });
}

export function lastSeenOf(id: string): LastSeen | undefined {
  const [, epoch, batch, place] = /^([0-9a-f]{1,32})-(\d{1,15})(?:\.(\d{1,5}))?$/.exec(id) ?? [];
  if (epoch === undefined) return undefined;
  return { epoch, batch: Number(batch), ...(place === undefined ? {} : { place: Number(place) }) };
}

/** Whether it is told to this caller. An event of several lanes is told only to who may hear of all of them. */
export function isFor({ name, lanes }: Pick<Entry, "name" | "lanes">, principal: Principal, { names, queue, task }: EventFilter): boolean {
  // What was lost may have been theirs.
  if (name === "gap") return true;
  if (names !== undefined && !names.has(name)) return false;
  if (lanes === undefined)
    return principal.tenant === undefined && queue === undefined && task === undefined && permit(principal, "events.read").allowed;
  return lanes.every(
    (lane) => (queue ?? lane.queue) === lane.queue && (task ?? lane.task) === lane.task && permit(principal, "events.read", lane).allowed,
  );
}
