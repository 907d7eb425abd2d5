/**
 * Rows in an order, with the size of each in `bytes`, up to the one that fills a page. (The sum of those before it is
 * counted by the server: what does not fit is never sent.)
 */
export function withinBytes(rows: string, order: string, most: string): string {
  return `select * from (
    select q.*, coalesce(sum(q.bytes) over (order by ${order} rows between unbounded preceding and 1 preceding), 0)::float8 as before from (${rows}) q
  ) w where before < ${most}::float8 order by ${order}`;
}

/** Bytes of texts and JSON, some of which may be null. */
export function bytesOf(...values: readonly string[]): string {
  return `(${values.map((value) => `coalesce(octet_length(${value}::text), 0)`).join(" + ")})`;
}
