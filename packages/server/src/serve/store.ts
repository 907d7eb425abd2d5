import { isMasterKey, type OpenOptions, SHORTEST_PEPPER } from "pawl";
import { Unfit } from "../config/kinds.js";
import type { StorePlace } from "../config/place.js";
import { ConfigError, reasonOf, together, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { SettingName } from "../config/settings.js";
import { withTls } from "../config/store-url.js";
import { Networks } from "../net/network.js";
import { checkerBy } from "../push/registered.js";
import type { TargetRules } from "../push/target.js";
import { nameOf, type Reference } from "../secrets/reference.js";
import type { Secrets } from "../secrets/secrets.js";
import { checkAuthorities } from "../tls/certificates.js";

/** What `open` is given for a configuration. */
export interface StoreTarget {
  readonly url: string;
  readonly options: Pick<OpenOptions, "engine" | "migrate" | "postgres" | "keys" | "encryption" | "redact" | "checkTarget">;
}

/** Where the store is and how it is reached, with the secrets that takes. */
export async function storeTarget(configuration: Configuration, secrets: Secrets): Promise<StoreTarget> {
  const { settings } = configuration;
  const where = (name: SettingName) => whereOf(configuration, name);
  const { "store.engine": engine, "store.migrate": migrate, "store.schema": schema, "store.connections": connections } = settings;
  const reference = settings["store.password"];
  // Read again for every connection, so that it may be changed while this runs.
  const password = reference === undefined ? undefined : () => secrets.at(reference).read();
  const urlOf = (name: SettingName, place: StorePlace) => openedUrl(place, { where: where(name), settings, secrets });
  const listen = settings["store.listenUrl"];
  const pepper = settings["keys.pepper"];
  const { "encryption.keys": masters, "store.ca": ca } = settings;
  // What is wrong with one is said now, and not with the first connection, job or caller.
  const [url, listenUrl] = await together(
    () => urlOf("store.url", settings["store.url"]),
    async () => (listen === undefined ? undefined : urlOf("store.listenUrl", listen)),
    async () => reference && secrets.read(where("store.password"), reference),
    async () => masters && checkMasters(masters, where("encryption.keys"), secrets),
    async () => ca && checkAuthorities(ca, where("store.ca")),
    async () => pepper && checkPepper(pepper, where("keys.pepper"), secrets),
  );
  return {
    url,
    options: {
      ...(engine === undefined ? {} : { engine }),
      ...(migrate === undefined ? {} : { migrate }),
      ...(pepper === undefined ? {} : { keys: { pepper: () => secrets.at(pepper).read() } }),
      checkTarget: checkerBy(targetRules(settings)),
      ...(settings.redact === undefined ? {} : { redact: settings.redact }),
      ...(masters === undefined ? {} : { encryption: { keys: () => mastersAt(masters, where("encryption.keys"), secrets) } }),
      postgres: {
        patience: "forever",
        ...(password === undefined ? {} : { password }),
        ...(schema === undefined ? {} : { schema }),
        ...(connections === undefined ? {} : { connections }),
        ...(listenUrl === undefined ? {} : { listenUrl }),
      },
    },
  };
}

/** Where jobs may be pushed to: said when a target is registered, and again with every connection. */
export function targetRules({ "push.allow": allow = [], "push.plain": plain = false }: Configuration["settings"]): TargetRules {
  return { allowed: new Networks(allow), plain };
}

/** As they are now: a key that is put before the others is used from then on. */
function mastersAt(references: readonly Reference[], where: string, secrets: Secrets): Promise<readonly string[]> {
  return Promise.all(references.map((reference) => secrets.read(where, reference)));
}

async function checkMasters(references: readonly Reference[], where: string, secrets: Secrets): Promise<void> {
  const keys = await mastersAt(references, where, secrets);
  const unfit = references.filter((_, place) => !isMasterKey(keys[place]));
  if (unfit.length === 0) return;
  const problems = unfit.map((reference) => ({
    where,
    what: `what ${nameOf(reference)} holds is not 32 bytes, as base64 or hex`,
    help: "openssl rand -base64 32 makes one",
  }));
  throw new ConfigError(problems);
}

async function checkPepper(reference: Reference, where: string, secrets: Secrets): Promise<void> {
  if (Buffer.byteLength(await secrets.read(where, reference)) >= SHORTEST_PEPPER) return;
  throw wrong(where, `what is kept there is shorter than ${SHORTEST_PEPPER} bytes`, "openssl rand -base64 32 makes one");
}

interface Opening {
  readonly where: string;
  readonly settings: Configuration["settings"];
  readonly secrets: Secrets;
}

async function openedUrl(place: StorePlace, { where, settings, secrets }: Opening): Promise<string> {
  if (place.kind === "memory") return "memory:";
  if (place.kind === "folder") return place.folder;
  const url = place.kind === "postgres" ? place.url : await secrets.read(where, place.reference);
  if (!/^postgres(ql)?:\/\//i.test(url)) throw wrong(where, "what is kept there is no postgres:// URL", "keep one there");
  try {
    return withTls(url, { tls: settings["store.tls"], ca: settings["store.ca"] });
  } catch (error) {
    throw error instanceof Unfit ? wrong(where, error.what, error.help) : wrong(where, reasonOf(error), "correct the URL");
  }
}

function wrong(where: string, what: string, help: string): ConfigError {
  return new ConfigError([{ where, what, help }]);
}
