import { afterEach, beforeEach, expect, test } from "vitest";
import { open, type Pawl } from "../../packages/pawl/src/index.js";
import { onceOrAgain } from "../support/again.js";
import { type Database, describeOn, migratedDatabase, type ServerName } from "../support/servers/servers.js";

/** More than one page looks through. */
const MANY = 50_100;

for (const server of onceOrAgain<ServerName>(["embedded18", "debian15"])) {
  describeOn(server, () => {
    let database: Database;
    let pawl: Pawl;
    beforeEach(async () => {
      database = await migratedDatabase(server);
      pawl = await open(database.url, { allowUnknownTasks: true, maintenance: false });
    });
    afterEach(async () => {
      await pawl.close();
      await database.drop();
    });

    test("whoever has few jobs beside another with many gets all of them, past what one look goes through", async () => {
      const small = pawl.forTenant("small");
      const first = await small.enqueue("mail", 1, { tags: ["rare"], delay: "1s" });
      await pawl.forTenant("big").enqueueMany("mail", Array(MANY).fill(0), { delay: "2s" });
      const last = await small.enqueue("mail", 2, { delay: "3s" });
      const ids = async (page: Promise<{ items: readonly { id: string }[]; next?: string }>) => {
        const { items: jobs, next } = await page;
        return { ids: jobs.map(({ id }) => id), next };
      };
      const both = { ids: [last.id, first.id], next: undefined };
      expect(await ids(small.jobs.list())).toEqual(both);
      expect(await ids(small.jobs.list({ state: "scheduled" }))).toEqual(both);
      expect(await ids(small.jobs.list({ state: "ready" }))).toEqual({ ids: [], next: undefined });
      expect(await ids(pawl.jobs.list({ tag: "rare" }))).toEqual({ ids: [first.id], next: undefined });
      expect(await ids(pawl.jobs.list({ state: "scheduled", tag: "rare" }))).toEqual({ ids: [first.id], next: undefined });
    });
  });
}
