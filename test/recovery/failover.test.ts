import pg from "pg";
import { describe, expect, it } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { eventually } from "../support/eventually.js";
import { ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { Standstill } from "../support/processes/standstill.js";
import { DebianCluster } from "../support/servers/debian-cluster.js";
import { type DebianServer, debianMissing } from "../support/servers/debian-postgres.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";

const missing = debianMissing();

async function ask<T>(cluster: DebianCluster, server: DebianServer, text: string): Promise<T> {
  const client = new pg.Client(cluster.url(server, "postgres"));
  await client.connect();
  try {
    return (await client.query<[T]>({ text, rowMode: "array" })).rows[0]?.[0] as T;
  } finally {
    await client.end();
  }
}

describe.skipIf(missing !== undefined)(`a failover${missing === undefined ? "" : ` (${missing})`}`, () => {
  it("to a synchronous standby, behind one address: read-only for a while, then work goes on, and nothing acknowledged is lost (C4, C14)", async () => {
    await using cluster = new DebianCluster();
    const primary = await cluster.start();
    cluster.run("createdb", primary, ["jobs"]);
    const data = `${cluster.folder("standby")}/data`;
    cluster.run("pg_basebackup", primary, ["-D", data, "-c", "fast", "-X", "stream", "-R"]);
    const standby = await cluster.start({}, data);
    await ask(cluster, primary, "alter system set synchronous_standby_names = '*'");
    await ask(cluster, primary, "select pg_reload_conf()");
    await eventually(
      "commits wait for the standby",
      async () => (await ask(cluster, primary, "select sync_state from pg_stat_replication")) === "sync",
    );

    const wire = await TcpProxy.before(primary.address);
    const url = wire.url("jobs");
    await using fixture = await ProcessFixture.open({ url });
    fixture.onDispose(() => wire.close());
    const workers = [
      await fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open),
      await fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open),
    ];
    await fixture.enqueueMany("counter", 150, { ms: 100 });
    await eventually("work is under way", () => fixture.handlerLog.lines("end").length > 10);

    await primary.stop("SIGQUIT");
    wire.forwardTo(standby.address);
    const refusal = await eventually("it cannot be written yet", () =>
      fixture.pawl.enqueue("counter").then(
        () => undefined,
        ({ code }: { code: string }) => (code === "store_read_only" ? code : undefined),
      ),
    );
    expect(refusal).toBe("store_read_only");
    using still = new Standstill();
    await ask(cluster, standby, "select pg_promote()");
    const promotedAt = Date.now();
    const resumed = await eventually("claims resume", () => fixture.handlerLog.lines("start").find(({ at }) => at > promotedAt));
    expect(resumed.at - promotedAt).toBeLessThanOrEqual(5_000 + still.ms);

    await fixture.reconnect();
    await eventually("enqueueing works", () => fixture.enqueue("counter").catch(() => undefined));
    await fixture.drained();
    for (const worker of workers) expect(worker.exit, worker.describe()).toBeUndefined();
    await fixture.check({ attempted: await fixture.storedIds() });
  });
});

it("a URL that names several hosts is refused at once, and says what to do instead (C14)", async () => {
  for (const url of ["postgres://app@one,two:5433/jobs", "postgres://app:a,b@one:5432,two/jobs", "postgres://app@/jobs?host=one,two"])
    await expect(open(url)).rejects.toMatchObject({ code: "store_url_many_hosts", message: expect.stringContaining("leads to the primary") });
  // A comma in a password names nobody.
  await expect(open("postgres://app:a,b@127.0.0.1:1/jobs", { postgres: { startupWait: 0 } })).rejects.toMatchObject({ code: "store_unreachable" });
});
