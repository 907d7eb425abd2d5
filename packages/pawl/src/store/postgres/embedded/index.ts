import { existsSync } from "node:fs";
import { isPawlError, type PawlError, pawlError } from "../../../core/values/error.js";
import { atExit } from "../../../runtime/process/signals.js";
import { hangUp } from "../drivers/pg-hang-up.js";
import { loadPg } from "../drivers/pg-module.js";
import { serverAccount } from "./account.js";
import { findBinaries } from "./binaries.js";
import { discardEndpoint, type Endpoint, prepareEndpoint } from "./endpoint.js";
import { knownEndpoint, openFolder, rememberEndpoint } from "./folder.js";
import { checkData, DATABASE, initialise, USER } from "./initialise.js";
import { launch, type Settings, trimLog } from "./launch.js";
import { withLock, withLockAtExit } from "./lock.js";
import { joinMembers, leaveMembers, type Member } from "./members.js";
import { dismissPostmaster, findPostmaster, stopPostmaster, stuckStopEnder } from "./postmaster.js";
import { isAlive } from "./processes.js";
import type { Site } from "./site.js";
import { type Deadline, deadlineIn, isPast, pause, until } from "./wait.js";

export interface EmbeddedConnection {
  /** the folder of the unix socket, or 127.0.0.1 on Windows */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly password?: string;
}

