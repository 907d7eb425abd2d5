import pg from "pg";
import { expect, test } from "vitest";
import { describeOn } from "../support/servers.js";
import { Site, TENANTS } from "./site.js";

const TURNS = 500;

describeOn("pgbouncer", () => {
  test("two tenants' readers that share pooled connections never see each other's rows (S18)", { timeout: 120_000 }, async () => {
    await using site = await Site.open("pgbouncer");
    const own = await site.fill();
    let leaks = 0;
    let seen = 0;
    const read = async (tenant: (typeof TENANTS)[number]) => {
      const client = new pg.Client(site.database.config);
      client.on("error", () => {});
      await client.connect();
      for (let n = 0; n < TURNS; n++) {
        await client.query("begin");
        await client.query(`set local role ${site.schema}_tenant`);
        leaks += (await client.query(site.sql("select 1 from pawl.job limit 1"))).rowCount ?? 0;
        await client.query("select set_config('pawl.tenant', $1, true)", [tenant]);
        const { rows } = await client.query(site.sql("select tenant from pawl.job where id = any($1)"), [TENANTS.map((one) => own[one].jobs.ready)]);
        await client.query(n % 3 === 0 ? "rollback" : "commit");
        for (const row of rows) {
          if (row.tenant === tenant) seen += 1;
          else leaks += 1;
        }
      }
      await client.end();
    };
    await Promise.all(TENANTS.map(read));
    expect({ leaks, seen }).toEqual({ leaks: 0, seen: 2 * TURNS });
  });
});
