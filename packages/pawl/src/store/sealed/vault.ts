import { pawlError } from "../../core/error.js";
import type { RandomBytes } from "../../core/id.js";
import type { Unreadable } from "../../core/sealed.js";
import { DigestKey, type MasterKey, newDataKey, OpeningKey, SealingKey, unwrap, wrap } from "../../runtime/cipher.js";
import type { Clock } from "../../runtime/clock.js";
import type { ForeignTransaction } from "../port.js";
import type { DataKeyRecord, DataKeyStore, NewDataKey } from "../port-data-keys.js";
import type { Masters } from "./masters.js";

/** ms that a key is believed to be there, and a tenant's newest one to be that: how long a purge or a rotation takes to be heard of everywhere */
const BELIEVED = 30_000;
/** keys held in memory of each kind; beyond, the oldest go and are read again */
const MOST_HELD = 10_000;
const PAGE = 200;

export interface Sealing {
  readonly id: string;
  readonly key: SealingKey;
}

export interface Opening {
  readonly tenant: string;
  readonly key: OpeningKey;
}

export interface VaultParts {
  readonly keys: DataKeyStore;
  readonly masters: Masters;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

type Believed<K> = K & { readonly until: number };

/** The data keys of tenants, unwrapped: made when a tenant first needs one, read when they are first met. */
export class Vault {
  readonly #sealing = new Map<string, Believed<Sealing>>();
  readonly #opening = new Map<string, Believed<Opening>>();
  readonly #digests = new Map<string, Believed<{ readonly key: DigestKey }>>();

  constructor(private readonly parts: VaultParts) {}

