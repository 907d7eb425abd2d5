/** A transaction of the caller's own, as the store's driver needs it; anything with a query function. */
export interface Transaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}
