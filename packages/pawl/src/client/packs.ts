/** what the service takes at once */
const MOST = 1_000;
/** bytes, with room for what is around them */
const MOST_BYTES = 4 * 1_048_576;

/** Encoded values in packs that the service takes. One that is too large goes alone, and is refused alone. */
export function* packs(values: readonly string[]): Generator<readonly string[]> {
  let pack: string[] = [];
  let bytes = 0;
  for (const value of values) {
    const size = Buffer.byteLength(value);
    if (pack.length >= MOST || (pack.length > 0 && bytes + size > MOST_BYTES)) {
      yield pack;
      pack = [];
      bytes = 0;
    }
    pack.push(value);
    bytes += size;
  }
  if (pack.length > 0) yield pack;
}
