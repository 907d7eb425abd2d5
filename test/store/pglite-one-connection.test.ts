import { isPawlError, open, task } from "pawl";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.js";

const work = task<number, void>("work", () => {});

describe("on PGlite, which has one connection", () => {
  test("a limit is asked inside the transaction of a handler", async () => {
    using folder = temporaryFolder();
    const answers: string[] = [];
    const chain = task("chain", { retry: 0 }, (_: unknown, ctx) =>
      ctx.transaction(async (tx) => {
        for (let n = 0; n < 2; n++) {
          const stored = pawl.enqueue(work, n, { tx, tenant: "acme" }).then(
            () => "stored",
            (error) => (isPawlError(error) ? error.code : String(error)),
          );
          answers.push(await stored);
        }
      }),
    );
    const pawl = await open(folder.path, { engine: "pglite", tasks: [chain, work] });
    try {
      await pawl.tenants.update("acme", { ingest: { rate: { limit: 1, per: "1h" } } });
      const job = await pawl.enqueue(chain, {});
      await pawl.work({ concurrency: 1, tasks: ["chain"] });
      await job.result();
      expect(answers).toEqual(["stored", "ingest_limited"]);
      expect((await pawl.jobs.list({ tenant: "acme" })).items).toHaveLength(1);
    } finally {
      await pawl.close();
    }
  });
});
