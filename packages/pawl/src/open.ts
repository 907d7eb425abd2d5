import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { pawlError } from "./core/values/error.js";
import {
  checkBoolean,
  checkDuration,
  checkFunction,
  checkKeys,
  checkObject,
  checkOneOf,
  checkSchemaName,
  checkWhole,
  invalid,
} from "./core/values/option.js";
import { type Pawl, type PawlOptions, SYSTEM, startPawl } from "./pawl.js";
import { certificateFaults } from "./runtime/io/certificates.js";
import type { SecureOptions } from "./runtime/io/http.js";
import { keepAlive } from "./runtime/process/keep-alive.js";
import { wallClock } from "./runtime/time/clock.js";
import { retryUntilUp } from "./runtime/time/retry-until-up.js";
import { attachService, type PawlService } from "./service-of.js";
import { memoryStore } from "./store/memory/index.js";
import type { Store } from "./store/port/index.js";
import type { OpenWait, PostgresOptions } from "./store/postgres/options.js";

export interface OpenOptions extends PawlOptions {
  /** whether to bring the database's schema up to date (default: yes); if not, one that is not is an error */
  readonly migrate?: boolean;
  /** of a folder: the embedded Postgres, or PGlite; left out: the first that can run here */
  readonly engine?: "native" | "pglite";
  /** hears what keeps it waiting: a server that is not up, a migration that moves many rows */
  readonly onWaiting?: (what: OpenWait) => void;
  /** of a service: an API key */
  readonly apiKey?: string;
  /** of a service at https://: what its certificate is checked against, and one of your own, as node:tls names them */
  readonly tls?: SecureOptions;
  /** how to talk to Postgres */
  readonly postgres?: Omit<PostgresOptions, "migrate" | "engine" | "onWaiting" | "now" | "clock">;
}

/**
 * Opens a store:
 * - `"./folder"`, `"/folder"`, `"file:folder"`: embedded, durable in that folder. It needs the package pawl-embedded;
 * - `"postgres://user@host/database"`: a Postgres of yours. It needs the package pg;
 * - `"https://host"`: a service that has one, with its `key`; workers pull their jobs from it. See docs/service.md;
 * - `"memory:"`: nothing survives the process; for tests.
 */
export async function open(url: string, options: OpenOptions = {}): Promise<Pawl> {
  checkKeys(checkObject("options", options), OPEN_KEYS);
  if (isService(url)) return openService(url, options);
  const location = storeLocationOf(url);
  const { migrate, engine, onWaiting, postgres, apiKey, tls, ...rest } = options;
  for (const [name, value] of Object.entries({ apiKey, tls }))
    if (value !== undefined) throw invalid(name, "it is for a service at http:// or https://");
  if (migrate !== undefined) checkBoolean("migrate", migrate);
  if (engine !== undefined) checkOneOf("engine", engine, ["native", "pglite"]);
  if (postgres !== undefined) checkPostgres(postgres);
  if (onWaiting !== undefined) checkFunction("onWaiting", onWaiting);
  const how = {
    ...postgres,
    ...(migrate === undefined ? {} : { migrate }),
    ...(engine === undefined ? {} : { engine }),
    ...(onWaiting === undefined ? {} : { onWaiting }),
  };
  // Waiting for a server that is not up must not end the process in silence.
  const release = keepAlive();
  try {
    const wait = { clock: SYSTEM.clock, patience: postgres?.startupWait, onWaiting };
    return await startPawl(await openStore(location, how), rest, SYSTEM, (attempt) => retryUntilUp(wait, attempt));
  } finally {
    release();
  }
}

function isService(url: unknown): url is string {
  return typeof url === "string" && /^https?:\/\//i.test(url) && URL.canParse(url);
}

const SERVICE_KEYS: ReadonlySet<string> = new Set<keyof OpenOptions>([
  "tasks",
  "allowUnknownTasks",
  "queueDefaults",
  "schedules",
  "tracing",
  "onWaiting",
  "apiKey",
  "tls",
]);

/** What is about the store itself is for the service to know. */
async function openService(url: string, options: OpenOptions): Promise<Pawl> {
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !SERVICE_KEYS.has(name)) throw invalid(name, "it is for who opens the store itself; this is a service");
  const address = new URL(url);
  // It would be in errors and logs: a key is an option, and TLS certificates are.
  if (address.username !== "" || address.password !== "") throw pawlError("store_url_invalid", { url: withoutSecrets(url) });
  const { apiKey, tls, tasks, allowUnknownTasks, queueDefaults, schedules, tracing, onWaiting } = options;
  if (apiKey !== undefined && (typeof apiKey !== "string" || !/^[\x21-\x7e]{1,512}$/.test(apiKey))) throw invalid("apiKey", "it is not an API key");
  if (tls !== undefined) checkTls(tls);
  if (onWaiting !== undefined) checkFunction("onWaiting", onWaiting);
  const serviceOptions = { apiKey, tls, tasks, allowUnknownTasks, queueDefaults, schedules, tracing, onWaiting };
  const { openRemote } = await import("./remote/pawl.js");
  const { withUnsupported } = await import("./remote/unsupported.js");
  const release = keepAlive();
  try {
    const remote = await openRemote(
      address,
      Object.fromEntries(Object.entries(serviceOptions).filter(([, value]) => value !== undefined)),
      SYSTEM.clock,
    );
    return attachService(withUnsupported<Pawl>(remote), withUnsupported<PawlService>(remote.service, "serviceOf(pawl)"));
  } finally {
    release();
  }
}

