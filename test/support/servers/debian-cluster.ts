import { chmodSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { copyForDebian, type DebianServer, debianFolder, initialiseDebian, runDebian, startDebianOn } from "./debian-postgres.js";
import { urlOf } from "./servers.js";
import { watchdog } from "./watchdog.js";

/** Debian's Postgres with its programs, on data of a test's own that may be backed up, restored and thrown away. */
export class DebianCluster implements AsyncDisposable {
  readonly #root = mkdtempSync("/tmp/pawl-test-");
  readonly #guard = watchdog(this.#root);
  readonly #servers: DebianServer[] = [];
  #folders = 0;

  constructor() {
    chmodSync(this.#root, 0o711); // as root the servers are another user
  }

  /** A folder that the servers can write into. */
  folder(name: string): string {
    return debianFolder(join(this.#root, name));
  }

  /** A file of the test's for them, which only they can read. */
  copy(from: string, to: string): void {
    copyForDebian(from, to);
  }

  /** A server on new data, or on data that is there already. */
  async start(settings: Readonly<Record<string, string>> = {}, data?: string): Promise<DebianServer> {
    const home = join(this.#root, `server${this.#folders++}`);
    const server = await startDebianOn(data ?? initialiseDebian(home), data === undefined ? home : debianFolder(home), settings);
    this.#guard.watch(server.pid, home);
    this.#servers.push(server);
    return server;
  }

  /** One of the client programs, connected to that server. */
  run(program: string, { address }: DebianServer, args: readonly string[], input?: string): string {
    return runDebian(program, ["-h", address.host, "-p", String(address.port), "-U", address.user, ...args], this.#root, input);
  }

  url({ address }: DebianServer, database: string): string {
    return urlOf(address, database);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server.stop("SIGQUIT");
    await this.#guard.done();
  }
}
