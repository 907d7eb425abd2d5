/**
 * What the worker itself costs: no-op jobs through the memory store, nothing else.
 * node --import tsx bench/worker-memory.ts [jobs] [concurrency]
 */
import { randomFillSync } from "node:crypto";
import { idSuffixSource } from "../packages/pawl/src/core/jobs/id.js";
import type { Lane } from "../packages/pawl/src/core/jobs/lane.js";
import { task } from "../packages/pawl/src/core/jobs/task.js";
import { Bus } from "../packages/pawl/src/runtime/process/bus.js";
import { systemClock } from "../packages/pawl/src/runtime/time/clock.js";
import { memoryStore } from "../packages/pawl/src/store/memory/index.js";
import type { Store } from "../packages/pawl/src/store/port/index.js";
import type { Claimed } from "../packages/pawl/src/store/port/settle/leases.js";
import { Worker } from "../packages/pawl/src/worker/worker.js";

const jobs = Number(process.argv[2] ?? 200_000);
const concurrency = Number(process.argv[3] ?? 10);
const hollow = process.argv.includes("--hollow");

const lane: Lane = { queue: "default", priority: 5, tenant: "default", task: "noop" };
const idSuffix = idSuffixSource((size) => randomFillSync(new Uint8Array(size)));

/** A store that keeps nothing: what is left is the worker's own cost. */
function hollowStore(): Store {
  const real = memoryStore();
  let left = jobs;
  let lease = 0;
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  return {
    ...real,
    lanes: { ...real.lanes, live: async () => ({ lanes: left > 0 ? [lane] : [], suspects: false, version: "0" }) },
    leases: {
      ...real.leases,
      async claim({ quotas }) {
        const count = Math.min(quotas[0]?.quota ?? 0, left);
        if (count === 0) return undefined;
        const from = left;
        left -= count;
        await new Promise((resolve) => setImmediate(resolve));
        const claimed = {
          lease: String(++lease),
          now: Date.now(),
          jobs: Array.from({ length: count }, (_, i) => ({
            id: id(from - i),
            lane,
            input: '{"i":1}',
            options: undefined,
            dueAt: 0,
            attempts: 0,
            crashes: 0,
          })),
        };
        return claimed as unknown as Claimed;
      },
      async settle(_worker, settlements) {
        await new Promise((resolve) => setImmediate(resolve));
        return settlements.map(() => "settled" as const);
      },
    },
  };
}

const store = hollow ? hollowStore() : memoryStore();
if (!hollow) {
  for (let i = 0; i < jobs; i += 1_000) {
    await store.jobs.enqueue(
      Array.from({ length: Math.min(1_000, jobs - i) }, () => ({ idSuffix: idSuffix(lane.tenant), lane, input: '{"i":1}', options: undefined })),
    );
  }
}

let done = 0;
let finish = () => {};
const finished = new Promise<void>((resolve) => {
  finish = resolve;
});
const noop = task("noop", async () => {
  if (++done === jobs) finish();
});
const worker = new Worker({ store, bus: new Bus(), clock: systemClock, tasks: new Map([["noop", noop]]), defaults: {}, options: { concurrency } });
const keep = setInterval(() => {}, 1_000);
const cpu = process.cpuUsage();
const began = performance.now();
await worker.start();
await finished;
await worker.stop();
const took = performance.now() - began;
clearInterval(keep);
const used = process.cpuUsage(cpu);
console.log(
  JSON.stringify({
    store: hollow ? "hollow" : "memory",
    jobs,
    concurrency,
    perSecond: Math.round((jobs / took) * 1_000),
    µsPerJob: Math.round((took / jobs) * 100_000) / 100,
    cpuµsPerJob: Math.round(((used.user + used.system) / jobs) * 100) / 100,
  }),
);
