import type { UndecryptableReason } from "../../core/access/encrypted-value.js";
import type { RandomBytes } from "../../core/jobs/id.js";
import { pawlError } from "../../core/values/error.js";
import { DecryptingKey, DigestKey, EncryptingKey, type MasterKey, newDataKey, unwrap, wrap } from "../../runtime/io/cipher.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { DataKeyRecord, DataKeyStore, NewDataKey } from "../port/access/data-keys.js";
import type { StoreTransaction } from "../port/index.js";
import type { MasterKeys } from "./master-keys.js";

/** ms that a key is believed to be there, and a tenant's newest one to be that: how long a purge or a rotation takes to be heard of everywhere */
const KEY_CACHE_MS = 30_000;
/** keys held in memory of each kind; beyond, the oldest go and are read again */
const MAX_CACHED_KEYS = 10_000;
const KEYS_PER_PAGE = 200;

export interface EncryptionKey {
  readonly id: string;
  readonly key: EncryptingKey;
}

export interface DecryptionKey {
  readonly tenant: string;
  readonly key: DecryptingKey;
}

export interface KeyStoreDeps {
  readonly keys: DataKeyStore;
  readonly masterKeys: MasterKeys;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

type CachedKey<K> = K & { readonly until: number };

/** The data keys of tenants, unwrapped: made when a tenant first needs one, read when they are first met. */
export class KeyStore {
  readonly #encryptionKeys = new Map<string, CachedKey<EncryptionKey>>();
  readonly #decryptionKeys = new Map<string, CachedKey<DecryptionKey>>();
  readonly #digests = new Map<string, CachedKey<{ readonly key: DigestKey }>>();

  constructor(private readonly deps: KeyStoreDeps) {}

