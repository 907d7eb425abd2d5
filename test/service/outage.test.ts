import { expect, test } from "vitest";
import { eventually } from "../support/eventually.js";
import { Wire } from "../support/proxy.js";
import { describeOn, migratedDatabase } from "../support/servers.js";
import { ServiceProcess, serve } from "./service.js";

describeOn("embedded18", () => {
  test("a service stays up while its Postgres is away: alive, not ready, 503 with a reason; and serves again when it is back", {
    timeout: 180_000,
  }, async () => {
    await using database = await migratedDatabase();
    const wire = await Wire.before(database.directConfig);
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
});
