import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import { KeyStore } from "../../store/encrypted/key-store.js";
import { type MasterKeySource, MasterKeys } from "../../store/encrypted/master-keys.js";
import type { Store } from "../../store/port/index.js";
import { checkKeys, checkObject } from "../check.js";
import type { Environment } from "../deps.js";

export interface EncryptionOptions {
  /**
   * Master keys of 32 bytes, as base64 or hex, the newest first: that one wraps, all of them unwrap. Or a function that answers
   * them as they are now, asked whenever a data key is to be wrapped or unwrapped.
   */
  readonly masterKeys: MasterKeySource;
}

/** A master key by its name, which tells nothing of it. */
export interface MasterKeyView {
  readonly master: string;
  /** data keys that it wraps */
  readonly count: number;
  /** whether this process has it */
  readonly here: boolean;
}

/** The keys of what jobs hold. See docs/protection.md. */
export interface Encryption {
  /** The master keys that wrap data keys; those of this process first, the newest before the others. */
  status(): Promise<readonly MasterKeyView[]>;
  /** Wraps all data keys by the newest master key, so that the others can be taken away. `left`: whose master key is not here. */
  rewrap(): Promise<{ readonly rewrapped: number; readonly left: number }>;
  /** A new data key for what the tenant's jobs hold from now on; everywhere within half a minute. */
  rotate(tenant: string): Promise<{ readonly version: number }>;
}

const OPTION_KEYS: ReadonlySet<string> = new Set(["masterKeys"] satisfies (keyof EncryptionOptions)[]);

export async function openKeyStore(store: Store, { clock, randomBytes }: Environment, options: EncryptionOptions): Promise<KeyStore> {
  checkKeys(checkObject("encryption", options), OPTION_KEYS, "encryption.");
  return new KeyStore({ keys: store.dataKeys, masterKeys: await MasterKeys.of(options.masterKeys), clock, random: randomBytes });
}

export function createEncryption(store: Store, keyStore: KeyStore | undefined): Encryption {
  const need = (): KeyStore => {
    if (keyStore === undefined) throw pawlError("encryption_missing");
    return keyStore;
  };
  return {
    // Who has none is told what there is, too: that it lacks them is what it should know.
    status: async () => (keyStore === undefined ? (await store.dataKeys.masterKeys()).map((use) => ({ ...use, here: false })) : keyStore.status()),
    rewrap: async () => need().rewrap(),
    rotate: async (tenant) => ({ version: (await need().rotate(checkName("tenant", tenant))).version }),
  };
}

/** A worker that could open nothing would put off every job it claims: it says so before it claims any. */
export async function checkMasterKeysPresent(store: Store, keyStore: KeyStore | undefined): Promise<void> {
  const missing = (await createEncryption(store, keyStore).status()).filter(({ here }) => !here);
  if (missing.length === 0) return;
  throw keyStore === undefined
    ? pawlError("encryption_missing")
    : pawlError("master_key_missing", { masterKeys: missing.map(({ master }) => master).join(", ") });
}
