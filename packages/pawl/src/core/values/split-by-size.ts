/** The items in their order, in portions whose sizes come to at most that much. One that is larger goes alone. */
export function* splitBySize<T>(items: readonly T[], sizeOf: (item: T) => number, most: number): Generator<readonly T[]> {
  let part: T[] = [];
  let size = 0;
  for (const item of items) {
    const own = sizeOf(item);
    if (part.length > 0 && size + own > most) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(item);
    size += own;
  }
  if (part.length > 0) yield part;
}
