import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Account } from "./account.js";

/** Where the server listens: a socket in a private folder, or on Windows a local port with a password. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly password?: string;
}

/** The last endpoint again wherever possible, so that pools which knew the server reconnect to its successor. */
export async function prepareEndpoint(last: Endpoint | undefined, account: Account | undefined, platform = process.platform): Promise<Endpoint> {
  if (platform === "win32") {
    const port = (last && (await freePort(last.port))) ?? (await freePort(0)) ?? 0;
    return { host: "127.0.0.1", port, password: last?.password ?? randomBytes(24).toString("hex") };
  }
  return { host: socketFolder(last?.host, account), port: 5432 };
}

export function endpointSettings(endpoint: Endpoint, platform = process.platform): Record<string, string> {
  if (platform === "win32") return { listen_addresses: endpoint.host, port: String(endpoint.port) };
  return {
    listen_addresses: "",
    port: String(endpoint.port),
    unix_socket_directories: endpoint.host,
    unix_socket_permissions: "0700",
  };
}

export function discardEndpoint(endpoint: Endpoint): void {
  if (process.platform === "win32") return;
  clearSocket(endpoint.host);
  try {
    fs.rmdirSync(endpoint.host);
  } catch {
    // gone already, or someone keeps something in it
  }
}

/**
 * A socket's whole path has room for about 100 bytes, so it cannot lie in the user's folder, which may be deep. Its
 * name is random and kept in the record: a guessable one in a shared place could be taken by someone else.
 */
function socketFolder(last: string | undefined, account: Account | undefined): string {
  if (last && isUsable(last, account)) {
    clearSocket(last);
    return last;
  }
  // As root the server is another user, who may not get into our private temporary folder.
  const parent = account || tmpdir().length > 70 ? "/tmp" : tmpdir();
  const path = fs.mkdtempSync(join(parent, "pawl-"));
  if (account) fs.chownSync(path, account.uid, account.gid);
  return path;
}

function isUsable(path: string, account: Account | undefined): boolean {
  try {
    fs.mkdirSync(path, { mode: 0o700 });
    if (account) fs.chownSync(path, account.uid, account.gid);
    return true;
  } catch {
    const stat = fs.lstatSync(path, { throwIfNoEntry: false });
    const owner = account?.uid ?? process.getuid?.();
    return stat?.isDirectory() === true && stat.uid === owner && (stat.mode & 0o077) === 0;
  }
}

/** What a killed server left: Postgres would take it for alive if another process has its pid by now. */
function clearSocket(folder: string): void {
  for (const name of [".s.PGSQL.5432", ".s.PGSQL.5432.lock"]) fs.rmSync(join(folder, name), { force: true });
}

function freePort(wanted: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(undefined));
    probe.listen(wanted, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" ? address?.port : undefined));
    });
  });
}
