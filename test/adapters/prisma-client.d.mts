/** The part of a generated client that needs no model, as its types have it. */
interface Queries {
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>;
  $executeRawUnsafe(query: string, ...values: unknown[]): Promise<number>;
}

export declare class PrismaClient implements Queries {
  constructor(options: { adapter: unknown });
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>;
  $executeRawUnsafe(query: string, ...values: unknown[]): Promise<number>;
  $transaction<R>(work: (tx: Queries) => Promise<R>): Promise<R>;
  $disconnect(): Promise<void>;
}
