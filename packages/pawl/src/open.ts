import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { pawlError } from "./core/error.js";
import { type Pawl, type PawlOptions, startPawl } from "./pawl.js";
import { keepAlive } from "./runtime/alive.js";
import { checkKeys, checkObject, checkOneOf } from "./scheduler/check.js";
import { memoryStore } from "./store/memory/index.js";
import type { Store } from "./store/port.js";
import type { PostgresOptions } from "./store/postgres/open.js";

export interface OpenOptions extends PawlOptions {
  /** whether to bring the database's schema up to date (default: yes); if not, one that is not is an error */
  readonly migrate?: boolean;
  /** of a folder: the embedded Postgres, or PGlite; left out: the first that can run here */
  readonly engine?: "native" | "pglite";
  /** how to talk to Postgres */
  readonly postgres?: Omit<PostgresOptions, "migrate" | "engine" | "now" | "clock">;
}

/**
 * Opens a store:
 * - `"./folder"`, `"/folder"`, `"file:folder"`: embedded, durable in that folder;
 * - `"postgres://user@host/database"`: a Postgres of yours;
 * - `"memory:"`: nothing survives the process; for tests.
 */
export async function open(url: string, options: OpenOptions = {}): Promise<Pawl> {
  checkKeys(checkObject("options", options), OPEN_KEYS);
  const place = placeOf(url);
  if (options.postgres !== undefined) checkKeys(checkObject("postgres", options.postgres), POSTGRES_KEYS, "postgres.");
  if (options.engine !== undefined) checkOneOf("engine", options.engine, ["native", "pglite"]);
  const { migrate, engine, postgres, ...rest } = options;
  const how = { ...postgres, ...(migrate === undefined ? {} : { migrate }), ...(engine === undefined ? {} : { engine }) };
  // Waiting for a server that is not up must not end the process in silence.
  const release = keepAlive();
  try {
    return await startPawl(await openStore(place, how), rest);
  } finally {
    release();
  }
}

type Place = { readonly kind: "memory" } | { readonly kind: "folder"; readonly folder: string } | { readonly kind: "postgres"; readonly url: string };

/** What a URL means. A bare word is refused: it is as likely a forgotten scheme as a folder. */
export function placeOf(url: unknown): Place {
  if (typeof url !== "string") throw pawlError("store_url", { url: String(url) });
  if (url === "memory:") return { kind: "memory" };
  if (/^postgres(ql)?:\/\//i.test(url)) return { kind: "postgres", url };
  if (/^file:\/\//i.test(url)) return { kind: "folder", folder: fileURLToPath(url) };
  if (/^file:./i.test(url)) return { kind: "folder", folder: resolve(url.slice("file:".length)) };
  if (/^(\.{1,2}$|\.{0,2}[/\\]|[a-z]:[/\\])/i.test(url) && !url.includes("\u0000")) return { kind: "folder", folder: resolve(url) };
  throw pawlError("store_url", { url: withoutSecrets(url) });
}

/** The driver and the embedded server are loaded only where they are used. */
async function openStore(place: Place, options: PostgresOptions): Promise<Store> {
  if (place.kind === "memory") return memoryStore();
  const { openPostgres } = await import("./store/postgres/open.js");
  return openPostgres(place.kind === "folder" ? { folder: place.folder } : { url: place.url }, options);
}

function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//…@");
}

const OPEN_KEYS = new Set<keyof OpenOptions>(["tasks", "queues", "maintenance", "keep", "migrate", "engine", "postgres"]) as ReadonlySet<string>;
const POSTGRES_KEYS: ReadonlySet<string> = new Set(["schema", "listenUrl", "prepare", "connections", "statementTimeout", "patience"]);
