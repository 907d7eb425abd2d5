/** The items in their order, in portions whose sizes come to at most that much. One that is larger goes alone. */
export function* portions<T>(items: readonly T[], sizeOf: (item: T) => number, most: number): Generator<readonly T[]> {
  let portion: T[] = [];
  let size = 0;
  for (const item of items) {
    const own = sizeOf(item);
    if (portion.length > 0 && size + own > most) {
      yield portion;
      portion = [];
      size = 0;
    }
    portion.push(item);
    size += own;
  }
  if (portion.length > 0) yield portion;
}
