import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serverAccount } from "../../../packages/pawl/src/store/postgres/embedded/account.js";
import { pgbouncer } from "../../../scripts/servers.mjs";
import type { StartedServer } from "./global-setup.js";
import { isUp } from "./is-up.js";
import type { Server } from "./servers.js";

const port = 6432;

/** PgBouncer in transaction mode before a server, with few connections, so that they really are shared. */
export async function startPgBouncer(folder: string, behind: Server, { pool = 4, user = behind.direct.user } = {}): Promise<StartedServer | string> {
  if (!existsSync(pgbouncer)) return "PgBouncer is not installed (npm test installs it as root on Debian)";
  const account = serverAccount();
  mkdirSync(folder, { mode: 0o700 });
  const { host } = behind.direct;
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(
    config,
    `[databases]
* = host=${host} port=${behind.direct.port} user=${user}
[pgbouncer]
pool_mode = transaction
default_pool_size = ${pool}
max_client_conn = 500
listen_port = ${port}
unix_socket_dir = ${folder}
auth_type = trust
auth_file = ${join(folder, "users")}
logfile = ${join(folder, "log")}
`,
  );
  writeFileSync(join(folder, "users"), `"${user}" ""\n`);
  if (account) chownSync(folder, account.uid, account.gid);

  // It does not run as root.
  const child = spawn(pgbouncer, ["-q", config], { ...account, cwd: folder, stdio: "ignore", detached: true });
  const address = { host: folder, port, user };
  await isUp(child, { ...address, database: "postgres" });
  return {
    server: { ...address, version: behind.version, direct: behind.direct },
    pid: child.pid as number,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}
