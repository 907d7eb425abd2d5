import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { watchdog } from "../../test/support/servers/watchdog.js";
import type { Inspector } from "../contract/inspector.js";
import type { StoreLocation, SystemAbout } from "../contract/system.js";
import { inspectEmbedded, inspectPGlite } from "./inspect-folder.js";
import { inspectPostgres } from "./inspect-postgres.js";
import { inspectRedis } from "./inspect-redis.js";
import { type PostgresServer, startPostgres } from "./postgres.js";
import { redisSettings, startRedis } from "./redis.js";

/** An empty store for one turn, and a second connection to look into it. */
export interface EmptyStore {
  readonly location: StoreLocation;
  readonly inspect: Inspector;
  clear(): Promise<void>;
}

/** The servers of one run of the benchmark: private, in a temporary folder, gone with it however it ends. */
export class Servers {
  readonly about: Record<string, string> = {};
  readonly #folder: string;
  readonly #guard: ReturnType<typeof watchdog>;
  #postgres: Promise<PostgresServer> | undefined;
  #grounds = 0;

  constructor() {
    this.#folder = mkdtempSync(join(process.getuid?.() === 0 ? "/tmp" : tmpdir(), "pawl-bench-"));
    chmodSync(this.#folder, 0o711); // as root the server is another user
    this.#guard = watchdog(this.#folder);
  }

  async emptyStore(system: SystemAbout, options: { readonly countStatements: boolean }): Promise<EmptyStore> {
    if (system.store === "postgres") return this.#database(system, options);
    return system.store === "redis" ? this.#redis(system) : this.#ownFolder(system);
  }

  async stop(): Promise<void> {
    await (await this.#postgres)?.stop();
    await this.#guard.done();
  }

  async #database(system: SystemAbout, options: { readonly countStatements: boolean }): Promise<EmptyStore> {
    this.#postgres ??= this.#startPostgres();
    const server = await this.#postgres;
    const location = await server.create(options);
    const inspect = await inspectPostgres(location, system.name, server.pid);
    return {
      location,
      inspect,
      async clear() {
        await inspect.close();
        await server.drop(location);
      },
    };
  }

  async #startPostgres(): Promise<PostgresServer> {
    const server = await startPostgres(this.#folder);
    this.#guard.watch(server.pid, server.host);
    this.about.postgres = server.about;
    return server;
  }

  async #redis(system: SystemAbout): Promise<EmptyStore> {
    const server = await startRedis(join(this.#folder, `redis-${this.#grounds++}`));
    this.#guard.watch(server.pid, server.socket);
    const inspect = await inspectRedis(server, system.name);
    this.about.redis = `Redis ${inspect.version} on a unix socket; ${redisSettings}`;
    return {
      location: { kind: "redis", socket: server.socket },
      inspect,
      async clear() {
        inspect.close();
        await server.stop();
      },
    };
  }

  async #ownFolder(system: SystemAbout): Promise<EmptyStore> {
    const folder = join(this.#folder, `folder-${this.#grounds++}`);
    const inspect = system.name === "pawl-pglite" ? inspectPGlite(folder) : inspectEmbedded(folder);
    return {
      location: { kind: "folder", folder },
      inspect,
      async clear() {
        await inspect.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  }
}
