import { describe, expect, it } from "vitest";
import { open, task } from "../../packages/pawl/src/index.js";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import { openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { describeOn, migratedDatabase, serverFor } from "../support/servers/servers.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";

const quick = task("quick", () => {});
const options = { tasks: [quick], schedules: [{ name: "hourly", task: quick, options: { cron: "0 * * * *" } }], maintenance: false } as const;

/** What `open` says to the server once the store is open: each may be carried out and its answer lost, or never arrive. */
const SAID = [/pawl_get_tasks/, /pawl_publish_tasks/, /pawl_lock_puts/, /pawl_insert_schedules/];

async function wired() {
  const probe = serverFor("embedded18");
  if (!probe.available) throw new Error(probe.reason);
  // The schema is there before: what is cut is what `open` does afterwards.
  const database = await migratedDatabase("embedded18");
  const wire = await TcpProxy.before(probe.server.direct);
  const end = async () => {
    await wire.close();
    await database.drop();
  };
  return { wire, url: wire.url(database.name), [Symbol.asyncDispose]: end };
}

describeOn("embedded18", () => {
  describe("starting", () => {
    it.each(SAID)("C6: open waits for a server that goes away once the store is open: the answer to %s is lost", async (said) => {
      await using place = await wired();
      const lost = place.wire.loseAnswer(said);
      await using pawl = await open(place.url, options);
      await lost;
      expect((await pawl.schedules.list()).items).toMatchObject([{ name: "hourly" }]);
      await pawl.enqueue("quick");
      expect((await pawl.counts()).ready).toBe(1);
    });

    it("open tells who waits, and gives up when its patience has ended", async () => {
      await using place = await wired();
      const held = place.wire.stopAt({ at: /pawl_publish_tasks/, when: "before" });
      const heard: string[] = [];
      const opening = open(place.url, { ...options, postgres: { startupWait: "300ms" }, onWaiting: (what) => heard.push(what.for) });
      const refused = expect(opening).rejects.toMatchObject({ code: "store_unreachable" });
      await held;
      await place.wire.refuse();
      await refused;
      expect(heard).toEqual(["server"]);
    });

    it("and does not without persisting", async () => {
      await using place = await wired();
      const lost = place.wire.loseAnswer(/pawl_publish_tasks/);
      const starting = startPawl(await openPostgres({ url: place.url }), options);
      await expect(starting).rejects.toMatchObject({ code: "store_unreachable" });
      await lost;
    });
  });
});
