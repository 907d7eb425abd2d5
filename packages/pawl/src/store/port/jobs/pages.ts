/** A part of what one job has of something, its history or its lines: from the `after`th on, oldest first. */
export interface PartRequest {
  readonly limit: number;
  /** how many came before it */
  readonly after: number;
  /** it ends with the one that fills these; nothing is too large to be the only one */
  readonly bytes: number;
}

/** As many as there is room for: those before which there are fewer bytes than that. */
export function withinBytes<T>(items: readonly T[], most: number, bytesOf: (item: T) => number): readonly T[] {
  let before = 0;
  const end = items.findIndex((item) => {
    const full = before >= most;
    before += bytesOf(item);
    return full;
  });
  return end === -1 ? items : items.slice(0, end);
}
