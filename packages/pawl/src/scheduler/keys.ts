import { checkGrants, type Grant } from "../core/access.js";
import { type ApiKeyFacts, apiKeyText, isEnv, newApiKey, type Verified } from "../core/api-key.js";
import { DEFAULTS } from "../core/defaults.js";
import type { Duration } from "../core/duration.js";
import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import type { Scope, Store } from "../store/port.js";
import type { ApiKeyChange } from "../store/port-keys.js";
import { checkDuration, checkKeys, checkObject, checkPageKeys, checkPeriod, checkWhole, invalid, show, told } from "./check.js";
import { digestOf, KeyVerifier } from "./key-verifier.js";
import type { Surroundings } from "./parts.js";
import { Pepper, type PepperSource } from "./pepper.js";

export interface KeysOptions {
  /**
   * Mixed into what is stored of secrets, kept apart from the store, the same in every process; 16 bytes or more. Or a function
   * that answers it as it is now: what was hashed with another one is no good from then on.
   */
  readonly pepper: PepperSource;
  /** the second part of every key, so that one of a test never works in production; "live" if left out */
  readonly env?: string;
}

/** An API key as people see it: what it may do, and nothing of its secret. */
export interface KeyView {
  readonly id: string;
  readonly name: string;
  /** undefined: it acts for the whole store */
  readonly tenant: string | undefined;
  readonly grants: readonly Grant[];
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
  /** to the minute or so */
  readonly lastUsedAt?: Date;
}

/** A key with its secret in it, which is shown this once and can never be read again. */
export interface ShownKey {
  readonly key: KeyView;
  readonly text: string;
}

export interface NewKey {
  /** for people */
  readonly name: string;
  /** left out: the key acts for the whole store */
  readonly tenant?: string;
  /** what it may do, as in docs/access.md */
  readonly grants: readonly Grant[];
  /** how long it is good; left out: until it is revoked */
  readonly lasts?: Duration;
}

export interface Keys {
  create(key: NewKey): Promise<ShownKey>;
  get(id: string): Promise<KeyView>;
  /** newest first; `next` is the `after` of the following page */
  list(page?: { readonly limit?: number; readonly after?: string }): Promise<KeyListing>;
  /** A new secret. The one before is good for `overlap` more (a day if left out); an older one no longer. */
  rotate(id: string, how?: { readonly overlap?: Duration }): Promise<ShownKey>;
  /** for good, and everywhere within 5 s */
  revoke(id: string): Promise<KeyView>;
  /** The same, seeing and making keys of this tenant only. */
  as(scope: { readonly tenant: string }): Keys;
}

export interface KeyListing {
  readonly keys: readonly KeyView[];
  readonly next?: string;
}

/** Where the store is, keys can also be checked. */
export interface KeyRing extends Keys {
  /** Who a key stands for, or why it is not good; whoever asked is told no more than that. */
  verify(text: string): Promise<Verified>;
  /** The same of keys that were good here of late; undefined of all others, at no cost to the store. */
  recall(text: string): Promise<Verified | undefined>;
  /**
   * What a key that was good here was worth when the store last told, at most an hour ago; undefined of all others. For what has
   * to be answered while the store is away, such as metrics: a key that was revoked meanwhile is still good by it.
   */
  remembered(text: string): Promise<Verified | undefined>;
}

const OPTION_KEYS: ReadonlySet<string> = new Set(["pepper", "env"] satisfies (keyof KeysOptions)[]);
const NEW_KEYS: ReadonlySet<string> = new Set(["name", "tenant", "grants", "lasts"] satisfies (keyof NewKey)[]);
const PAGE = { size: 50, largest: 1_000 } as const;
const DEFAULT_ENV = "live";

export async function keyRing(store: Store, surroundings: Surroundings, given: KeysOptions | undefined): Promise<KeyRing> {
  const options = given === undefined ? undefined : await optionsOf(given);
  const verifier = options && new KeyVerifier(store, surroundings.clock, options.pepper, options.env);
  const ready = async () => {
    if (verifier === undefined) throw pawlError("pepper_missing");
    return verifier;
  };
  return {
    ...keysIn(store, surroundings, options, "everyone"),
    verify: async (text) => (await ready()).verify(text),
    recall: async (text) => (await ready()).recall(text),
    remembered: async (text) => (await ready()).remembered(text),
  };
}

