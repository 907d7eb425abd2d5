import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { serverAccount } from "../../packages/pawl/src/store/postgres/embedded/account.js";
import { debianPostgres } from "../../scripts/servers.mjs";
import type { Started } from "./global-setup.js";
import { isUp } from "./is-up.js";

const user = "pawl";
const password = "pawl";

/** The oldest Postgres Pawl supports, from Debian's packages, on data of our own: by its socket, and by TCP with a password. */
export async function startDebianPostgres(folder: string): Promise<Started | string> {
  if (!existsSync(join(debianPostgres, "postgres"))) {
    return "Debian's Postgres 15 is not installed (npm test installs it as root on Debian)";
  }
  const account = serverAccount();
  mkdirSync(folder, { mode: 0o700 });
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password);
  if (account) for (const path of [folder, passwordFile]) chownSync(path, account.uid, account.gid);

  const data = join(folder, "data");
  const auth = ["-U", user, "--auth-local=trust", "--auth-host=scram-sha-256", `--pwfile=${passwordFile}`];
  execFileSync(join(debianPostgres, "initdb"), ["-D", data, "-E", "UTF8", "--locale=C", "--no-sync", ...auth], {
    ...account,
    stdio: "pipe",
    cwd: folder,
  });

  const port = await freePort();
  const settings = {
    unix_socket_directories: folder,
    listen_addresses: "127.0.0.1",
    port: String(port),
    max_connections: "200",
    timezone: "UTC",
    deadlock_timeout: "20ms",
    fsync: "off",
  };
  const switches = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = spawn(join(debianPostgres, "postgres"), ["-D", data, ...switches], { ...account, cwd: folder, stdio: "ignore", detached: true });
  const address = { host: folder, port, user };
  await isUp(child, { ...address, database: "postgres" });
  return {
    server: { ...address, version: "15", direct: address, tcp: { host: "127.0.0.1", port, user, password } },
    pid: child.pid as number,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGINT");
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
