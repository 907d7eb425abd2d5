import type { Scenario } from "../../contract/scenario.js";
import { figureOf, partsOf, rounded, rowsOf } from "../../harness/figures.js";
import { newKey, serving } from "../../systems/pawl-service.ts";
import { HttpClient, newJob, postgresUrl } from "./http.js";

const IN_FLIGHT = 16;
/** in turns: what the machine does meanwhile happens to both */
const STRETCHES = 8;

export const authentication: Scenario = {
  name: "authentication",
  measures: `GET of one job, ${IN_FLIGHT} at a time, from a service with keys and from one without, in turns`,
  systems: ["pawl-http"],
  jobs: 40_000,
  runs: 3,
  async run(bench) {
    const samples = await bench.turns(async ({ location }) => {
      const store = postgresUrl(location);
      const open = await serving(store);
      const keyed = await serving(store, "keys");
      const [toOpen, toKeyed] = [new HttpClient(open.url, IN_FLIGHT), new HttpClient(keyed.url, IN_FLIGHT)];
      try {
        const key = await newKey(store, "bench");
        const path = `/v1/jobs/${await newJob(toOpen)}`;
        const each = Math.ceil(bench.jobs / STRETCHES / 2);
        const spent = { open: 0, keyed: 0 };
        for (const client of [toOpen, toKeyed]) await client.repeat(Math.min(each, 1_000), IN_FLIGHT, { path, key });
        for (let stretch = 0; stretch < STRETCHES; stretch++) {
          spent.open += each / (await toOpen.repeat(each, IN_FLIGHT, { path })).perSecond;
          spent.keyed += each / (await toKeyed.repeat(each, IN_FLIGHT, { path, key })).perSecond;
        }
        return { openPerSecond: (each * STRETCHES) / spent.open, keyedPerSecond: (each * STRETCHES) / spent.keyed };
      } finally {
        toOpen.close();
        toKeyed.close();
        await Promise.all([open.stop(), keyed.stop()]);
      }
    });
    const taken = samples.get("pawl-http") ?? [];
    const ratio = figureOf("pawl-http", "keyedPerSecond", taken) / figureOf("pawl-http", "openPerSecond", taken);
    return { results: rowsOf(samples), ratio: Number.isFinite(ratio) ? rounded(ratio) : null, parts: partsOf({}) };
  },
};
