import { setInterval } from "node:timers";
import { postOversized } from "../../../test/support/oversized-body.js";
import type { Scenario } from "../../contract/scenario.js";
import { figureOf, partsOf, rowsOf } from "../../harness/figures.js";
import { serving } from "../../systems/pawl-service.ts";
import { HttpClient, newJob, postgresUrl, rssOf } from "./http.js";

const BODIES = 50;
const MEGABYTE = 1_048_576;
/** over what a batch may have, which is the most that any enqueue takes */
const SIZE = 64 * MEGABYTE;

export const bodies: Scenario = {
  name: "bodies",
  measures: `${BODIES} bodies of ${SIZE / MEGABYTE} MB at a time, half of them of a length that is told before, half of none: growth of the service's memory, by the kernel`,
  systems: ["pawl-http"],
  jobs: 2_000,
  runs: 3,
  async run(bench) {
    const samples = await bench.turns(async ({ location }) => {
      const service = await serving(postgresUrl(location));
      const client = new HttpClient(service.url, 8);
      try {
        // As it is when it has been at work for a while.
        const path = `/v1/jobs/${await newJob(client)}`;
        await client.repeat(bench.jobs, 8, { path });
        const before = rssOf(service.pid);
        let peak = before;
        const looking = setInterval(() => {
          peak = Math.max(peak, rssOf(service.pid));
        }, 5);
        const statuses = await Promise.all(
          Array.from({ length: BODIES }, (_, n) => postOversized(service.url, { bytes: SIZE, withLength: n % 2 === 0 })),
        );
        clearInterval(looking);
        const taken = statuses.filter((status) => status !== 413 && status !== 0).length;
        if (taken > 0) throw new Error(`${taken} of them were not refused: ${statuses}`);
        // And serves on, whatever became of the connections from before.
        const later = new HttpClient(service.url, 8);
        await later.repeat(100, 8, { path }).finally(() => later.close());
        return { rssGrowthMB: (peak - before) / MEGABYTE, refusedOutright: statuses.filter((status) => status === 413).length };
      } finally {
        client.close();
        await service.stop();
      }
    });
    const growth = figureOf("pawl-http", "rssGrowthMB", samples.get("pawl-http") ?? []);
    return { results: rowsOf(samples), ratio: null, parts: partsOf({ rssGrowthMB: growth }) };
  },
};
