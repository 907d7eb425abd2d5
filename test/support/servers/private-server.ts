import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { startEmbedded } from "../../../packages/pawl/src/store/postgres/embedded/index.js";
import type { Address } from "./servers.js";
import { watchdog } from "./watchdog.js";

/** A Postgres of the test's own, which may be killed: the embedded one, which its launcher starts again by itself. */
export interface PrivateServer {
  readonly address: Address;
  readonly pid: number;
  database(): Promise<{ readonly name: string; readonly url: string } & AsyncDisposable>;
  /** Ends its postmaster by a signal, and waits until a new one accepts connections. */
  restart(signal: NodeJS.Signals): Promise<{ readonly acceptedAt: number }>;
  close(): Promise<void>;
}

export async function startPrivateServer(): Promise<PrivateServer> {
  const folder = mkdtempSync("/tmp/pawl-test-");
  chmodSync(folder, 0o711); // as root the server is another user
  const guard = watchdog(folder);
  const server = await startEmbedded(join(folder, "store"));
  const { host, port, user, database: main } = server.connection;
  guard.watch(server.pid, host);

  const administer = async (text: string) => {
    const client = new pg.Client({ host, port, user, database: main });
    client.on("error", () => {});
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  };

  return {
    address: { host, port, user },
    get pid() {
      return server.pid;
    },
    async database() {
      const name = `test_${randomBytes(8).toString("hex")}`;
      await administer(`create database ${name} template template0`);
      return {
        name,
        url: `postgres://${user}@/${name}?host=${encodeURIComponent(host)}&port=${port}`,
        [Symbol.asyncDispose]: () => administer(`drop database if exists ${name} with (force)`),
      };
    },
    async restart(signal) {
      const old = server.pid;
      process.kill(old, signal);
      for (;;) {
        const acceptedAt = await administer("select 1").then(
          () => Date.now(),
          () => undefined,
        );
        // Until the old one is gone it may still answer.
        if (acceptedAt !== undefined && server.pid !== old) {
          guard.watch(server.pid, host);
          return { acceptedAt };
        }
        await pause(10);
      }
    },
    async close() {
      await server.release();
      await guard.done();
    },
  };
}
