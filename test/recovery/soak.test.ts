import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import pg from "pg";
import { expect, it } from "vitest";
import { open, task } from "../../packages/pawl/src/index.js";
import { eventually } from "../support/eventually.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const ROUND = 4_000;

describeOn("embedded18", () => {
  it("E5: after thirty thousand jobs, retries, cancels and waits, a process holds what it held after the first few thousand", async () => {
    await using database = await migratedDatabase();
    const quick = task("quick", () => "done");
    const fails = task("fails", { retry: ["1ms"] }, (_: unknown, { attempt }) => {
      if (attempt === 1) throw new Error("once");
    });
    const never = task("never", () => {});
    await using pawl = await open(database.url, { tasks: [quick, fails, never], maintenance: { pollInterval: "50ms" } });
    const worker = await pawl.work({ concurrency: 50, tasks: ["quick", "fails"] });
    const control = new pg.Client(database.config);
    await control.connect();

    const round = async () => {
      const jobs = await pawl.enqueueMany(quick, Array.from({ length: ROUND }));
      for (const job of jobs.slice(0, 50)) await job.result("60s");
      const retried = await pawl.enqueueMany(
        fails,
        Array.from({ length: 50 }, () => ({})),
      );
      for (const job of retried) await job.result("60s");
      const unwanted = await pawl.enqueueMany(never, Array.from({ length: 50 }));
      for (const job of unwanted) await pawl.jobs.cancel(job.id);
      await eventually("all of it is done", async () => {
        const { ready, running, scheduled } = await pawl.counts();
        return ready + running + scheduled === 0 && worker.status().leases === 0;
      });
    };
    const held = async () => {
      collect();
      await new Promise((resolve) => setImmediate(resolve));
      collect();
      const [{ connections }] = (
        await control.query(
          "select count(*)::int as connections from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
        )
      ).rows;
      const { heapUsed, external } = process.memoryUsage();
      return { memory: heapUsed + external, connections: connections as number, resources: process.getActiveResourcesInfo().length };
    };
    await round();
    await round();
    const before = await held();
    for (let n = 0; n < 6; n++) await round();
    const after = await held();
    expect((after.memory - before.memory) / (6 * ROUND), "bytes a job").toBeLessThan(100);
    // The pool's sixteen, one to listen, one to renew, and ours.
    expect(after.connections).toBeLessThanOrEqual(16 + 3);
    expect(after.resources - before.resources, "sockets and timers").toBeLessThanOrEqual(10);
    await control.end();
  });
});
