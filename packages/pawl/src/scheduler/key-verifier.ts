import { type ApiKeyFacts, type ApiKeyText, parseApiKey, type Refusal, refusalOf, type Verified } from "../core/api-key.js";
import type { Clock } from "../runtime/clock.js";
import { hmacSha256, sameDigest } from "../runtime/digest.js";
import type { Store } from "../store/port.js";
import type { Pepper } from "./pepper.js";

/**
 * ms a key that was good is believed to be so without a look at the store's mark. With the time a look and a request
 * may take, a revocation holds everywhere within 5 s.
 */
const BELIEVED = 2_000;
/** ms; last uses are noted about as often */
const USED_EVERY = 60_000;
/** ms that uses are gathered for one write */
const GATHERED = 1_000;
/** ms after the store last told that a key is remembered, for those who have to answer without it */
const REMEMBERED = 3_600_000;
const MOST_KNOWN = 10_000;

interface Known {
  readonly facts: ApiKeyFacts;
  readonly mark: string;
  /** secrets of it that were presented here and were good */
  readonly good: readonly { readonly digest: string; readonly until: number }[];
}

/**
 * Tells what keys are worth. What is no key, or mistyped, costs no look at the store; a key in use costs none of its
 * own: one look every two seconds tells whether any key was rotated or revoked.
 */
export class KeyVerifier {
  readonly #known = new Map<string, Known>();
  readonly #usedAt = new Map<string, number>();
  readonly #used = new Set<string>();
  #mark = { value: "", at: Number.NEGATIVE_INFINITY };
  #looking: Promise<void> | undefined;
  /** the store's clock, as ms after our own */
  #ahead = 0;

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
    if ("ok" in parsed || this.clock.monotonic() - this.#mark.at > REMEMBERED) return undefined;
    return this.#fromKnown(parsed.id, digestOf(await this.pepper.read(), parsed));
  }

  #parse(text: string): ApiKeyText | (Verified & { readonly ok: false }) {
    const parsed = parseApiKey(text);
    if (parsed === undefined) return { ok: false, why: "malformed" };
    return parsed.env === this.env ? parsed : { ok: false, why: "env", key: parsed.id };
  }

  async #fromMemory(id: string, digest: string): Promise<Verified | undefined> {
    if (!this.#known.has(id)) return undefined;
    if (this.clock.monotonic() - this.#mark.at >= BELIEVED) await this.#look();
    return this.#fromKnown(id, digest);
  }

  /** Of keys that were good at the last look. */
  #fromKnown(id: string, digest: string): Verified | undefined {
    const known = this.#known.get(id);
    if (known === undefined || known.mark !== this.#mark.value) return undefined;
    const good = known.good.some((secret) => sameDigest(secret.digest, digest) && secret.until > this.#now());
    return good ? this.#judge(known.facts) : undefined;
  }

  async #fromStore(id: string, digest: string): Promise<Verified> {
    const at = this.clock.monotonic();
    const { key, secret, mark, now } = await this.store.apiKeys.check(id, digest);
    this.#saw(mark, at);
    this.#ahead = now - this.clock.monotonic();
    if (key === undefined) return { ok: false, why: "unknown", key: id };
    if (secret === undefined) return refused("secret", key);
    const before = this.#known.get(id);
    const others = before?.mark === mark ? before.good : [];
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, { facts: key, mark, good: [{ digest, until: secret.until ?? Number.POSITIVE_INFINITY }, ...others].slice(0, 2) });
    return this.#judge(key);
  }

  #judge(key: ApiKeyFacts): Verified {
    const why = refusalOf(key, this.#now());
    if (why !== undefined) return refused(why, key);
    this.#use(key.id);
    const { id, name, tenant, grants, expiresAt } = key;
    return { ok: true, credential: { key: id, name, tenant, grants }, ...(expiresAt === undefined ? {} : { expiresAt }) };
  }

  #now(): number {
    return this.clock.monotonic() + this.#ahead;
  }

  /** All who wait share one look. */
  #look(): Promise<void> {
    const at = this.clock.monotonic();
    this.#looking ??= this.store.apiKeys
      .mark()
      .then((mark) => this.#saw(mark, at))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  #saw(value: string, at: number): void {
    if (at >= this.#mark.at) this.#mark = { value, at };
  }

  #use(id: string): void {
    const at = this.clock.monotonic();
    if (at - (this.#usedAt.get(id) ?? Number.NEGATIVE_INFINITY) < USED_EVERY) return;
    if (this.#usedAt.size >= MOST_KNOWN) this.#usedAt.clear();
    this.#usedAt.set(id, at);
    if (this.#used.size === 0) this.clock.after(GATHERED, () => void this.#noteUses());
    this.#used.add(id);
  }

  async #noteUses(): Promise<void> {
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
