import { expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { onceOrAgain } from "../support/again.js";
import { type KillPoint, killedAt } from "../support/processes/maintenance-process.js";
import { migratedDatabase } from "../support/servers/servers.js";

const TENANT = "acme-gmbh";
const JOBS = 1_200;

const POINTS: readonly (KillPoint & { readonly moment: string })[] = [
  { moment: "before anything is gone", at: /pawl_purge_api_keys/, when: "before" },
  { moment: "in the middle of its jobs", at: /pawl_untie_purged/, nth: 2, when: "after" },
  { moment: "when only the end is not noted", at: /pawl_end_purge/, when: "before" },
];

for (const { moment, ...point } of onceOrAgain(POINTS))
  test(`S54: a purge whose process is killed with -9 ${moment} is known, and another process carries it out`, { timeout: 180_000 }, async () => {
    await using database = await migratedDatabase();
    await using pawl = await open(database.url, { allowUnknownTasks: true, maintenance: false });
    await pawl.forTenant(TENANT).enqueueMany("work", Array.from({ length: JOBS }, (_, n) => n) as never, { delay: "1h" });
    const theirs = await pawl.forTenant("umbrella").enqueue("work", 1, { delay: "1h" });
    await killedAt(point, database, { purge: TENANT });

    const standing = await serviceOf(pawl).purges.list();
    expect(standing).toMatchObject([{ tenant: TENANT }]);
    expect(await serviceOf(pawl).purges.request(TENANT), "asked for again it is the same one").toBe(standing[0]?.id);
    await pawl.tenants.purge(TENANT);
    expect((await pawl.jobs.list({ tenant: TENANT })).items).toEqual([]);
    expect(await pawl.tenants.get(TENANT)).toMatchObject({ paused: false });
    expect(await serviceOf(pawl).purges.list()).toEqual([]);
    expect((await pawl.jobs.get(theirs)).state).toBe("scheduled");
  });