interface RingOptions {
  readonly pepper: Pepper;
  readonly env: string;
}

function keysIn(store: Store, surroundings: Surroundings, options: RingOptions | undefined, scope: Scope): Keys {
  /** A secret of that key, or of a new one, as it is shown and as it is stored. */
  const secretOf = async (id?: string) => {
    if (options === undefined) throw pawlError("pepper_missing");
    const made = newApiKey(options.env, surroundings.randomBytes, id);
    return { id: made.id, text: apiKeyText(made), digest: digestOf(await options.pepper.read(), made) };
  };

  return {
    async create(given) {
      const { lasts, ...facts } = checkNew(given, scope);
      for (;;) {
        const { id, text, digest } = await secretOf();
        const made = await store.apiKeys.create({ id, ...facts, digest, ...(lasts === undefined ? {} : { lasts }) });
        if (made === "created") return { key: await this.get(id), text };
      }
    },
    async get(id) {
      const found = await store.apiKeys.get(scope, id);
      if (found === undefined) throw pawlError("api_key_unknown", { key: told(id) });
      return viewOf(found);
    },
    async list(page = {}) {
      checkPageKeys(page);
      const limit = checkWhole("page.limit", page.limit ?? PAGE.size, 1, PAGE.largest);
      // One more than asked for tells whether there are more.
      const found = await store.apiKeys.list(scope, { limit: limit + 1, ...(page.after === undefined ? {} : { after: String(page.after) }) });
      const last = found[limit - 1];
      return { keys: found.slice(0, limit).map(viewOf), ...(found.length > limit && last !== undefined ? { next: last.id } : {}) };
    },
    async rotate(id, how = {}) {
      checkKeys(checkObject("how", how), new Set(["overlap"]));
      const overlap = checkDuration("overlap", how.overlap ?? DEFAULTS.keys.overlap);
      const { text, digest } = await secretOf(id);
      return { key: changed(id, await store.apiKeys.rotate(scope, id, { digest, overlap })), text };
    },
    async revoke(id) {
      return changed(id, await store.apiKeys.revoke(scope, id));
    },
    as(narrower) {
      checkKeys(checkObject("scope", narrower), new Set(["tenant"]));
      const tenant = checkName("tenant", narrower.tenant);
      if (scope !== "everyone" && scope.tenant !== tenant) throw invalid("tenant", `these are the keys of ${show(scope.tenant)} only`);
      return keysIn(store, surroundings, options, { tenant });
    },
  };
}

function changed(id: string, change: ApiKeyChange): KeyView {
  if (change.kind === "unknown") throw pawlError("api_key_unknown", { key: told(id) });
  if (change.kind === "revoked") throw pawlError("api_key_revoked", { key: id });
  return viewOf(change.key);
}

async function optionsOf(given: KeysOptions): Promise<RingOptions> {
  checkKeys(checkObject("keys", given), OPTION_KEYS, "keys.");
  const { pepper, env = DEFAULT_ENV } = given;
  if (typeof env !== "string" || !isEnv(env)) throw invalid("keys.env", `${show(env)} is not 1 to 16 lower-case letters and digits`);
  return { pepper: await Pepper.of(pepper), env };
}

function checkNew(given: NewKey, scope: Scope) {
  checkKeys(checkObject("key", given), NEW_KEYS, "key.");
  const { name, tenant, grants, lasts } = given;
  const asked = tenant === undefined ? undefined : checkName("tenant", tenant);
  if (scope !== "everyone" && asked !== undefined && asked !== scope.tenant)
    throw invalid("key.tenant", `these are the keys of ${show(scope.tenant)} only`);
  return {
    name: checkName("API key", name),
    tenant: scope === "everyone" ? asked : scope.tenant,
    grants: checkGrants("key.grants", grants),
    ...(lasts === undefined ? {} : { lasts: checkPeriod("key.lasts", lasts) }),
  };
}

function viewOf({ id, name, tenant, grants, createdAt, expiresAt, revokedAt, lastUsedAt }: ApiKeyFacts): KeyView {
  return {
    id,
    name,
    tenant,
    grants,
    createdAt: new Date(createdAt),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt) }),
    ...(revokedAt === undefined ? {} : { revokedAt: new Date(revokedAt) }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt: new Date(lastUsedAt) }),
  };
}
