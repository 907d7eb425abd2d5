import { expect, it } from "vitest";
import { reclaimTimeMs } from "../support/fixtures/reclaim-time.js";
import { Standstill } from "../support/processes/standstill.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  it("100,000 stranded jobs are claimable again within 30 s (E8, B5)", async () => {
    await using database = await migratedDatabase();
    using still = new Standstill();
    const took = await reclaimTimeMs(database.url, 100_000);
    console.log(`100,000 stranded jobs came back in ${Math.round(took)} ms`);
    expect(took).toBeLessThan(30_000 + still.ms);
  });
});