/** A Postgres of our own in a folder, shared by all processes that open the folder. */
export interface EmbeddedServer {
  readonly connection: EmbeddedConnection;
  /** the postmaster */
  readonly pid: number;
  /** whether this call started the server, or found it running */
  readonly started: boolean;
  /** for example "18.4" */
  readonly version: string;
  /**
   * Starts the server again, at the same endpoint, if it died or cannot be reached. It happens by itself within
   * a second of its death; call this to wait for it, or to learn why it fails.
   */
  ensureRunning(): Promise<void>;
  /** Leaves. The last member out stops the server and waits for it. */
  release(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Postgres settings on top of ours. They hold for a server that this process starts. */
  readonly settings?: Settings;
  readonly startTimeoutMs?: number;
}

const START_TIMEOUT_MS = 60_000;
const WATCH_MS = 500;
const PROBE_TIMEOUT_MS = 5_000;
const PROBE_PAUSE_MS = 50;
/** what Postgres answers while it starts, stops or recovers */
const CANNOT_CONNECT_NOW = "57P03";

/** Can the native server run here? Installed, loadable, and with a user to run as. */
export function nativePostgres(): { ok: true } | { ok: false; reason: string } {
  try {
    findBinaries(serverAccount());
    return { ok: true };
  } catch (error) {
    if (!isPawlError(error, "embedded_unavailable")) throw error;
    return { ok: false, reason: String(error.details.reason) };
  }
}

export async function startEmbedded(path: string, options: EmbeddedOptions = {}): Promise<EmbeddedServer> {
  const folder = openFolder(path);
  const account = serverAccount(folder);
  const site: Site = { folder, account, binaries: findBinaries(account) };
  const timeoutMs = options.startTimeoutMs ?? START_TIMEOUT_MS;

  const locked = <T>(work: (deadline: Deadline) => Promise<T>) => withLock(folder, deadlineIn(timeoutMs), () => work(deadlineIn(timeoutMs)));
  const bringUpHere = (deadline: Deadline) => bringUp(site, options.settings ?? {}, deadline);

  let member: Member | undefined;
  // Whoever exits without leaving (a second Ctrl-C, an error nobody caught) leaves no server behind all the same.
  const stay = atExit(() => leaveAtExit(site, member));
  const joined = await locked(async (deadline) => {
    openFolder(folder.path); // again, now that nobody else can make it theirs
    const server = await bringUpHere(deadline);
    member = joinMembers(folder);
    return { server, member };
  }).catch((error) => {
    stay();
    throw error;
  });

  let current = joined.server;
  let healing: Promise<void> | undefined;
  let released: Promise<void> | undefined;

  const heal = async () => {
    current = await locked(bringUpHere);
  };
  const ensureRunning = () => {
    if (released) return Promise.reject(pawlError("closed", { what: "the embedded server" }));
    healing ??= heal().finally(() => {
      healing = undefined;
    });
    return healing;
  };
  const leave = async () => {
    clearInterval(watch);
    await healing?.catch(() => {});
    // Someone deleted the folder: its server notices within a minute and ends by itself.
    if (!existsSync(folder.members)) return;
    await locked(async () => {
      if (!leaveMembers(folder, joined.member)) return;
      await stopPostmaster(site);
      discardEndpoint(current.endpoint);
    });
  };
  const watch = setInterval(() => {
    trimLog(folder);
    // What hinders it is told to whoever calls ensureRunning; here the next round tries again.
    if (!isAlive(current.pid)) ensureRunning().catch(() => {});
  }, WATCH_MS).unref();

  return {
    get connection() {
      return connectionTo(current.endpoint);
    },
    get pid() {
      return current.pid;
    },
    get version() {
      return current.version;
    },
    started: joined.server.started,
    ensureRunning,
    release() {
      released ??= leave().finally(stay);
      return released;
    },
  };
}

/** `member` is undefined while it is still coming. What goes wrong here has nobody left to hear it; the next one adopts the server. */
function leaveAtExit(site: Site, member: Member | undefined): void {
  const { folder } = site;
  try {
    if (!existsSync(folder.path)) return;
    withLockAtExit(folder, () => {
      if (leaveMembers(folder, member)) dismissPostmaster(site);
    });
  } catch {
    // as said
  }
}

interface Running {
  readonly pid: number;
  readonly endpoint: Endpoint;
  readonly version: string;
  readonly started: boolean;
}

/** Finds the folder's server or starts one. Under the lock, so that of many who try at once one does it. */
async function bringUp(site: Site, settings: Settings, deadline: Deadline): Promise<Running> {
  checkData(site);
  return (await adopt(site, deadline)) ?? (await startAnew(site, settings, deadline));
}

/** A running server, whoever started it. One that is going down, or that nobody can reach, is first seen off. */
async function adopt(site: Site, deadline: Deadline): Promise<Running | undefined> {
  const { folder } = site;
  const endStuckStop = stuckStopEnder();
  const found = await until(() => {
    const server = findPostmaster(folder.data);
    if (!server || server.status === "ready") return { server };
    endStuckStop(server);
    return undefined;
  }, deadline);
  if (!found) throw failure(site, "a server runs in it, but was not ready in time");
  const endpoint = knownEndpoint(folder);
  if (found.server && endpoint) {
    const version = await probe(site, endpoint, deadline);
    if (version) return { pid: found.server.pid, endpoint, version, started: false };
  }
  await stopPostmaster(site);
  return undefined;
}

async function startAnew(site: Site, settings: Settings, deadline: Deadline): Promise<Running> {
  const { folder, account } = site;
  const endpoint = await prepareEndpoint(knownEndpoint(folder), account);
  rememberEndpoint(folder, endpoint);
  await initialise(site, endpoint);
  const pid = await launch(site, endpoint, settings, deadline);
  const version = await probe(site, endpoint, deadline);
  if (!version) throw failure(site, `it is ready, but nothing answers at ${endpoint.host}`);
  return { pid, endpoint, version, started: true };
}

/** The version of the server at the endpoint; undefined when nothing listens there. Waits while it recovers. */
async function probe(site: Site, endpoint: Endpoint, deadline: Deadline): Promise<string | undefined> {
  for (;;) {
    try {
      return await versionAt(endpoint);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ECONNREFUSED") return undefined;
      if (code !== CANNOT_CONNECT_NOW || isPast(deadline)) throw failure(site, message, error);
      await pause(PROBE_PAUSE_MS);
    }
  }
}

async function versionAt(endpoint: Endpoint): Promise<string | undefined> {
  const timeouts = { connectionTimeoutMillis: PROBE_TIMEOUT_MS, query_timeout: PROBE_TIMEOUT_MS };
  const { Client } = loadPg();
  const client = new Client({ ...connectionTo(endpoint), ...timeouts, ssl: false });
  client.on("error", () => {}); // a broken connection also rejects the calls below
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string }>("select current_setting('server_version') as version");
    return rows[0]?.version;
  } finally {
    // A server that no longer answers must not hold up whoever asks whether it does.
    await hangUp(client);
  }
}

function connectionTo({ host, port, password }: Endpoint): EmbeddedConnection {
  return { host, port, user: USER, database: DATABASE, ...(password ? { password } : {}) };
}

function failure({ folder }: Site, reason: string, cause?: unknown): PawlError {
  return pawlError("embedded_failed", { folder: folder.path, log: folder.log, reason }, cause);
}
