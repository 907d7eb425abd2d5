/** A purge that was asked for and is not done. */
export interface PurgeRecord {
  /** a uuid */
  readonly id: string;
  readonly tenant: string;
  readonly askedAt: number;
}

/**
 * Purges of tenants that were asked for and are not done. What is left in the stores is what is left to do, so a purge that was
 * interrupted is begun again.
 */
export interface PurgeStore {
  /** (nothing) → a purge under way. Answers its id: this one, unless the tenant is being purged already. */
  begin(id: string, tenant: string): Promise<string>;
  get(id: string): Promise<PurgeRecord | undefined>;
  /** oldest first */
  list(): Promise<readonly PurgeRecord[]>;
  /** A step: API keys, data keys and kept replies of the tenant go, up to so many of each. Answers how many went. */
  rest(tenant: string, limit: number): Promise<number>;
  /** It is done: forgotten, as everything else. */
  end(id: string): Promise<void>;
}
