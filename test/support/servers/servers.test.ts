import pg from "pg";
import { expect, it } from "vitest";
import { describeOn, freshDatabase, type ServerName, serverFor, urlOf } from "./servers.js";

const expected = { embedded18: "18", debian15: "15", pgbouncer: "18" };
const facts = `select current_database() as name, current_setting('server_version') as version, current_setting('deadlock_timeout') as patience`;

for (const name of Object.keys(expected) as ServerName[]) {
  describeOn(name, () => {
    it("gives a fresh database by url, and takes it back while someone is connected", async () => {
      const database = await freshDatabase(name);
      const client = new pg.Client(database.url);
      const told = new Promise((resolve) => client.on("error", resolve));
      await client.connect();
      const { rows } = await client.query(facts);
      expect(rows).toEqual([{ name: database.name, version: expect.stringMatching(`^${expected[name]}`), patience: "20ms" }]);
      await database.drop();
      if (name !== "pgbouncer") await told;
      await client.end();
    });
  });
}

describeOn("pgbouncer", () => {
  it("shares few connections between many clients", async () => {
    await using database = await freshDatabase("pgbouncer");
    const clients = Array.from({ length: 8 }, () => new pg.Client(database.config));
    await Promise.all(clients.map((client) => client.connect()));
    const backends = await Promise.all(clients.map((client) => client.query("select pg_backend_pid() as pid, pg_sleep(0.05)")));
    expect(new Set(backends.map(({ rows }) => rows[0].pid)).size).toBeLessThanOrEqual(4);
    await Promise.all(clients.map((client) => client.end()));
  });
});

describeOn("debian15", () => {
  it("asks for a password on TCP", async () => {
    const probe = serverFor("debian15");
    if (!probe.available || !probe.server.tcp) throw new Error("no TCP");
    const good = new pg.Client(urlOf(probe.server.tcp, "postgres"));
    await good.connect();
    await good.end();
    const bad = new pg.Client(urlOf({ ...probe.server.tcp, password: "wrong" }, "postgres"));
    await expect(bad.connect()).rejects.toMatchObject({ code: "28P01" });
  });
});
