import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import type { Store } from "../store/port.js";
import { type MasterKeySource, Masters } from "../store/sealed/masters.js";
import { Vault } from "../store/sealed/vault.js";
import { checkKeys, checkObject } from "./check.js";
import type { Surroundings } from "./parts.js";

export interface EncryptionOptions {
  /**
   * Master keys of 32 bytes, as base64 or hex, the newest first: that one wraps, all of them unwrap. Or a function that answers
   * them as they are now, asked whenever a data key is to be wrapped or unwrapped.
   */
  readonly keys: MasterKeySource;
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

const OPTION_KEYS: ReadonlySet<string> = new Set(["keys"] satisfies (keyof EncryptionOptions)[]);

export async function vaultOf(store: Store, { clock, randomBytes }: Surroundings, given: EncryptionOptions): Promise<Vault> {
  checkKeys(checkObject("encryption", given), OPTION_KEYS, "encryption.");
  return new Vault({ keys: store.dataKeys, masters: await Masters.of(given.keys), clock, random: randomBytes });
}

export function encryptionOf(store: Store, vault: Vault | undefined): Encryption {
  const need = (): Vault => {
    if (vault === undefined) throw pawlError("encryption_missing");
    return vault;
  };
  return {
    // Who has none is told what there is, too: that it lacks them is what it should know.
    status: async () => (vault === undefined ? (await store.dataKeys.masters()).map((use) => ({ ...use, here: false })) : vault.status()),
    rewrap: async () => need().rewrap(),
    rotate: async (tenant) => ({ version: (await need().rotate(checkName("tenant", tenant))).version }),
  };
}

/** A worker that could open nothing would put off every job it claims: it says so before it claims any. */
export async function checkOpens(store: Store, vault: Vault | undefined): Promise<void> {
  const missing = (await encryptionOf(store, vault).status()).filter(({ here }) => !here);
  if (missing.length === 0) return;
  throw vault === undefined
    ? pawlError("encryption_missing")
    : pawlError("master_key_missing", { masters: missing.map(({ master }) => master).join(", ") });
}
