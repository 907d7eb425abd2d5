import { randomUUID } from "node:crypto";
import { type ClientRequest, get, request } from "node:http";
import type { Scenario } from "../../contract/scenario.js";
import { figureOf, partsOf, rounded, rowsOf } from "../../harness/figures.js";
import { newKey, serving } from "../../systems/pawl-service.ts";
import { HttpClient, newJob, postgresUrl } from "./http.js";

const STREAMS = 500;
const POLLS = 200;
/** of each credential the service takes 500 streams and 100 workers */
const KEYS = 4;
const IN_FLIGHT = 4;

export const connections: Scenario = {
  name: "connections",
  measures: `GET of one job, ${IN_FLIGHT} at a time: p99 with ${STREAMS} idle streams of events and ${POLLS} long-polling workers connected, over its value with none`,
  systems: ["pawl-http"],
  jobs: 10_000,
  runs: 3,
  async run(bench) {
    const samples = await bench.turns(async ({ location, say }) => {
      const store = postgresUrl(location);
      const service = await serving(store, "keys");
      const client = new HttpClient(service.url, IN_FLIGHT);
      const waiting: ClientRequest[] = [];
      try {
        const keys = await Promise.all(Array.from({ length: KEYS }, (_, n) => newKey(store, `bench-${n}`)));
        const [key] = keys as [string];
        const httpRequest = { path: `/v1/jobs/${await newJob(client, key)}`, key };
        await client.repeat(Math.min(bench.jobs, 1_000), IN_FLIGHT, httpRequest);
        const alone = await client.repeat(bench.jobs, IN_FLIGHT, httpRequest);
        say("connecting streams and workers");
        for (let n = 0; n < STREAMS; n++) waiting.push(await streaming(service.url, keys[n % KEYS] as string));
        for (let n = 0; n < POLLS; n++) waiting.push(polling(service.url, keys[n % KEYS] as string));
        await client.repeat(Math.min(bench.jobs, 1_000), IN_FLIGHT, httpRequest);
        const among = await client.repeat(bench.jobs, IN_FLIGHT, httpRequest);
        const gone = waiting.filter(({ destroyed }) => destroyed).length;
        if (gone > 0) throw new Error(`${gone} of ${waiting.length} connections were not there any more`);
        return { aloneP99Ms: alone.p99, amongP99Ms: among.p99, aloneP50Ms: alone.p50, amongP50Ms: among.p50, timesP99: among.p99 / alone.p99 };
      } finally {
        for (const one of waiting) one.destroy();
        client.close();
        await service.stop();
      }
    });
    const ratio = figureOf("pawl-http", "timesP99", samples.get("pawl-http") ?? []);
    return { results: rowsOf(samples), ratio: Number.isFinite(ratio) ? rounded(ratio) : null, parts: partsOf({}) };
  },
};

/** Answers when the stream has begun. */
function streaming(url: string, key: string): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const stream = get(
      `${url}/v1/events?task=of.nobody`,
      { agent: false, headers: { authorization: `Bearer ${key}`, accept: "text/event-stream" } },
      (response) => {
        if (response.statusCode !== 200) return void reject(new Error(`a stream was answered with ${response.statusCode}`));
        response.on("error", () => {}).resume();
        resolve(stream);
      },
    );
    stream.on("error", reject);
  });
}

/** A worker of a task that has no jobs. */
function polling(url: string, key: string): ClientRequest {
  const body = JSON.stringify({ worker: { name: "bench", instance: randomUUID() }, tasks: [{ name: "of.nobody" }], limit: 1, wait: "60s" });
  const poll = request(`${url}/v1/leases/claim`, {
    method: "POST",
    agent: false,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "content-length": Buffer.byteLength(body) },
  });
  poll.on("error", () => {});
  poll.on("response", (response) => response.on("error", () => {}).resume());
  poll.end(body);
  return poll;
}