/** What is wrong would look like a service that cannot be reached, and be waited for. */
function checkTls(tls: SecureOptions): void {
  checkKeys(checkObject("tls", tls), TLS_KEYS, "tls.");
  const texts = Object.entries(tls).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (typeof value !== "string" && !Buffer.isBuffer(value)) throw invalid(`tls.${name}`, "it is neither a text nor a Buffer");
    return [[name, value.toString("utf8")]];
  });
  if ((tls.cert === undefined) !== (tls.key === undefined)) throw invalid("tls", "a certificate and its key are of use only together");
  const [fault] = certificateFaults(Object.fromEntries(texts), wallClock());
  if (fault !== undefined) throw invalid(`tls.${fault.of}`, `${fault.what}; ${fault.help}`);
}

const TLS_KEYS: ReadonlySet<string> = new Set<keyof SecureOptions>(["ca", "cert", "key"]);

type StoreLocation =
  | { readonly kind: "memory" }
  | { readonly kind: "folder"; readonly folder: string }
  | { readonly kind: "postgres"; readonly url: string };

/** What a URL means. A bare word is refused: it is as likely a forgotten scheme as a folder. */
export function storeLocationOf(url: unknown): StoreLocation {
  if (typeof url !== "string") throw pawlError("store_url_invalid", { url: String(url) });
  if (url === "memory:") return { kind: "memory" };
  if (/^postgres(ql)?:\/\//i.test(url)) return { kind: "postgres", url };
  if (/^file:\/\//i.test(url)) return { kind: "folder", folder: fileURLToPath(url) };
  if (/^file:./i.test(url)) return { kind: "folder", folder: resolve(url.slice("file:".length)) };
  if (/^(\.{1,2}$|\.{0,2}[/\\]|[a-z]:[/\\])/i.test(url) && !url.includes("\u0000")) return { kind: "folder", folder: resolve(url) };
  throw pawlError("store_url_invalid", { url: withoutSecrets(url) });
}

/** The driver and the embedded server are loaded only where they are used. */
async function openStore(location: StoreLocation, options: PostgresOptions): Promise<Store> {
  if (location.kind === "memory") return memoryStore();
  const { openPostgres } = await import("./store/postgres/open.js");
  return openPostgres(location.kind === "folder" ? { folder: location.folder } : { url: location.url }, options);
}

function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//…@");
}

const OPEN_KEYS = new Set<keyof OpenOptions>([
  "tasks",
  "allowUnknownTasks",
  "compileSchema",
  "checkTarget",
  "queueDefaults",
  "schedules",
  "app",
  "tracing",
  "maintenance",
  "keep",
  "apiKeys",
  "encryption",
  "redact",
  "migrate",
  "engine",
  "onWaiting",
  "postgres",
  "apiKey",
  "tls",
]) as ReadonlySet<string>;

type PostgresChoices = Required<NonNullable<OpenOptions["postgres"]>>;

const POSTGRES_CHECKS: { readonly [K in keyof PostgresChoices]: (option: string, value: unknown) => void } = {
  schema: checkSchemaName,
  listenUrl(option, value) {
    if (typeof value !== "string" || !/^postgres(ql)?:\/\//i.test(value)) throw invalid(option, "it is not a postgres:// URL");
  },
  password: checkFunction,
  prepare(option, value) {
    if (value !== false) checkOneOf(option, value, ["auto"]);
  },
  connections: (option, value) => checkWhole(option, value, 1, 10_000),
  statementTimeout: (option, value) => checkWhole(option, value, 1, DAY_MS),
  startupWait(option, value) {
    if (value !== "forever") checkDuration(option, value);
  },
};
const POSTGRES_KEYS: ReadonlySet<string> = new Set(Object.keys(POSTGRES_CHECKS));
/** ms */
const DAY_MS = 86_400_000;

function checkPostgres(postgres: object): void {
  checkKeys(checkObject("postgres", postgres), POSTGRES_KEYS, "postgres.");
  for (const [name, value] of Object.entries(postgres)) {
    if (value !== undefined) POSTGRES_CHECKS[name as keyof PostgresChoices](`postgres.${name}`, value);
  }
}
