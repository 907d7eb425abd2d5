import { type ApiKeyFacts, type ApiKeyText, parseApiKey, type Refusal, refusalOf, type Verified } from "../../core/access/api-key.js";
import { hmacSha256, sameDigest } from "../../runtime/io/digest.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { Pepper } from "./pepper.js";

/**
 * ms a key that was good is believed to be so without a look at the store's version. With the time a look and a request
 * may take, a revocation holds everywhere within 5 s.
 */
const VERIFIED_KEY_CACHE_MS = 2_000;
/** ms; last uses are noted about as often */
const LAST_USE_INTERVAL_MS = 60_000;
/** ms that uses are gathered for one write */
const LAST_USE_WRITE_DELAY_MS = 1_000;
/** ms after the store last told that a key is remembered, for those who have to answer without it */
const REMEMBERED_KEY_MS = 3_600_000;
const MAX_CACHED_KEYS = 10_000;

interface VerifiedKey {
  readonly facts: ApiKeyFacts;
  readonly version: string;
  /** secrets of it that were presented here and were good */
  readonly validSecrets: readonly { readonly digest: string; readonly until: number }[];
}

/**
 * Tells what keys are worth. What is no key, or mistyped, costs no look at the store; a key in use costs none of its
 * own: one look every two seconds tells whether any key was rotated or revoked.
 */
export class ApiKeyVerifier {
  readonly #cache = new Map<string, VerifiedKey>();
  readonly #usedAt = new Map<string, number>();
  readonly #used = new Set<string>();
  #version = { value: "", at: Number.NEGATIVE_INFINITY };
  #readingVersion: Promise<void> | undefined;
  /** the store's clock, as ms after our own */
  #clockOffset = 0;

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly pepper: Pepper,
    private readonly env: string,
  ) {}

  async verify(text: string): Promise<Verified> {
    const parsed = this.#parse(text);
    if ("ok" in parsed) return parsed;
    const digest = digestOf(await this.pepper.read(), parsed);
    return (await this.#fromMemory(parsed.id, digest)) ?? this.#fromStore(parsed.id, digest);
  }

  /** The same of keys that were good here of late, and undefined of all others: whoever guesses learns nothing by it. */
  async recall(text: string): Promise<Verified | undefined> {
    const parsed = this.#parse(text);
    return "ok" in parsed ? undefined : this.#fromMemory(parsed.id, digestOf(await this.pepper.read(), parsed));
  }

  /**
   * What a key that was good here was worth when the store last told, at most an hour ago; undefined: nobody knows. It may have
   * been revoked since, which only the store tells: for what has to be answered while that is away, and for nothing else.
   */
  async remembered(text: string): Promise<Verified | undefined> {
    const parsed = this.#parse(text);
    if ("ok" in parsed || this.clock.monotonic() - this.#version.at > REMEMBERED_KEY_MS) return undefined;
    return this.#fromCache(parsed.id, digestOf(await this.pepper.read(), parsed));
  }

  #parse(text: string): ApiKeyText | (Verified & { readonly ok: false }) {
    const parsed = parseApiKey(text);
    if (parsed === undefined) return { ok: false, why: "malformed" };
    return parsed.env === this.env ? parsed : { ok: false, why: "env", key: parsed.id };
  }

  async #fromMemory(id: string, digest: string): Promise<Verified | undefined> {
    if (!this.#cache.has(id)) return undefined;
    if (this.clock.monotonic() - this.#version.at >= VERIFIED_KEY_CACHE_MS) await this.#readVersion();
    return this.#fromCache(id, digest);
  }

  /** Of keys that were good at the last look. */
  #fromCache(id: string, digest: string): Verified | undefined {
    const entry = this.#cache.get(id);
    if (entry === undefined || entry.version !== this.#version.value) return undefined;
    const good = entry.validSecrets.some((secret) => sameDigest(secret.digest, digest) && secret.until > this.#now());
    return good ? this.#checkFacts(entry.facts) : undefined;
  }

  async #fromStore(id: string, digest: string): Promise<Verified> {
    const at = this.clock.monotonic();
    const { key, secret, version, now } = await this.store.apiKeys.check(id, digest);
    this.#recordVersion(version, at);
    this.#clockOffset = now - this.clock.monotonic();
    if (key === undefined) return { ok: false, why: "unknown", key: id };
    if (secret === undefined) return refused("secret", key);
    const before = this.#cache.get(id);
    const others = before?.version === version ? before.validSecrets : [];
    if (this.#cache.size >= MAX_CACHED_KEYS) this.#cache.clear();
    this.#cache.set(id, { facts: key, version, validSecrets: [{ digest, until: secret.until ?? Number.POSITIVE_INFINITY }, ...others].slice(0, 2) });
    return this.#checkFacts(key);
  }

  #checkFacts(key: ApiKeyFacts): Verified {
    const why = refusalOf(key, this.#now());
    if (why !== undefined) return refused(why, key);
    this.#recordUse(key.id);
    const { id, name, tenant, grants, expiresAt } = key;
    return { ok: true, credential: { key: id, name, tenant, grants }, ...(expiresAt === undefined ? {} : { expiresAt }) };
  }

  #now(): number {
    return this.clock.monotonic() + this.#clockOffset;
  }

  /** All who wait share one look. */
  #readVersion(): Promise<void> {
    const at = this.clock.monotonic();
    this.#readingVersion ??= this.store.apiKeys
      .version()
      .then((version) => this.#recordVersion(version, at))
      .finally(() => {
        this.#readingVersion = undefined;
      });
    return this.#readingVersion;
  }

  #recordVersion(value: string, at: number): void {
    if (at >= this.#version.at) this.#version = { value, at };
  }

  #recordUse(id: string): void {
    const at = this.clock.monotonic();
    if (at - (this.#usedAt.get(id) ?? Number.NEGATIVE_INFINITY) < LAST_USE_INTERVAL_MS) return;
    if (this.#usedAt.size >= MAX_CACHED_KEYS) this.#usedAt.clear();
    this.#usedAt.set(id, at);
    if (this.#used.size === 0) this.clock.after(LAST_USE_WRITE_DELAY_MS, () => void this.#writeUses());
    this.#used.add(id);
  }

  async #writeUses(): Promise<void> {
    const ids = [...this.#used];
    this.#used.clear();
    // For people only: if it cannot be noted now, it will be at its next use.
    await this.store.apiKeys.touch(ids).catch(() => {
      for (const id of ids) this.#usedAt.delete(id);
    });
  }
}

/** Bound to the key's id: the digest of one key is none of another. */
export function digestOf(pepper: string | Uint8Array, { id, secret }: ApiKeyText): string {
  return hmacSha256(pepper, `${id}.${secret}`);
}

function refused(why: Refusal, { id, tenant }: ApiKeyFacts): Verified {
  return { ok: false, why, key: id, ...(tenant === undefined ? {} : { tenant }) };
}
