import type { StoreTransaction } from "../transactions.js";

/** A tenant's key that encrypts what its jobs hold, itself wrapped by a master key, which is not in the store. */
export interface DataKeyRecord {
  readonly id: string;
  readonly tenant: string;
  /** from 1 on; the highest one encrypts, all of them open */
  readonly version: number;
  /** the id of the master key that wraps it */
  readonly master: string;
  readonly wrapped: string;
  readonly createdAt: number;
}

export type NewDataKey = Omit<DataKeyRecord, "createdAt">;

export interface MasterUse {
  readonly master: string;
  readonly count: number;
}

export interface DataKeyStore {
  /** (nothing) → a key. Answers the one of that tenant and version: this one, unless another process was first. */
  add(key: NewDataKey): Promise<DataKeyRecord>;
  /** The one of the highest version of each of these tenants that has any. */
  newest(tenants: readonly string[], tx?: StoreTransaction): Promise<readonly DataKeyRecord[]>;
  /** Those of these ids that are there. */
  get(ids: readonly string[]): Promise<readonly DataKeyRecord[]>;
  /** The master keys that wrap any, and how many. */
  masterKeys(): Promise<readonly MasterUse[]>;
  /** Keys that another master key wraps, by id; `after` is the one that the last page ended with. */
  notBy(master: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly DataKeyRecord[]>;
  /** Puts another wrapping in place of the one by `from`; false if it is not there any more. */
  rewrap(id: string, from: string, to: { readonly master: string; readonly wrapped: string }): Promise<boolean>;
}
