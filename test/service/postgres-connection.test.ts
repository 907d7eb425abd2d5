import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, type Pawl, task } from "../../packages/pawl/src/index.js";
import { readConfiguration } from "../../packages/server/src/config/read.js";
import { storeToOpen } from "../../packages/server/src/run/open-store.js";
import { Secrets } from "../../packages/server/src/secrets/secrets.js";
import { eventually } from "../support/eventually.js";
import { DebianCluster } from "../support/servers/debian-cluster.js";
import type { DebianServer } from "../support/servers/debian-postgres.js";
import { describeOn } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder.path, stdio: "pipe" });
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/** No name of loopback as the service knows them, though it leads there. */
const ELSEWHERE = "127.1";
const OTHER_NAME = "127.0.1";

describeOn("debian15", () => {
  let cluster: DebianCluster;
  let server: DebianServer;
  let superuser: pg.Client;

  beforeAll(async () => {
    mkdirSync(folder.path, { recursive: true });
    for (const name of ["ours", "theirs"]) openssl("req", "-x509", ...KEY, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.pem`);
    openssl("req", ...KEY, "-subj", "/CN=db", "-keyout", "server.key", "-out", "server.csr");
    writeFileSync(at("server.ext"), `subjectAltName=DNS:${ELSEWHERE}\n`);
    openssl(
      "x509",
      "-req",
      "-in",
      "server.csr",
      "-CA",
      "ours.pem",
      "-CAkey",
      "ours.key",
      "-CAcreateserial",
      "-extfile",
      "server.ext",
      "-out",
      "server.pem",
    );
    cluster = new DebianCluster();
    const own = cluster.folder("tls");
    for (const name of ["server.key", "server.pem"]) {
      cluster.copy(at(name), join(own, name));
      chmodSync(join(own, name), 0o600);
    }
    server = await cluster.start({ ssl: "on", ssl_cert_file: join(own, "server.pem"), ssl_key_file: join(own, "server.key") });
    const { host, port, user } = server.address;
    superuser = new pg.Client({ host, port, user, database: "postgres" });
    await superuser.connect();
    writeFileSync(at("password"), "pawl\n");
  });
  afterAll(async () => {
    await superuser.end();
    await cluster[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  /** Opens the store as the service would, but without its patience. */
  async function opened(flags: Readonly<Record<string, unknown>>, more: Parameters<typeof open>[1] = {}): Promise<Pawl> {
    const { port } = server.address;
    const flagValues = { "store.url": `postgres://pawl@${ELSEWHERE}:${port}/postgres`, "store.password": "file:password", ...flags };
    const configuration = await readConfiguration({ flags: flagValues, env: {}, folder: folder.path });
    const { url, options } = await storeToOpen(configuration, new Secrets({}));
    return open(url, { ...options, maintenance: false, ...more, postgres: { ...options.postgres, startupWait: 1 } });
  }
  const urlAt = (host: string, query = "", on = server) => `postgres://pawl@${host}:${on.address.port}/postgres${query}`;

  test("S53: a Postgres elsewhere is spoken to over TLS alone, if its certificate is of the authority that was named", async () => {
    const pawl = await opened({ "store.ca": "ours.pem" });
    await pawl.forTenant("acme").jobs.list();
    const { rows } = await superuser.query<{ ssl: boolean }>(
      "select s.ssl from pg_stat_ssl s join pg_stat_activity a using (pid) where a.application_name like 'pawl%'",
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.every(({ ssl }) => ssl)).toBe(true);
    await pawl.close();
  });

  test.each([
    ["of an authority that nobody named", () => ({}), /certificate|signature/i],
    ["of another authority", () => ({ "store.ca": "theirs.pem" }), /certificate|signature/i],
    ["for another name", () => ({ "store.ca": "ours.pem", "store.url": urlAt(OTHER_NAME) }), /altnames|does not match/i],
  ])("S53: one that shows a certificate %s is not spoken to", async (_, flags, says) => {
    await expect(opened(flags())).rejects.toMatchObject({ code: "store_unreachable", message: expect.stringMatching(says) });
  });

  test("S53: one that has no TLS is not spoken to, and a URL that would have it so is refused before", async () => {
    await expect(opened({ "store.url": urlAt(ELSEWHERE, "?sslmode=disable") })).rejects.toThrow(/verifies nobody/);
    const plain = await cluster.start();
    await expect(opened({ "store.ca": "ours.pem", "store.url": urlAt(ELSEWHERE, "", plain) })).rejects.toMatchObject({
      message: expect.stringMatching(/does not support SSL/),
    });
  });

  test("the password may change while it runs: what was connected is replaced, and no job is lost", async () => {
    const ran: number[] = [];
    const note = task<number, void>("note", async (n) => {
      ran.push(n);
    });
    const pawl = await opened({ "store.url": urlAt("127.0.0.1") }, { tasks: [note] });
    const worker = await pawl.work({ concurrency: 5 });
    const enqueue = (from: number) =>
      pawl.enqueueMany(
        note,
        [...Array(20).keys()].map((n) => from + n),
      );
    await enqueue(0);
    await superuser.query("alter role pawl password 'another'");
    writeFileSync(at("password"), "another\n");
    await superuser.query("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = 'pawl'");
    await eventually("it is connected again", () =>
      enqueue(20).then(
        () => true,
        () => false,
      ),
    );
    await eventually(
      () => `all have succeeded; ${ran.length} ran`,
      async () => (await pawl.jobs.list({ state: "succeeded" }, { limit: 100 })).items.length === 40,
    );
    expect(new Set(ran)).toEqual(new Set(Array(40).keys()));
    await worker.stop();
    await pawl.close();
    await superuser.query("alter role pawl password 'pawl'");
    writeFileSync(at("password"), "pawl\n");
  });
});
