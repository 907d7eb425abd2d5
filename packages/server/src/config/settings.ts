import { address, duration, listOf, network, oneOf, path, type SettingKind, secret, tableOf, text, whole, yesNo } from "./kinds.js";
import { storeLocation } from "./store-location.js";

export const COMPONENTS = ["api", "worker", "maintenance"] as const;
export type Component = (typeof COMPONENTS)[number];

/** "PAWL" on the keys of a telephone. */
export const DEFAULT_PORT = 7295;

interface Setting<T> {
  readonly kind: SettingKind<T>;
  readonly what: string;
}

function setting<T>(kind: SettingKind<T>, what: string): Setting<T> {
  return { kind, what };
}

/** Every setting, once: its name in the file, from which its flag and its variable follow, what it may hold, what it does. */
export const SETTINGS = {
  "store.url": setting(storeLocation, "a folder, a postgres:// URL without a password, or memory:; env:NAME and command:… for a whole URL"),
  "store.password": setting(secret, "of the URL's user"),
  "store.tls": setting(oneOf("verify", "off"), "to Postgres; verified unless it is on loopback or a socket"),
  "store.ca": setting(path, "certificates that Postgres is verified with, in place of the system's"),
  "store.listenUrl": setting(storeLocation, "a direct URL for LISTEN, where store leads to a pooler"),
  "store.schema": setting(text, "the schema of all tables"),
  "store.connections": setting(whole(1, 10_000), "most connections to Postgres"),
  "store.migrate": setting(yesNo, "whether to bring the schema up to date at start"),
  "store.engine": setting(oneOf("native", "pglite"), "of a folder; left out: the first that can run here"),
  components: setting(listOf(oneOf(...COMPONENTS)), "what this process does"),
  listen: setting(address, "where it answers"),
  auth: setting(oneOf("none", "keys"), "who may call: anybody on this machine, or whoever has a key"),
  trustedProxies: setting(listOf(network), "networks of proxies before it, whose X-Forwarded-For is believed"),
  "apiKeys.pepper": setting(secret, "with which keys are hashed; the same in every process"),
  "encryption.masterKeys": setting(listOf(secret), "master keys, the newest first, that what jobs hold is encrypted with; the same in every process"),
  redact: setting(listOf(text), "patterns of tasks whose inputs and outputs are not shown in listings; * is for all"),
  "audit.anchors": setting(path, "file that this process writes signed heads of the audit log to, every 5 minutes"),
  "audit.key": setting(secret, "Ed25519 private key they are signed with, in PEM"),
  "tls.cert": setting(path, "certificate of the API, with its chain"),
  "tls.key": setting(secret, "its private key"),
  "tls.clientCa": setting(path, "certificates that clients are verified with; one is then asked of every client"),
  tasks: setting(listOf(path), "files or folders whose modules export tasks; * and ** stand for names"),
  "worker.concurrency": setting(whole(1, 100_000), "handlers at a time"),
  "worker.queues": setting(listOf(text), "queues to serve; left out: all"),
  "worker.name": setting(text, "for people"),
  "worker.mostLost": setting(whole(1, 100_000), "handlers lost, long after their time, from which on the process is to be replaced"),
  "push.allow": setting(listOf(network), "networks of your own that targets may be in; left out: public addresses only"),
  "push.plain": setting(yesNo, "whether targets may be plain http:// and at any port"),
  "push.concurrency": setting(whole(1, 100_000), "deliveries at a time to targets that were registered"),
  "keep.jobs": setting(duration, "how long succeeded and cancelled jobs are kept"),
  "keep.dead": setting(duration, "how long dead jobs are kept"),
  "keep.series": setting(duration, "how long the time series of counts are kept"),
  "shutdown.delay": setting(duration, "between saying not ready and taking no more requests"),
  "shutdown.grace": setting(duration, "how long requests and handlers may finish"),
  "metrics.objectives": setting(tableOf(duration), "by task, how long from due to finished: mail.send=2s; * is for all others"),
  "metrics.tenants": setting(whole(0, 100), "how many tenants have numbers of their own"),
  "tracing.setup": setting(path, "a module of yours that sets up OpenTelemetry"),
  "tracing.roots": setting(yesNo, "whether attempts at jobs that carry no trace begin one"),
  "log.level": setting(oneOf("debug", "info", "warn", "error", "silent"), "the least that is logged"),
  "log.requests": setting(yesNo, "whether `pawl serve` logs a line for each request"),
  "log.format": setting(oneOf("json", "lines"), "of the log; left out: lines in a terminal"),
} as const satisfies Record<string, Setting<unknown>>;

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

export type ValueOf<N extends SettingName> = ReturnType<(typeof SETTINGS)[N]["kind"]["of"]>;

/** In the folder the process was started in. */
export const DEFAULT_STORE = "./data";

/** What holds when nobody says otherwise. What is not here has no value then, the store aside. */
export const SETTING_DEFAULTS = {
  components: COMPONENTS,
  auth: "none",
  listen: { host: "127.0.0.1", port: DEFAULT_PORT },
  "shutdown.delay": 0,
  "shutdown.grace": "30s",
  "log.level": "info",
  "log.requests": true,
} as const satisfies { readonly [N in SettingName]?: ValueOf<N> };

type Defaulted = keyof typeof SETTING_DEFAULTS | "store.url";

/** The value of every setting that has one. */
export type Settings = { readonly [N in Defaulted]: ValueOf<N> } & { readonly [N in Exclude<SettingName, Defaulted>]?: ValueOf<N> };

/** `tls.clientCa` is `--tls-client-ca`; the store's URL, being what people write most, is `--store`. */
export function flagOf(name: SettingName): string {
  return `--${nameParts(name).join("-")}`;
}

/** `tls.clientCa` is `PAWL_TLS_CLIENT_CA`. */
export function variableOf(name: SettingName): string {
  return `PAWL_${nameParts(name).join("_").toUpperCase()}`;
}

function nameParts(name: SettingName): readonly string[] {
  return (name === "store.url" ? "store" : name).replace(/[A-Z]/g, (letter) => `.${letter.toLowerCase()}`).split(".");
}
