import type { OpenOptions } from "pawl";
import { isMasterKey, MIN_PEPPER_BYTES } from "pawl/service";
import { InvalidSetting } from "../config/kinds.js";
import { ConfigError, reasonOf, runAllChecks, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { SettingName } from "../config/settings.js";
import type { StoreLocation } from "../config/store-location.js";
import { withTls } from "../config/store-url.js";
import { Networks } from "../net/network.js";
import type { TargetRules } from "../push/check-target.js";
import { targetChecker } from "../push/registered-targets.js";
import { nameOf, type Reference } from "../secrets/reference.js";
import type { Secrets } from "../secrets/secrets.js";
import { checkAuthorities } from "../tls/certificates.js";

/** What `open` is given for a configuration. */
export interface StoreToOpen {
  readonly url: string;
  readonly options: Pick<OpenOptions, "engine" | "migrate" | "postgres" | "apiKeys" | "encryption" | "redact" | "checkTarget">;
}

/** Where the store is and how it is reached, with the secrets that takes. */
export async function storeToOpen(configuration: Configuration, secrets: Secrets): Promise<StoreToOpen> {
  const { settings } = configuration;
  const where = (name: SettingName) => whereOf(configuration, name);
  const { "store.engine": engine, "store.migrate": migrate, "store.schema": schema, "store.connections": connections } = settings;
  const reference = settings["store.password"];
  // Read again for every connection, so that it may be changed while this runs.
  const password = reference === undefined ? undefined : () => secrets.at(reference).read();
  const urlOf = (name: SettingName, location: StoreLocation) => openedUrl(location, { where: where(name), settings, secrets });
  const listen = settings["store.listenUrl"];
  const pepper = settings["apiKeys.pepper"];
  const { "encryption.masterKeys": masterKeys, "store.ca": ca } = settings;
  // What is wrong with one is said now, and not with the first connection, job or caller.
  const [url, listenUrl] = await runAllChecks(
    () => urlOf("store.url", settings["store.url"]),
    async () => (listen === undefined ? undefined : urlOf("store.listenUrl", listen)),
    async () => reference && secrets.read(where("store.password"), reference),
    async () => masterKeys && checkMasterKeys(masterKeys, where("encryption.masterKeys"), secrets),
    async () => ca && checkAuthorities(ca, where("store.ca")),
    async () => pepper && checkPepper(pepper, where("apiKeys.pepper"), secrets),
  );
  return {
    url,
    options: {
      ...(engine === undefined ? {} : { engine }),
      ...(migrate === undefined ? {} : { migrate }),
      ...(pepper === undefined ? {} : { apiKeys: { pepper: () => secrets.at(pepper).read() } }),
      checkTarget: targetChecker(targetRules(settings)),
      ...(settings.redact === undefined ? {} : { redact: settings.redact }),
      ...(masterKeys === undefined ? {} : { encryption: { masterKeys: () => masterKeysAt(masterKeys, where("encryption.masterKeys"), secrets) } }),
      postgres: {
        startupWait: "forever",
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
function masterKeysAt(references: readonly Reference[], where: string, secrets: Secrets): Promise<readonly string[]> {
  return Promise.all(references.map((reference) => secrets.read(where, reference)));
}

async function checkMasterKeys(references: readonly Reference[], where: string, secrets: Secrets): Promise<void> {
  const keys = await masterKeysAt(references, where, secrets);
  const invalid = references.filter((_, location) => !isMasterKey(keys[location]));
  if (invalid.length === 0) return;
  const problems = invalid.map((reference) => ({
    where,
    what: `what ${nameOf(reference)} holds is not 32 bytes, as base64 or hex`,
    help: "openssl rand -base64 32 makes one",
  }));
  throw new ConfigError(problems);
}

async function checkPepper(reference: Reference, where: string, secrets: Secrets): Promise<void> {
  if (Buffer.byteLength(await secrets.read(where, reference)) >= MIN_PEPPER_BYTES) return;
  throw configError(where, `what is kept there is shorter than ${MIN_PEPPER_BYTES} bytes`, "openssl rand -base64 32 makes one");
}

interface UrlContext {
  readonly where: string;
  readonly settings: Configuration["settings"];
  readonly secrets: Secrets;
}

async function openedUrl(location: StoreLocation, { where, settings, secrets }: UrlContext): Promise<string> {
  if (location.kind === "memory") return "memory:";
  if (location.kind === "folder") return location.folder;
  const url = location.kind === "postgres" ? location.url : await secrets.read(where, location.reference);
  if (!/^postgres(ql)?:\/\//i.test(url)) throw configError(where, "what is kept there is no postgres:// URL", "keep one there");
  try {
    return withTls(url, { tls: settings["store.tls"], ca: settings["store.ca"] });
  } catch (error) {
    throw error instanceof InvalidSetting ? configError(where, error.what, error.help) : configError(where, reasonOf(error), "correct the URL");
  }
}

function configError(where: string, what: string, help: string): ConfigError {
  return new ConfigError([{ where, what, help }]);
}
