/** what the service takes at once */
const MAX_VALUES = 1_000;
/** bytes, with room for what is around them */
const MAX_BYTES = 4 * 1_048_576;

/** Encoded values in chunks that the service takes. One that is too large goes alone, and is refused alone. */
export function* chunksOf(values: readonly string[]): Generator<readonly string[]> {
  let chunk: string[] = [];
  let bytes = 0;
  for (const value of values) {
    const size = Buffer.byteLength(value);
    if (chunk.length >= MAX_VALUES || (chunk.length > 0 && bytes + size > MAX_BYTES)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(value);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}
