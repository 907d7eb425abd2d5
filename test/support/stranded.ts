import { task } from "../../packages/pawl/src/index.js";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import { openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "./eventually.js";
import { strand } from "./strand.js";

/** Strands so many jobs, and answers how long a process that comes then takes to make them claimable again. ms */
export async function timeToUnstrand(url: string, count: number): Promise<number> {
  const store = await openPostgres({ url });
  await strand(store, "quick", count, { lease: 1 });
  // At the default pace; the lease alone is shorter, since one that has just come stands back for that long.
  await using pawl = await startPawl(store, { tasks: [task("quick", () => {})], maintenance: { lease: "1s" } });
  const began = performance.now();
  await eventually("all are ready", async () => (await pawl.counts()).ready === count, 120_000);
  return performance.now() - began;
}
