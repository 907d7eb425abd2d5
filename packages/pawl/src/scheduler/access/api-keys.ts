import { type ApiKeyFacts, apiKeyText, isEnv, newApiKey, type Verified } from "../../core/access/api-key.js";
import { checkGrants, type Grant } from "../../core/access/roles.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Duration } from "../../core/values/duration.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import type { ApiKeyChange } from "../../store/port/access/api-keys.js";
import type { Scope, Store } from "../../store/port/index.js";
import { checkDuration, checkKeys, checkObject, checkPeriod, checkText, invalid, shortened, show } from "../check.js";
import type { Environment } from "../deps.js";
import { cursorFormat, type PagedList, type PageOptions, pagedList, pageOfRows, readPage } from "../page.js";
import { ApiKeyVerifier, digestOf } from "./api-key-verifier.js";
import { nameOfPepper, Pepper, type PepperSource } from "./pepper.js";

export interface PepperOptions {
  /**
   * Mixed into what is stored of secrets, kept apart from the store, the same in every process; 16 bytes or more. Or a function
   * that answers it as it is now: what was hashed with another one is no good from then on.
   */
  readonly pepper: PepperSource;
  /** the second part of every key, so that one of a test never works in production; "live" if left out */
  readonly env?: string;
}

/** An API key as people see it: what it may do, and nothing of its secret. */
export interface ApiKeyView {
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
export interface ApiKeyWithSecret {
  readonly key: ApiKeyView;
  readonly secret: string;
}

export interface ApiKeyOptions {
  /** for people */
  readonly name: string;
  /** left out: the key acts for the whole store */
  readonly tenant?: string;
  /** what it may do, as in docs/access.md */
  readonly grants: readonly Grant[];
  /** how long it is good; left out: until it is revoked */
  readonly expiresIn?: Duration;
}

export interface ApiKeys {
  create(key: ApiKeyOptions): Promise<ApiKeyWithSecret>;
  get(id: string): Promise<ApiKeyView>;
  /** newest first */
  list(filter?: ApiKeysFilter, page?: PageOptions): PagedList<ApiKeyView>;
  /** A new secret. The one before is good for `keepOldFor` more (a day if left out); an older one no longer. */
  rotate(id: string, how?: { readonly keepOldFor?: Duration }): Promise<ApiKeyWithSecret>;
  /** for good, and everywhere within 5 s */
  revoke(id: string): Promise<ApiKeyView>;
  /** The same, seeing and making keys of this tenant only. */
  forTenant(tenant: string): ApiKeys;
}

export interface ApiKeysFilter {
  /** keys of this tenant; with `as`, that tenant's only */
  readonly tenant?: string;
}

/** A pepper that keys were made with. */
export interface PepperUse {
  /** tells it from others, and nothing of it */
  readonly pepper: string;
  /** keys whose newest secret was made with it, and which are neither revoked nor expired */
  readonly count: number;
  /** whether it is the one that keys are checked with here */
  readonly here: boolean;
}

/** Where the store is, keys can also be checked. */
export interface LocalApiKeys extends ApiKeys {
  /** Who a key stands for, or why it is not good; whoever asked is told no more than that. */
  verify(text: string): Promise<Verified>;
  /** The same of keys that were good here of late; undefined of all others, at no cost to the store. */
  recall(text: string): Promise<Verified | undefined>;
  /**
   * What a key that was good here was worth when the store last told, at most an hour ago; undefined of all others. For what has
   * to be answered while the store is away, such as metrics: a key that was revoked meanwhile is still good by it.
   */
  remembered(text: string): Promise<Verified | undefined>;
  /** Which peppers the keys were made with: those of another one than this process has are all refused. */
  status(): Promise<readonly PepperUse[]>;
}

const OPTION_KEYS: ReadonlySet<string> = new Set(["pepper", "env"] satisfies (keyof PepperOptions)[]);
const NEW_KEYS: ReadonlySet<string> = new Set(["name", "tenant", "grants", "expiresIn"] satisfies (keyof ApiKeyOptions)[]);
const FILTER_KEYS: ReadonlySet<string> = new Set(["tenant"] satisfies (keyof ApiKeysFilter)[]);
const CURSOR = cursorFormat("apiKeys", (id) => checkText("id", id));
const DEFAULT_ENV = "live";

export async function createApiKeys(store: Store, surroundings: Environment, keysOptions: PepperOptions | undefined): Promise<LocalApiKeys> {
  const options = keysOptions === undefined ? undefined : await optionsOf(keysOptions);
  const verifier = options && new ApiKeyVerifier(store, surroundings.clock, options.pepper, options.env);
  const ready = async () => {
    if (verifier === undefined) throw pawlError("pepper_missing");
    return verifier;
  };
  return {
    ...apiKeysInScope(store, surroundings, options, "everyone"),
    verify: async (text) => (await ready()).verify(text),
    recall: async (text) => (await ready()).recall(text),
    remembered: async (text) => (await ready()).remembered(text),
    status: async () => {
      const here = options && nameOfPepper(await options.pepper.read());
      return (await store.apiKeys.peppers()).map((use) => ({ ...use, here: use.pepper === here }));
    },
  };
}

interface ApiKeySettings {
  readonly pepper: Pepper;
  readonly env: string;
}

function apiKeysInScope(store: Store, surroundings: Environment, options: ApiKeySettings | undefined, scope: Scope): ApiKeys {
  /** A secret of that key, or of a new one, as it is shown and as it is stored. */
  const secretOf = async (id?: string) => {
    if (options === undefined) throw pawlError("pepper_missing");
    const made = newApiKey(options.env, surroundings.randomBytes, id);
    const pepper = await options.pepper.read();
    return { id: made.id, text: apiKeyText(made), stored: { digest: digestOf(pepper, made), pepper: nameOfPepper(pepper) } };
  };

  return {
    async create(newKey) {
      const { expiresIn, ...facts } = checkNew(newKey, scope);
      for (;;) {
        const { id, text, stored } = await secretOf();
        const made = await store.apiKeys.create({ id, ...facts, ...stored, ...(expiresIn === undefined ? {} : { expiresIn }) });
        if (made === "created") return { key: await this.get(id), secret: text };
      }
    },
    async get(id) {
      const found = await store.apiKeys.get(scope, id);
      if (found === undefined) throw pawlError("api_key_unknown", { key: shortened(id) });
      return viewOf(found);
    },
    list: (filter = {}, page) =>
      pagedList(page, async (one) => {
        const narrower = narrowedBy(filter, scope);
        return pageOfRows(readPage(one, CURSOR), CURSOR, (request) => store.apiKeys.list(narrower, request), { place: ({ id }) => id, view: viewOf });
      }),
    async rotate(id, how = {}) {
      checkKeys(checkObject("how", how), new Set(["keepOldFor"]));
      const keepOldFor = checkDuration("keepOldFor", how.keepOldFor ?? DEFAULTS.apiKeys.keepOldFor);
      const { text, stored } = await secretOf(id);
      return { key: viewAfterChange(id, await store.apiKeys.rotate(scope, id, { ...stored, keepOldFor })), secret: text };
    },
    async revoke(id) {
      return viewAfterChange(id, await store.apiKeys.revoke(scope, id));
    },
    forTenant(tenant) {
      checkName("tenant", tenant);
      if (scope !== "everyone" && scope.tenant !== tenant) throw invalid("tenant", `these are the keys of ${show(scope.tenant)} only`);
      return apiKeysInScope(store, surroundings, options, { tenant });
    },
  };
}

function narrowedBy(filter: ApiKeysFilter, scope: Scope): Scope {
  checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
  if (filter.tenant === undefined) return scope;
  const tenant = checkName("tenant", filter.tenant);
  if (scope !== "everyone" && scope.tenant !== tenant) throw invalid("filter.tenant", `these are the keys of ${show(scope.tenant)} only`);
  return { tenant };
}

function viewAfterChange(id: string, change: ApiKeyChange): ApiKeyView {
  if (change.kind === "unknown") throw pawlError("api_key_unknown", { key: shortened(id) });
  if (change.kind === "revoked") throw pawlError("api_key_revoked", { key: id });
  return viewOf(change.key);
}

async function optionsOf(keysOptions: PepperOptions): Promise<ApiKeySettings> {
  checkKeys(checkObject("keys", keysOptions), OPTION_KEYS, "keys.");
  const { pepper, env = DEFAULT_ENV } = keysOptions;
  if (typeof env !== "string" || !isEnv(env)) throw invalid("keys.env", `${show(env)} is not 1 to 16 lower-case letters and digits`);
  return { pepper: await Pepper.of(pepper), env };
}

function checkNew(newKey: ApiKeyOptions, scope: Scope) {
  checkKeys(checkObject("key", newKey), NEW_KEYS, "key.");
  const { name, tenant, grants, expiresIn } = newKey;
  const requestedTenant = tenant === undefined ? undefined : checkName("tenant", tenant);
  if (scope !== "everyone" && requestedTenant !== undefined && requestedTenant !== scope.tenant)
    throw invalid("key.tenant", `these are the keys of ${show(scope.tenant)} only`);
  return {
    name: checkName("API key", name),
    tenant: scope === "everyone" ? requestedTenant : scope.tenant,
    grants: checkGrants("key.grants", grants),
    ...(expiresIn === undefined ? {} : { expiresIn: checkPeriod("key.expiresIn", expiresIn) }),
  };
}

function viewOf({ id, name, tenant, grants, createdAt, expiresAt, revokedAt, lastUsedAt }: ApiKeyFacts): ApiKeyView {
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
