import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { open, type Pawl, task } from "../../packages/pawl/src/index.js";
import { eventually } from "../support/eventually.js";
import { DebianCluster } from "../support/servers/debian-cluster.js";
import { debianMissing } from "../support/servers/debian-postgres.js";

const missing = debianMissing();
const PACE = { pollInterval: "50ms", reapInterval: "100ms", leaseDuration: "1s" } as const;
const WORK = { leaseDuration: "1s", renewInterval: "300ms", concurrency: 4 } as const;
const WAIT = "30s";

const quick = task("quick", () => "done");
const slow = task("slow", async () => {
  await new Promise((resolve) => setTimeout(resolve, 30));
  return "done";
});
const doomed = task("doomed", { retry: 0 }, () => {
  throw new Error("always");
});
const TASKS = [quick, slow, doomed];

async function query<R extends object>(url: string, text: string): Promise<readonly R[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows as R[];
  } finally {
    await client.end();
  }
}

async function stateOf(pawl: Pawl, id: string): Promise<string> {
  try {
    return (await pawl.jobs.get(id)).state;
  } catch (error) {
    if ((error as { code?: string }).code === "job_unknown") return "gone";
    throw error;
  }
}

async function drained(pawl: Pawl): Promise<void> {
  await eventually("all is finished", async () => {
    const { ready, running, scheduled } = await pawl.counts();
    return ready + running + scheduled === 0;
  });
}

// The commands are those of docs/operations.md, "Backup and recovery".
describe.skipIf(missing !== undefined)(`a backup${missing === undefined ? "" : ` (${missing})`}`, () => {
  it("made by pg_dump of a store at work is restored into an empty database, and the rest of its jobs run there", async () => {
    await using cluster = new DebianCluster();
    const server = await cluster.start();
    cluster.run("createdb", server, ["jobs"]);
    let dump: string;
    let known: readonly string[];
    {
      await using pawl = await open(cluster.url(server, "jobs"), { tasks: TASKS, maintenance: PACE });
      await pawl.work(WORK);
      const dead = await pawl.enqueue(doomed, undefined, { unique: "k" });
      await pawl.jobs.wait(dead, WAIT);
      const delayed = await pawl.enqueue(quick, undefined, { delay: "1s" });
      const jobs = await pawl.enqueueMany(slow, Array.from({ length: 400 }));
      await eventually("work is under way", async () => (await pawl.counts()).succeeded > 20);
      dump = cluster.run("pg_dump", server, ["--schema=pawl", "jobs"]);
      known = [dead, delayed, ...jobs].map(({ id }) => id);
      expect((await pawl.counts()).succeeded, "it was not over").toBeLessThan(400);
    }
    cluster.run("createdb", server, ["restored"]);
    cluster.run("psql", server, ["-q", "-v", "ON_ERROR_STOP=1", "-d", "restored", "-f", "-"], dump);
    const left = await query<{ n: number }>(cluster.url(server, "restored"), "select count(*)::int as n from pawl.any_ready");
    expect(left[0]?.n, "jobs left to run").toBeGreaterThan(0);

    await using restored = await open(cluster.url(server, "restored"), { tasks: TASKS, maintenance: PACE });
    await restored.work(WORK);
    await drained(restored);
    for (const id of known) expect(await restored.jobs.get(id), id).toMatchObject({ state: id === known[0] ? "dead" : "succeeded" });
    expect(await restored.counts()).toMatchObject({ succeeded: known.length - 1, dead: 1 });
    expect(await (await restored.enqueue(quick, undefined)).result(WAIT), "it is a store as any other").toBe("done");
  });

  it("made by pg_basebackup, and WAL replayed to a point in time: what was enqueued since is gone, what was finished since runs again", async () => {
    await using cluster = new DebianCluster();
    const archive = cluster.folder("archive");
    const server = await cluster.start({ archive_mode: "on", archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f` });
    cluster.run("createdb", server, ["jobs"]);
    const url = cluster.url(server, "jobs");
    const data = join(cluster.folder("backup"), "data");
    let ids: Record<"before" | "finishedSince" | "delayed" | "enqueuedSince", string>;
    let target: string;
    {
      await using pawl = await open(url, { tasks: TASKS, maintenance: PACE });
      const early = await pawl.enqueue(quick, undefined);
      cluster.run("pg_basebackup", server, ["-D", data, "-c", "fast", "-X", "none"]);
      await using worker = await pawl.work(WORK);
      expect(await early.result(WAIT)).toBe("done");
      await worker.stop();
      const finishedSince = await pawl.enqueue(quick, undefined);
      const delayed = await pawl.enqueue(quick, undefined, { delay: "2s" });
      const [now] = await query<{ now: string }>(url, "select clock_timestamp()::text as now");
      target = now?.now as string;
      const enqueuedSince = await pawl.enqueue(quick, undefined);
      await pawl.work(WORK);
      expect(await finishedSince.result(WAIT)).toBe("done");
      ids = { before: early.id, finishedSince: finishedSince.id, delayed: delayed.id, enqueuedSince: enqueuedSince.id };
    }
    const [wal] = await query<{ name: string }>(url, "select pg_walfile_name(pg_switch_wal()) as name");
    await eventually("the last of it is in the archive", async () => {
      const [archived] = await query<{ done: boolean }>(url, `select last_archived_wal >= '${wal?.name}' as done from pg_stat_archiver`);
      return archived?.done === true;
    });
    await server.stop();

    writeFileSync(join(data, "recovery.signal"), "");
    appendFileSync(join(data, "postgresql.auto.conf"), `restore_command = 'cp ${archive}/%f %p'\nrecovery_target_time = '${target}'\n`);
    const again = await cluster.start({ recovery_target_action: "promote" }, data);
    await eventually("it is at that time, and can be written", async () => {
      const [row] = await query<{ done: boolean }>(cluster.url(again, "jobs"), "select not pg_is_in_recovery() as done");
      return row?.done === true;
    });

    await using restored = await open(cluster.url(again, "jobs"), { tasks: TASKS, maintenance: PACE });
    const states = async () => {
      const found: Record<string, string> = {};
      for (const [name, id] of Object.entries(ids)) found[name] = await stateOf(restored, id);
      return found;
    };
    expect(await states()).toMatchObject({ before: "succeeded", finishedSince: "ready", enqueuedSince: "gone" });
    await restored.work(WORK);
    await drained(restored);
    expect(await states()).toEqual({ before: "succeeded", finishedSince: "succeeded", delayed: "succeeded", enqueuedSince: "gone" });
  });
});
