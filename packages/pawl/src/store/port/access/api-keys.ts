import type { ApiKeyFacts } from "../../../core/access/api-key.js";
import type { Scope } from "../index.js";

/** API keys. Of their secrets only digests are stored, and none ever leaves the store. */
export interface ApiKeyStore {
  /** (nothing) → a key with one secret. The same again changes nothing; `taken`: another key has the id. */
  create(key: NewApiKey): Promise<"created" | "taken">;
  /** The key, and whether the digest is that of a secret of it which is still good. */
  check(id: string, digest: string): Promise<CheckedApiKey>;
  /** Another one than before: a key was rotated or revoked, and what `check` answered may no longer be so. */
  version(): Promise<string>;
  get(scope: Scope, id: string): Promise<ApiKeyFacts | undefined>;
  /** newest first; `after` is the id the last page ended with */
  list(scope: Scope, page: { readonly limit: number; readonly after?: string }): Promise<readonly ApiKeyFacts[]>;
  /**
   * Gives the key a new secret. The one before is good for `overlap` ms more, and any older one no longer. Again with
   * the same digest changes nothing.
   */
  rotate(scope: Scope, id: string, how: NewSecret & { readonly keepOldFor: number }): Promise<ApiKeyChange>;
  /** for good; again changes nothing */
  revoke(scope: Scope, id: string): Promise<ApiKeyChange>;
  /** Which peppers the newest secrets of the keys were made with that are neither revoked nor expired, and how many each. */
  peppers(): Promise<readonly { readonly pepper: string; readonly count: number }[]>;
  /** They were used about now. */
  touch(ids: readonly string[]): Promise<void>;
}

export interface NewSecret {
  readonly digest: string;
  /** tells which pepper it was made with; left out: nobody can tell */
  readonly pepper?: string;
}

export interface NewApiKey extends NewSecret {
  readonly id: string;
  readonly name: string;
  readonly tenant: string | undefined;
  readonly grants: ApiKeyFacts["grants"];
  /** ms from now */
  readonly expiresIn?: number;
}

export interface CheckedApiKey {
  readonly key?: ApiKeyFacts;
  /** absent: the key has no such secret, or no longer */
  readonly secret?: { readonly until?: number };
  readonly version: string;
  /** the store's clock */
  readonly now: number;
}

export type ApiKeyChange =
  | { readonly kind: "changed"; readonly key: ApiKeyFacts }
  | { readonly kind: "unknown" }
  /** it is revoked, so it can no longer be rotated */
  | { readonly kind: "revoked" };
