import { expect, it } from "vitest";
import { describeOn, freshDatabase } from "../support/servers.js";
import { Standstill } from "../support/standstill.js";
import { timeToUnstrand } from "../support/stranded.js";

describeOn("embedded18", () => {
  it("20,000 stranded jobs are claimable again at a pace of 100,000 in 30 s, which the chaos run measures (E8, B5)", async () => {
    await using database = await freshDatabase();
    using still = new Standstill();
    const took = await timeToUnstrand(database.url, 20_000);
    console.log(`20,000 stranded jobs came back in ${Math.round(took)} ms`);
    // Up to three seconds of it are the pause before a first sweep.
    expect(took).toBeLessThan(3_000 + 6_000 + still.ms);
  });
});