  /**
   * What to seal with, by tenant. A first key is made apart from the caller's transaction: one that was rolled back would take
   * it away from whoever sealed with it since, and one that stays open would have everybody wait who needs the key.
   */
  async sealing(tenants: Iterable<string>, tx?: ForeignTransaction): Promise<ReadonlyMap<string, Sealing>> {
    const now = this.parts.clock.monotonic();
    const found = new Map<string, Sealing>();
    const missing: string[] = [];
    for (const tenant of new Set(tenants)) {
      const known = this.#sealing.get(tenant);
      if (known !== undefined && now < known.until) found.set(tenant, known);
      else missing.push(tenant);
    }
    if (missing.length === 0) return found;
    const newest = new Map((await this.parts.keys.newest(missing, tx)).map((record) => [record.tenant, record]));
    for (const tenant of missing) {
      const record = newest.get(tenant) ?? (await this.#add(tenant, 1));
      const held = this.#sealing.get(tenant);
      const key = held?.id === record.id ? held.key : new SealingKey(await this.#unwrapped(record), this.parts.random);
      const sealing = { id: record.id, key, until: now + BELIEVED };
      found.set(tenant, sealing);
      hold(this.#sealing, tenant, sealing);
    }
    return found;
  }

  /** What to open with, by the id of the key, or why that is impossible. */
  async opening(ids: Iterable<string>): Promise<ReadonlyMap<string, Opening | Unreadable>> {
    const now = this.parts.clock.monotonic();
    const found = new Map<string, Opening | Unreadable>();
    const missing: string[] = [];
    for (const id of new Set(ids)) {
      const known = this.#opening.get(id);
      if (known !== undefined && now < known.until) found.set(id, known);
      else missing.push(id);
    }
    if (missing.length === 0) return found;
    const records = new Map((await this.parts.keys.get(missing)).map((record) => [record.id, record]));
    const masters = await this.parts.masters.all();
    for (const id of missing) {
      const record = records.get(id);
      const bytes = record && unwrappedBy(masters, record);
      if (record === undefined) {
        this.#opening.delete(id);
        found.set(id, "shredded");
      } else if (bytes === undefined) found.set(id, "locked");
      else {
        const opening = { tenant: record.tenant, key: this.#opening.get(id)?.key ?? new OpeningKey(bytes), until: now + BELIEVED };
        found.set(id, opening);
        hold(this.#opening, id, opening);
      }
    }
    return found;
  }

  /**
   * A digest that only a holder of the tenant's keys can make, so that a guess at what was digested confirms nothing. By its
   * first key: what was digested before a rotation or a rewrap is known again after it.
   */
  async digest(tenant: string, text: string, tx?: ForeignTransaction): Promise<string> {
    const now = this.parts.clock.monotonic();
    const known = this.#digests.get(tenant);
    if (known !== undefined && now < known.until) return known.key.digest(text);
    const [newest] = await this.parts.keys.newest([tenant], tx);
    // Where there is a first one, adding another answers with it.
    const first = newest?.version === 1 ? newest : await this.#add(tenant, 1);
    const key = new DigestKey(await this.#unwrapped(first));
    hold(this.#digests, tenant, { key, until: now + BELIEVED });
    return key.digest(text);
  }

  /** A new key for what is sealed from now on; what was sealed before stays readable. Heard of everywhere within half a minute. */
  async rotate(tenant: string): Promise<DataKeyRecord> {
    const [newest] = await this.parts.keys.newest([tenant]);
    const added = await this.#add(tenant, (newest?.version ?? 0) + 1);
    this.#sealing.delete(tenant);
    return added;
  }

  /** Its keys are going: what this process has of them is not used again. */
  forget(tenant: string): void {
    this.#sealing.delete(tenant);
    this.#digests.delete(tenant);
    for (const [id, held] of this.#opening) if (held.tenant === tenant) this.#opening.delete(id);
  }

  /** Wraps every data key by the newest master key. Answers how many were, and how many could not be: their master key is not here. */
  async rewrap(): Promise<{ readonly rewrapped: number; readonly left: number }> {
    const { keys, random } = this.parts;
    const masters = await this.parts.masters.all();
    const newest = masters[0] as MasterKey;
    let [rewrapped, left] = [0, 0];
    let after: string | undefined;
    for (;;) {
      const page = await keys.notBy(newest.id, { limit: PAGE, ...(after === undefined ? {} : { after }) });
      for (const record of page) {
        const bytes = unwrappedBy(masters, record);
        if (bytes === undefined) left++;
        else if (await keys.rewrap(record.id, record.master, { master: newest.id, wrapped: wrap(newest, bytes, aboutKey(record), random) }))
          rewrapped++;
      }
      after = page.at(-1)?.id;
      if (page.length < PAGE) return { rewrapped, left };
    }
  }

  /** The master keys that wrap any data key, and whether this process has them; its newest one comes first. */
  async status(): Promise<readonly { readonly master: string; readonly count: number; readonly here: boolean }[]> {
    const [uses, masters] = [await this.parts.keys.masters(), await this.parts.masters.all()];
    const counts = new Map(uses.map(({ master, count }) => [master, count]));
    const here = masters.map(({ id }) => ({ master: id, count: counts.get(id) ?? 0, here: true }));
    const own = new Set(masters.map(({ id }) => id));
    return [...here, ...uses.filter(({ master }) => !own.has(master)).map((use) => ({ ...use, here: false }))];
  }

  async #add(tenant: string, version: number): Promise<DataKeyRecord> {
    const { keys, masters, random } = this.parts;
    const master = await masters.newest();
    const about = { id: Buffer.from(random(12)).toString("base64url"), tenant, version };
    const key: NewDataKey = { ...about, master: master.id, wrapped: wrap(master, newDataKey(random), aboutKey(about), random) };
    return keys.add(key);
  }

  async #unwrapped(record: DataKeyRecord): Promise<Uint8Array> {
    const bytes = unwrappedBy(await this.parts.masters.all(), record);
    if (bytes === undefined) throw pawlError("master_key_missing", { masters: record.master });
    return bytes;
  }
}

function unwrappedBy(masters: readonly MasterKey[], record: DataKeyRecord): Uint8Array | undefined {
  const master = masters.find(({ id }) => id === record.master);
  return master && unwrap(master, record.wrapped, aboutKey(record));
}

/** So that a wrapped key moved to another tenant's row does not open. */
function aboutKey({ id, tenant, version }: Pick<DataKeyRecord, "id" | "tenant" | "version">): string {
  return JSON.stringify(["pawl data key", id, tenant, version]);
}

function hold<V>(held: Map<string, V>, name: string, value: V): void {
  held.delete(name);
  if (held.size >= MOST_HELD) held.delete(held.keys().next().value as string);
  held.set(name, value);
}
