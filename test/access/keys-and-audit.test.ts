import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { open, type Pawl } from "../../packages/pawl/src/index.js";
import { attachService, parseApiKey, serviceOf } from "../../packages/pawl/src/service.js";
import { AnchorWriter } from "../../packages/server/src/audit/anchor-writer.js";
import { run } from "../../packages/server/src/cli/program.js";
import { eventually } from "../support/eventually.js";
import { Standstill } from "../support/processes/standstill.js";
import { type Database, describeOn, migratedDatabase, type ServerName } from "../support/servers/servers.js";

const KEYS = { pepper: "a pepper of sixteen bytes or more" };
const ENTRY = { tenant: "acme", actor: "key:a", action: "jobs.control", outcome: "allowed" } as const;
const PEM = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();

for (const server of ["embedded18", "debian15"] as const satisfies readonly ServerName[]) {
  describeOn(server, () => {
    let database: Database;
    let pawl: Pawl;
    let superuser: pg.Client;
    beforeEach(async () => {
      database = await migratedDatabase(server);
      pawl = await open(database.url, { maintenance: false, apiKeys: KEYS });
      superuser = new pg.Client(database.directConfig);
      await superuser.connect();
    });
    afterEach(async () => {
      await superuser.end();
      await pawl.close();
      await database.drop();
    });

    /** As one who has the database: its triggers are no tenant role. */
    async function tamper(text: string): Promise<void> {
      await superuser.query("set session_replication_role = replica");
      await superuser.query(text);
    }

    test("fifty writers at once make one line (S70)", async () => {
      const writers = Array.from({ length: 50 }, async (_, n) => {
        for (let turn = 0; turn < 4; turn++) await serviceOf(pawl).audit.record({ ...ENTRY, actor: `key:${n}` });
      });
      await Promise.all(writers);
      expect(await serviceOf(pawl).audit.verify()).toMatchObject({ ok: true, chains: 1, entries: 200, faults: [] });
    });

    test("a key is in no table, in no form that it could be read from (S2)", async () => {
      const { secret } = await serviceOf(pawl).apiKeys.create({ name: "ci", tenant: "acme", grants: [{ role: "viewer" }] });
      await serviceOf(pawl).apiKeys.verify(secret);
      const stored = parseApiKey(secret)?.secret as string;
      const { rows } = await superuser.query(
        "select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'pawl' and c.relkind in ('r', 'p')",
      );
      let seen = "";
      for (const { name } of rows) seen += JSON.stringify((await superuser.query(`select t::text from ${name} t`)).rows);
      expect(seen).toContain(parseApiKey(secret)?.id);
      expect(seen).not.toContain(stored);
    });

    test("every unique index on what tenants name has the tenant in it, so that no name of one is taken by another (S14)", async () => {
      const { rows } = await superuser.query<{ index: string; columns: string[] }>(`
        select i.indexrelid::regclass::text as index, array_agg(a.attname::text order by k.place) as columns
        from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
        cross join lateral unnest(i.indkey) with ordinality as k(number, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
        where n.nspname = 'pawl' and i.indisunique and not c.relispartition
          and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant')
        group by 1`);
      // What the store numbers itself is nobody's to choose.
      const chosen = rows.filter(({ columns }) => !["id", "seq"].some((made) => columns.includes(made)) || columns[0] === "tenant");
      expect(chosen.length).toBeGreaterThan(5);
      expect(chosen.filter(({ columns }) => columns[0] !== "tenant")).toEqual([]);
    });

    test("a job of another tenant takes no longer to be unknown than one that is not there (S13)", async () => {
      const { id } = await pawl.forTenant("umbrella").enqueue("secret", { a: 1 }, { delay: "1h" });
      const mine = pawl.forTenant("acme");
      const none = id.replace(/.{4}$/, id.endsWith("0000") ? "1111" : "0000");
      const times: Record<string, number[]> = { [id]: [], [none]: [] };
      for (let turn = 0; turn < 300; turn++) {
        for (const job of turn % 2 === 0 ? [id, none] : [none, id]) {
          const from = performance.now();
          await expect(mine.jobs.get(job)).rejects.toMatchObject({ code: "job_unknown" });
          times[job]?.push(performance.now() - from);
        }
      }
      const [theirs, nobodys] = Object.values(times).map((all) => all.sort((a, b) => a - b)[150] as number) as [number, number];
      expect(Math.abs(theirs - nobodys)).toBeLessThan(1);
    });

    test("a revocation holds in another process within 5 s (S4)", async () => {
      using standstill = new Standstill();
      const other = await open(database.url, { maintenance: false, apiKeys: KEYS });
      try {
        const { key, secret } = await serviceOf(pawl).apiKeys.create({ name: "ci", grants: [{ role: "viewer" }] });
        expect([(await serviceOf(pawl).apiKeys.verify(secret)).ok, (await serviceOf(other).apiKeys.verify(secret)).ok]).toEqual([true, true]);
        const from = performance.now();
        await serviceOf(pawl).apiKeys.revoke(key.id);
        await eventually("the other process refuses it", async () => !(await serviceOf(other).apiKeys.verify(secret)).ok);
        expect(performance.now() - from - standstill.ms).toBeLessThan(5_000);
      } finally {
        await other.close();
      }
    });

    describe("pawl audit verify (S71)", () => {
      let folder: string;
      beforeEach(async () => {
        folder = mkdtempSync(join(tmpdir(), "pawl-audit-"));
        writeFileSync(join(folder, "key.pem"), PEM);
        for (let n = 0; n < 10; n++) await serviceOf(pawl).audit.record(ENTRY);
        await new AnchorWriter(serviceOf(pawl).audit, { file: join(folder, "anchors"), key: PEM, onError: () => {} }).write();
      });
      afterEach(() => rmSync(folder, { recursive: true }));

      async function verify(anchored = true): Promise<{ exit: number; out: string }> {
        let out = "";
        const sink = { write: (text: string) => (out += text) };
        const flags = anchored ? ["--anchors", join(folder, "anchors"), "--key", join(folder, "key.pem")] : [];
        const exit = await run(["audit", "verify", ...flags], {
          io: { stdin: process.stdin, stdout: sink, stderr: { write: () => {} }, env: {} },
          signal: () => new AbortController().signal,
          openTarget: async () => attachService({ ...pawl, close: async () => {} }, serviceOf(pawl)) as unknown as Pawl,
        });
        return { exit, out };
      }

      test("says that a log is whole", async () => {
        expect(await verify()).toMatchObject({ exit: 0, out: expect.stringContaining("whole: 10 entries in 1 logs, held against 1 anchors") });
      });

      test("names an entry that was edited", async () => {
        await tamper("update pawl.audit set body = replace(body, 'key:a', 'key:b') where seq = 4");
        expect(await verify()).toEqual({ exit: 5, out: "edited broken_at=4 in the log of tenant acme\n" });
      });

      test("names the place where an entry was removed", async () => {
        await tamper("delete from pawl.audit where seq = 4");
        expect(await verify()).toEqual({ exit: 5, out: "missing broken_at=5 in the log of tenant acme\n" });
      });

      test("finds an end that was cut off, by the head", async () => {
        await tamper("delete from pawl.audit where seq > 7");
        expect(await verify(false)).toEqual({ exit: 5, out: "head_mismatch broken_at=8 in the log of tenant acme\n" });
      });

      test("finds an end that was cut off together with its head, by the anchors", async () => {
        await tamper("delete from pawl.audit where seq > 7");
        await tamper("update pawl.audit_head h set seq = a.seq, hash = a.hash, prev = a.prev from pawl.audit a where a.seq = 7");
        expect((await verify(false)).exit, "nothing else can").toBe(0);
        expect(await verify()).toEqual({ exit: 5, out: "anchor_mismatch broken_at=8 in the log of tenant acme\n" });
      });

      test("finds a log that a superuser wrote anew, by the anchors", async () => {
        await tamper("delete from pawl.audit; delete from pawl.audit_head");
        for (let n = 0; n < 12; n++) await serviceOf(pawl).audit.record({ ...ENTRY, actor: "key:b" });
        expect((await verify(false)).exit).toBe(0);
        expect(await verify()).toEqual({ exit: 5, out: "anchor_mismatch broken_at=10 in the log of tenant acme\n" });
      });

      test("finds anchors that were tampered with", async () => {
        const file = join(folder, "anchors");
        writeFileSync(file, readFileSync(file, "utf8").replace('"acme",10', '"acme",9'));
        expect(await verify()).toMatchObject({ exit: 5, out: expect.stringContaining("anchors_broken_at=1") });
      });
    });
  });
}
