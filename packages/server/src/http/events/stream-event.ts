import { type EventBatch, type EventPosition, permit, type RecordedEvent } from "pawl/service";
import type { Principal } from "../access/principal.js";

/** One event as it is told to streams: its text is made once, for all who hear it. */
export interface StreamEvent extends Pick<RecordedEvent, "name" | "lanes"> {
  readonly batch: number;
  /** its place in the batch */
  readonly index: number;
  readonly text: string;
}

export interface EventFilter {
  readonly names: ReadonlySet<string> | undefined;
  readonly queue: string | undefined;
  readonly task: string | undefined;
}

/** Where a stream was, as the id of its last event says: the last one of a batch stands for all of it. */
export interface LastSeenEvent extends EventPosition {
  readonly index?: number;
}

export const GAP_EVENT = "event: gap\ndata: {}\n\n";

export function streamEventsOf({ position: { epoch, batch }, events }: EventBatch): readonly StreamEvent[] {
  return events.map(({ name, lanes, data }, index) => {
    const id = index === events.length - 1 ? `${epoch}-${batch}` : `${epoch}-${batch}.${index}`;
    const text = name === "gap" ? `id: ${id}\n${GAP_EVENT}` : `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    return { name, batch, index, text, ...(lanes === undefined ? {} : { lanes }) };
  });
}

export function lastSeenOf(id: string): LastSeenEvent | undefined {
  const [, epoch, batch, index] = /^([0-9a-f]{1,32})-(\d{1,15})(?:\.(\d{1,5}))?$/.exec(id) ?? [];
  if (epoch === undefined) return undefined;
  return { epoch, batch: Number(batch), ...(index === undefined ? {} : { index: Number(index) }) };
}

/** Whether it is told to this caller. An event of several lanes is told only to who may hear of all of them. */
export function isVisibleTo(
  { name, lanes }: Pick<StreamEvent, "name" | "lanes">,
  principal: Principal,
  { names, queue, task }: EventFilter,
): boolean {
  // What was lost may have been theirs.
  if (name === "gap") return true;
  if (names !== undefined && !names.has(name)) return false;
  if (lanes === undefined)
    return principal.tenant === undefined && queue === undefined && task === undefined && permit(principal, "events.read").allowed;
  return lanes.every(
    (lane) => (queue ?? lane.queue) === lane.queue && (task ?? lane.task) === lane.task && permit(principal, "events.read", lane).allowed,
  );
}
