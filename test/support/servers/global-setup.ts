import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { transpile } from "../processes/transpiled.js";
import { startDebianPostgres } from "./debian-postgres.js";
import { startEmbeddedPostgres } from "./embedded-postgres.js";
import { startPgBouncer } from "./pgbouncer.js";
import type { Server, ServerProbe } from "./servers.js";
import { watchdog } from "./watchdog.js";

/** A server of this run. `stop` is for an orderly end; the watchdog is for all others. */
export interface StartedServer {
  readonly server: Server;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts every server that can run here, before the first test file, and makes what child processes run; tells the tests
 * by `inject("servers")` and `inject("built")`.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(process.getuid?.() === 0 ? "/tmp" : tmpdir(), "pawl-test-"));
  chmodSync(folder, 0o711); // as root the servers are another user
  const started: StartedServer[] = [];
  const guard = watchdog(folder);

  const probe = async (start: () => Promise<StartedServer | string>): Promise<ServerProbe> => {
    const result = await start();
    if (typeof result === "string") return { available: false, reason: result };
    started.push(result);
    guard.watch(result.pid, result.server.host);
    return { available: true, server: result.server };
  };
  const tearDown = async () => {
    // The pooler before the server behind it.
    for (const { stop } of started.reverse()) await stop();
    await guard.done();
  };

  try {
    const both = [
      probe(() => startEmbeddedPostgres(join(folder, "embedded18"))),
      probe(() => startDebianPostgres(join(folder, "debian15"))),
    ] as const;
    await Promise.allSettled(both); // so that one's failure finds the other started, and stops it
    const [embedded18, debian15] = await Promise.all(both);
    const pgbouncer = await probe(async () =>
      embedded18.available
        ? await startPgBouncer(join(folder, "pgbouncer"), embedded18.server)
        : `it needs the embedded Postgres: ${embedded18.reason}`,
    );
    const servers = { embedded18, debian15, pgbouncer };
    for (const [name, each] of Object.entries(servers)) {
      if (!each.available) console.log(`Suites on ${name} are skipped: ${each.reason}.`);
    }
    project.provide("servers", servers);
    project.provide("built", await transpile());
  } catch (error) {
    await tearDown();
    throw error;
  }
  return tearDown;
}
