import { appendFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { dutiesOf } from "../../../packages/pawl/conformance/duties.js";
import { open } from "../../../packages/pawl/src/index.js";
import { openDb } from "../../../packages/pawl/src/store/postgres/connection/db.js";
import { pgDriver } from "../../../packages/pawl/src/store/postgres/drivers/pg.js";
import { openPostgres } from "../../../packages/pawl/src/store/postgres/open.js";
import { migrate, readMigrations } from "../../../packages/pawl/src/store/postgres/schema/migrate.js";
import type { MaintenanceOrder } from "./maintenance-process.js";

/** A process that prunes, purges or migrates, and may be killed at any moment. */
const { url, prune, purge, migrations } = JSON.parse(process.argv[2] as string) as MaintenanceOrder;
process.on("disconnect", () => process.exit(9));
process.channel?.unref();

if (prune !== undefined) {
  const { now, archive, ...rules } = prune;
  const store = await openPostgres({ url }, { now: () => now, migrate: false });
  await dutiesOf(store).prune({
    ...rules,
    async exportFinished(batch) {
      appendFileSync(archive, batch.map(({ job }) => `${job.id}\n`).join(""));
    },
  });
  await store.close();
}
if (purge !== undefined) {
  const pawl = await open(url, { maintenance: false });
  await pawl.tenants.purge(purge);
  await pawl.close();
}
if (migrations !== undefined) {
  const driver = pgDriver({ config: { connectionString: url, max: 1 }, prepare: "auto", statementTimeout: 0 });
  await migrate(openDb(driver, { location: "test" }), readMigrations(pathToFileURL(`${migrations}/`)));
  await driver.close();
}
process.exit(0);
