/**
 * What happens in every process on the store, for whoever watches. Processes record it in batches, and only while somebody
 * does. Batches are numbered in the order in which they can be read: whoever has read one has read all before it.
 */
export interface EventStore {
  /** Has every process record what happens, for so many ms from now. */
  watch(duration: number): Promise<StartedWatch>;
  watched(): Promise<WatchPeriod | undefined>;
  /** Records a batch of one process: events as JSON. */
  append(entries: readonly string[]): Promise<void>;
  /** The batches after that number, oldest first. */
  read(after: number, limit: number): Promise<RecordedBatches>;
  /** Forgets what is older than that many ms, the oldest beyond so many events, and what nobody can ask for any more. */
  trim(age: number, most: number): Promise<number>;
}

export interface WatchPeriod {
  /** another one whenever watching began anew: what happened between was not recorded */
  readonly epoch: string;
  /** ms from now */
  readonly for: number;
}

export interface StartedWatch extends WatchPeriod {
  /** the newest batch that can be read: one that is being written now comes after it */
  readonly last: number;
}

export interface RecordedBatches {
  /** the newest batch that is no longer kept: whoever is not past it has missed something */
  readonly forgotten: number;
  readonly batches: readonly RecordedBatch[];
}

export interface RecordedBatch {
  readonly number: number;
  /** JSON each */
  readonly entries: readonly string[];
}

/** Events that are kept at most. */
export const MAX_EVENTS = 100_000;
