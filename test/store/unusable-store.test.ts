import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open, task } from "pawl";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { describeOn, migratedDatabase, serverFor, urlOf } from "../support/servers/servers.js";

const echo = task("echo", (input: unknown) => input);
const QUICK = { tasks: [echo], maintenance: false, postgres: { startupWait: 0 } } as const;

describe("a store that cannot be used is a coded error that says what to do", () => {
  test("a server that is not there", async () => {
    await expect(open("postgres://pawl@127.0.0.1:1/pawl", QUICK)).rejects.toMatchObject({
      code: "store_unreachable",
      message: expect.stringContaining("127.0.0.1:1"),
    });
  });

  test("a host that does not exist", async () => {
    await expect(open("postgres://pawl@no-such-host.invalid/pawl", QUICK)).rejects.toMatchObject({ code: "store_unreachable" });
  });

  test("an error never shows the password", async () => {
    const error = await open("postgres://pawl:sesame@127.0.0.1:1/pawl", QUICK).catch((thrown: unknown) => thrown);
    expect(String(error)).not.toContain("sesame");
  });
});

describeOn("debian15", () => {
  const probe = serverFor("debian15");
  const tcp = probe.available ? probe.server.tcp : undefined;

  test("a wrong password", async () => {
    if (tcp === undefined) throw new Error("no TCP address");
    await expect(open(urlOf({ ...tcp, password: "wrong" }, "postgres"), QUICK)).rejects.toMatchObject({ code: "store_denied" });
  });

  test("a database that does not exist", async () => {
    if (tcp === undefined) throw new Error("no TCP address");
    await expect(open(urlOf(tcp, "nowhere"), QUICK)).rejects.toMatchObject({
      code: "store_unreachable",
      message: expect.stringContaining("nowhere"),
    });
  });
});

describeOn("embedded18", () => {
  test("a read-only database: nothing is stored, and it works again when it can be written", async () => {
    await using database = await migratedDatabase();
    await using pawl = await open(database.url, QUICK);
    await administer(database.directUrl, `alter database ${database.name} set default_transaction_read_only = on`);
    await administer(
      database.directUrl,
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await expect(pawl.enqueue(echo, 1)).rejects.toMatchObject({ code: expect.stringMatching(/^(store_read_only|enqueue_uncertain)$/) });
    await expect(pawl.enqueue(echo, 2)).rejects.toMatchObject({ code: "store_read_only" });
    await administer(urlOfPostgres(), `alter database ${database.name} reset default_transaction_read_only`);
    await administer(
      database.directUrl,
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await pawl.enqueue(echo, 3).catch(() => pawl.enqueue(echo, 3));
    const { items: jobs } = await pawl.jobs.list();
    expect(new Set(jobs.map(({ input }) => input))).toEqual(new Set([3]));
  });

  // A small file system of its own needs root; a disk that is really full would disturb everyone else on the machine.
  test.skipIf(process.getuid?.() !== 0)("a full disk: no part of the batch is stored, and nothing stored before is lost", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-small-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m,mode=0777", "tmpfs", folder]);
    try {
      mkdirSync(join(folder, "space"));
      chownSync(join(folder, "space"), 65534, 65534);
      await using database = await migratedDatabase();
      await using pawl = await open(database.url, QUICK);
      await pawl.enqueue(echo, "before");
      const tablespace = `small_${database.name}`;
      await administer(database.directUrl, `create tablespace ${tablespace} location '${join(folder, "space")}'`);
      try {
        const { rows } = await administer(
          database.directUrl,
          "select min(c.relname) as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'pawl.job'::regclass",
        );
        await administer(database.directUrl, `alter table pawl.${rows[0]?.name} set tablespace ${tablespace}`);
        const large = "x".repeat(1_500);
        const batch = Array.from({ length: 1_000 }, (_, i) => `${i}${large}`);
        await expect(pawl.enqueueMany(echo, batch)).rejects.toMatchObject({ code: "store_full" });
        const { items: jobs } = await pawl.jobs.list();
        expect(jobs.map(({ input }) => input)).toEqual(["before"]);
        await administer(database.directUrl, `alter table pawl.${rows[0]?.name} set tablespace pg_default`);
        await pawl.enqueueMany(echo, batch);
        expect((await pawl.counts()).ready).toBe(1_001);
      } finally {
        await pawl.close();
        await database.drop();
        await administer(urlOfPostgres(), `drop tablespace if exists ${tablespace}`);
      }
    } finally {
      execFileSync("umount", [folder]);
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

function urlOfPostgres(): string {
  const probe = serverFor("embedded18");
  if (!probe.available) throw new Error(probe.reason);
  return urlOf(probe.server, "postgres");
}

async function administer(url: string, text: string): Promise<{ rows: Record<string, unknown>[] }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}
