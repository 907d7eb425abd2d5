import pg from "pg";
import { describe, expect, it } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { DebianCluster } from "../support/debian-cluster.js";
import { type DebianServer, debianMissing } from "../support/debian-postgres.js";
import { eventually } from "../support/eventually.js";
import { Wire } from "../support/proxy.js";
import { STEADY, Stage } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

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

    const wire = await Wire.before(primary.address);
    const url = wire.url("jobs");
    await using stage = await Stage.open({ url });
    stage.atEnd(() => wire.close());
    const workers = [
      await stage.worker({ ...STEADY.work, concurrency: 4 }, STEADY.open),
      await stage.worker({ ...STEADY.work, concurrency: 4 }, STEADY.open),
    ];
    await stage.enqueueMany("counter", 150, { ms: 100 });
    await eventually("work is under way", () => stage.sink.lines("end").length > 10);

    await primary.stop("SIGQUIT");
    wire.leadTo(standby.address);
    const refusal = await eventually("it cannot be written yet", () =>
      stage.pawl.enqueue("counter").then(
        () => undefined,
        ({ code }: { code: string }) => (code === "store_read_only" ? code : undefined),
      ),
    );
    expect(refusal).toBe("store_read_only");
    using still = new Standstill();
    await ask(cluster, standby, "select pg_promote()");
    const promotedAt = Date.now();
    const resumed = await eventually("claims resume", () => stage.sink.lines("start").find(({ at }) => at > promotedAt));
    expect(resumed.at - promotedAt).toBeLessThanOrEqual(5_000 + still.ms);

    await stage.reconnect();
    await eventually("enqueueing works", () => stage.enqueue("counter").catch(() => undefined));
    await stage.drained();
    for (const worker of workers) expect(worker.exit, worker.describe()).toBeUndefined();
    await stage.check({ attempted: await stage.everyId() });
  });
});

it("a URL that names several hosts is refused at once, and says what to do instead (C14)", async () => {
  for (const url of ["postgres://app@one,two:5433/jobs", "postgres://app:a,b@one:5432,two/jobs", "postgres://app@/jobs?host=one,two"])
    await expect(open(url)).rejects.toMatchObject({ code: "store_hosts", message: expect.stringContaining("leads to the primary") });
  // A comma in a password names nobody.
  await expect(open("postgres://app:a,b@127.0.0.1:1/jobs", { postgres: { patience: 0 } })).rejects.toMatchObject({ code: "store_unreachable" });
});