  /**
   * What to encrypt with, by tenant. A first key is made apart from the caller's transaction: one that was rolled back would take
   * it away from whoever encrypted with it since, and one that stays open would have everybody wait who needs the key.
   */
  async encryptionKeys(tenants: Iterable<string>, tx?: StoreTransaction): Promise<ReadonlyMap<string, EncryptionKey>> {
    const now = this.deps.clock.monotonic();
    const found = new Map<string, EncryptionKey>();
    const missing: string[] = [];
    for (const tenant of new Set(tenants)) {
      const entry = this.#encryptionKeys.get(tenant);
      if (entry !== undefined && now < entry.until) found.set(tenant, entry);
      else missing.push(tenant);
    }
    if (missing.length === 0) return found;
    const newest = new Map((await this.deps.keys.newest(missing, tx)).map((record) => [record.tenant, record]));
    for (const tenant of missing) {
      const record = newest.get(tenant) ?? (await this.#add(tenant, 1));
      const cached = this.#encryptionKeys.get(tenant);
      const key = cached?.id === record.id ? cached.key : new EncryptingKey(await this.#unwrapped(record), this.deps.random);
      const encryptionKey = { id: record.id, key, until: now + KEY_CACHE_MS };
      found.set(tenant, encryptionKey);
      cacheKey(this.#encryptionKeys, tenant, encryptionKey);
    }
    return found;
  }

  /** What to open with, by the id of the key, or why that is impossible. */
  async decryptionKeys(ids: Iterable<string>): Promise<ReadonlyMap<string, DecryptionKey | UndecryptableReason>> {
    const now = this.deps.clock.monotonic();
    const found = new Map<string, DecryptionKey | UndecryptableReason>();
    const missing: string[] = [];
    for (const id of new Set(ids)) {
      const entry = this.#decryptionKeys.get(id);
      if (entry !== undefined && now < entry.until) found.set(id, entry);
      else missing.push(id);
    }
    if (missing.length === 0) return found;
    const records = new Map((await this.deps.keys.get(missing)).map((record) => [record.id, record]));
    const masterKeys = await this.deps.masterKeys.all();
    for (const id of missing) {
      const record = records.get(id);
      const bytes = record && unwrappedBy(masterKeys, record);
      if (record === undefined) {
        this.#decryptionKeys.delete(id);
        found.set(id, "shredded");
      } else if (bytes === undefined) found.set(id, "locked");
      else {
        const decryptionKey = {
          tenant: record.tenant,
          key: this.#decryptionKeys.get(id)?.key ?? new DecryptingKey(bytes),
          until: now + KEY_CACHE_MS,
        };
        found.set(id, decryptionKey);
        cacheKey(this.#decryptionKeys, id, decryptionKey);
      }
    }
    return found;
  }

  /**
   * A digest that only a holder of the tenant's keys can make, so that a guess at what was digested confirms nothing. By its
   * first key: what was digested before a rotation or a rewrap is known again after it.
   */
  async digest(tenant: string, text: string, tx?: StoreTransaction): Promise<string> {
    const now = this.deps.clock.monotonic();
    const entry = this.#digests.get(tenant);
    if (entry !== undefined && now < entry.until) return entry.key.digest(text);
    const [newest] = await this.deps.keys.newest([tenant], tx);
    // Where there is a first one, adding another answers with it.
    const first = newest?.version === 1 ? newest : await this.#add(tenant, 1);
    const key = new DigestKey(await this.#unwrapped(first));
    cacheKey(this.#digests, tenant, { key, until: now + KEY_CACHE_MS });
    return key.digest(text);
  }

  /** A new key for what is encrypted from now on; what was encrypted before stays readable. Heard of everywhere within half a minute. */
  async rotate(tenant: string): Promise<DataKeyRecord> {
    const [newest] = await this.deps.keys.newest([tenant]);
    const added = await this.#add(tenant, (newest?.version ?? 0) + 1);
    this.#encryptionKeys.delete(tenant);
    return added;
  }

  /** Its keys are going: what this process has of them is not used again. */
  forget(tenant: string): void {
    this.#encryptionKeys.delete(tenant);
    this.#digests.delete(tenant);
    for (const [id, cached] of this.#decryptionKeys) if (cached.tenant === tenant) this.#decryptionKeys.delete(id);
  }

  /** Wraps every data key by the newest master key. Answers how many were, and how many could not be: their master key is not here. */
  async rewrap(): Promise<{ readonly rewrapped: number; readonly left: number }> {
    const { keys, random } = this.deps;
    const masterKeys = await this.deps.masterKeys.all();
    const newest = masterKeys[0] as MasterKey;
    let [rewrapped, left] = [0, 0];
    let after: string | undefined;
    for (;;) {
      const page = await keys.notBy(newest.id, { limit: KEYS_PER_PAGE, ...(after === undefined ? {} : { after }) });
      for (const record of page) {
        const bytes = unwrappedBy(masterKeys, record);
        if (bytes === undefined) left++;
        else if (await keys.rewrap(record.id, record.master, { master: newest.id, wrapped: wrap(newest, bytes, aboutKey(record), random) }))
          rewrapped++;
      }
      after = page.at(-1)?.id;
      if (page.length < KEYS_PER_PAGE) return { rewrapped, left };
    }
  }

  /** The master keys that wrap any data key, and whether this process has them; its newest one comes first. */
  async status(): Promise<readonly { readonly master: string; readonly count: number; readonly here: boolean }[]> {
    const [uses, masterKeys] = [await this.deps.keys.masterKeys(), await this.deps.masterKeys.all()];
    const counts = new Map(uses.map(({ master, count }) => [master, count]));
    const here = masterKeys.map(({ id }) => ({ master: id, count: counts.get(id) ?? 0, here: true }));
    const own = new Set(masterKeys.map(({ id }) => id));
    return [...here, ...uses.filter(({ master }) => !own.has(master)).map((use) => ({ ...use, here: false }))];
  }

  async #add(tenant: string, version: number): Promise<DataKeyRecord> {
    const { keys, masterKeys, random } = this.deps;
    const master = await masterKeys.newest();
    const about = { id: Buffer.from(random(12)).toString("base64url"), tenant, version };
    const key: NewDataKey = { ...about, master: master.id, wrapped: wrap(master, newDataKey(random), aboutKey(about), random) };
    return keys.add(key);
  }

  async #unwrapped(record: DataKeyRecord): Promise<Uint8Array> {
    const bytes = unwrappedBy(await this.deps.masterKeys.all(), record);
    if (bytes === undefined) throw pawlError("master_key_missing", { masterKeys: record.master });
    return bytes;
  }
}

function unwrappedBy(masterKeys: readonly MasterKey[], record: DataKeyRecord): Uint8Array | undefined {
  const master = masterKeys.find(({ id }) => id === record.master);
  return master && unwrap(master, record.wrapped, aboutKey(record));
}

/** So that a wrapped key moved to another tenant's row does not open. */
function aboutKey({ id, tenant, version }: Pick<DataKeyRecord, "id" | "tenant" | "version">): string {
  return JSON.stringify(["pawl data key", id, tenant, version]);
}

function cacheKey<V>(cached: Map<string, V>, name: string, value: V): void {
  cached.delete(name);
  if (cached.size >= MAX_CACHED_KEYS) cached.delete(cached.keys().next().value as string);
  cached.set(name, value);
}
