import { expect, test } from "vitest";
import { type Context, open, task } from "../../packages/pawl/src/index.js";
import { describeOn, freshDatabase } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  test("every line is kept of a worker that logs for each of many jobs, beside many that are finished", async () => {
    const database = await freshDatabase();
    const quick = task("quick", () => {});
    const chatty = task("chatty", (_: unknown, ctx: Context) => ctx.log.info("done"));
    const pawl = await open(database.url, { tasks: [quick, chatty] });
    const lost: unknown[] = [];
    pawl.on("lines.lost", (event) => lost.push(event));
    try {
      const jobs = 20_000;
      await pawl.enqueueMany(quick, Array.from({ length: jobs }));
      await pawl.enqueueMany(chatty, Array.from({ length: jobs }));
      let settled = 0;
      const all = new Promise<void>((resolve) => pawl.on("attempt.settled", () => void (++settled === 2 * jobs && resolve())));
      const worker = await pawl.work();
      await all;
      await worker.stop();
      expect(lost).toEqual([]);
      const { items: some } = await pawl.jobs.list({ task: "chatty" }, { limit: 100 });
      for (const { id } of some) expect((await pawl.jobs.logs(id)).items).toMatchObject([{ message: "done" }]);
    } finally {
      await pawl.close();
      await database.drop();
    }
  });
});
