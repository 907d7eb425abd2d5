import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "pawl";
import { serviceOf } from "pawl/service";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess, serve } from "./service.js";

const PEPPER = "a pepper of more than sixteen bytes";

describeOn("embedded18", () => {
  test("a service stays up while its Postgres is away: alive, not ready, 503 with a reason; and serves again when it is back", {
    timeout: 180_000,
  }, async () => {
    await using database = await migratedDatabase();
    const wire = await TcpProxy.before(database.directConfig);
    try {
      await using service = serve(wire.url(database.name));
      const address = await service.up();
      const statusOf = async (path: string) => (await fetch(address + path)).status;
      const before = await ServiceProcess.enqueue(address, "nobody.has", {});
      expect(await statusOf("/readyz")).toBe(200);

      await wire.refuse();
      await eventually("not ready", async () => (await statusOf("/readyz")) === 503);
      expect(await statusOf("/livez")).toBe(200);
      const refused = await fetch(`${address}/v1/jobs/${before}`);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await refused.json()).toMatchObject({ code: "store_unreachable" });

      await wire.accept();
      await eventually("ready again", async () => (await statusOf("/readyz")) === 200);
      expect(await statusOf(`/v1/jobs/${before}`)).toBe(200);
      await ServiceProcess.enqueue(address, "nobody.has", {});
      service.signal("SIGTERM");
      expect(await service.exit(), service.lines.join("\n")).toBe(0);
    } finally {
      await wire.close();
    }
  });

  test("its metrics are answered while Postgres is away, to a key that it knows and to no other", { timeout: 180_000 }, async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const pepper = join(folder.path, "pepper");
    writeFileSync(pepper, PEPPER);
    await using database = await migratedDatabase();
    const wire = await TcpProxy.before(database.directConfig);
    try {
      await using service = serve(wire.url(database.name), ["--auth", "keys", "--api-keys-pepper", `file:${pepper}`]);
      const address = await service.up();
      await using pawl = await open(database.url, { apiKeys: { pepper: PEPPER }, maintenance: false });
      const [usedKey, unseen] = await Promise.all(
        ["known", "unseen"].map((name) => serviceOf(pawl).apiKeys.create({ name, grants: [{ role: "viewer" }] })),
      );
      const get = (path: string, key = usedKey?.secret) => fetch(address + path, { headers: { authorization: `Bearer ${key}` } });
      const storeUp = async () => /^pawl_store_up (\d)$/m.exec(await (await get("/metrics")).text())?.[1];
      expect(await storeUp()).toBe("1");

      await wire.refuse();
      await eventually("the metrics say so", async () => (await storeUp()) === "0");
      const [metrics, other, jobs] = await Promise.all([get("/metrics"), get("/metrics", unseen?.secret), get("/v1/jobs")]);
      expect([metrics.status, other.status, jobs.status]).toEqual([200, 503, 503]);
      expect(await metrics.text()).toContain("pawl_store_errors_total");

      await wire.accept();
      await eventually("the metrics say so", async () => (await storeUp()) === "1");
      expect((await get("/metrics", unseen?.secret)).status).toBe(200);
    } finally {
      await wire.close();
    }
  });
});
