import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { serverAccount } from "../../../packages/pawl/src/store/postgres/embedded/account.js";
import { debianPostgres } from "../../../scripts/servers.mjs";
import type { StartedServer } from "./global-setup.js";
import { isUp } from "./is-up.js";
import type { Address } from "./servers.js";

const user = "pawl";
const password = "pawl";

/** Why it cannot be had here; undefined where it can. */
export function debianMissing(): string | undefined {
  return existsSync(join(debianPostgres, "postgres")) ? undefined : "Debian's Postgres 15 is not installed (npm test installs it as root on Debian)";
}

/** One of its programs, as the user its servers run as. */
export function runDebian(program: string, args: readonly string[], cwd: string, input?: string): string {
  const options = { ...serverAccount(), cwd, encoding: "utf8", maxBuffer: 1 << 28, ...(input === undefined ? {} : { input }) } as const;
  return execFileSync(join(debianPostgres, program), args, options);
}

/** A folder that its servers can write into. */
export function debianFolder(folder: string): string {
  mkdirSync(folder, { mode: 0o700 });
  own(folder);
  return folder;
}

/** A copy that its servers own, as they ask of a private key. */
export function copyForDebian(from: string, to: string): void {
  copyFileSync(from, to);
  own(to);
}

function own(path: string): void {
  const account = serverAccount();
  if (account) chownSync(path, account.uid, account.gid);
}

/** The oldest Postgres Pawl supports, from Debian's packages, on data of our own: by its socket, and by TCP with a password. */
export async function startDebianPostgres(folder: string): Promise<StartedServer | string> {
  const missing = debianMissing();
  if (missing !== undefined) return missing;
  const data = initialiseDebian(folder);
  const { address, pid, stop } = await startDebianOn(data, folder);
  return { server: { ...address, version: "15", direct: address, tcp: { ...address, host: "127.0.0.1", password } }, pid, stop };
}

/** An empty cluster in a new folder; answers where its data is. */
export function initialiseDebian(folder: string): string {
  debianFolder(folder);
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password);
  own(passwordFile);
  const data = join(folder, "data");
  const auth = ["-U", user, "--auth-local=trust", "--auth-host=scram-sha-256", `--pwfile=${passwordFile}`];
  runDebian("initdb", ["-D", data, "-E", "UTF8", "--locale=C", "--no-sync", ...auth], folder);
  return data;
}

export interface DebianServer {
  readonly address: Address;
  readonly pid: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** A server on such data, with settings of its own; its socket is in the folder. */
export async function startDebianOn(data: string, folder: string, own: Readonly<Record<string, string>> = {}): Promise<DebianServer> {
  const port = await freePort();
  const settings = {
    unix_socket_directories: folder,
    listen_addresses: "127.0.0.1",
    port: String(port),
    max_connections: "200",
    timezone: "UTC",
    deadlock_timeout: "20ms",
    fsync: "off",
    ...own,
  };
  const switches = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = spawn(join(debianPostgres, "postgres"), ["-D", data, ...switches], {
    ...serverAccount(),
    cwd: folder,
    stdio: "ignore",
    detached: true,
  });
  const address = { host: folder, port, user };
  await isUp(child, { ...address, database: "postgres" });
  return {
    address,
    pid: child.pid as number,
    async stop(signal = "SIGINT") {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill(signal);
      await gone;
    },
  };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  return typeof address === "object" && address ? address.port : 0;
}
