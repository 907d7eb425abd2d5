import { randomFillSync, randomUUID } from "node:crypto";
import { type BootId, type JobId, tailSource } from "../../packages/pawl/src/core/id.js";
import type { NewJob, Priority } from "../../packages/pawl/src/core/job.js";
import type { Lane } from "../../packages/pawl/src/core/lane.js";
import type { Store } from "../../packages/pawl/src/store/port.js";

const BATCH = 1_000;
const tail = tailSource((size) => randomFillSync(new Uint8Array(size)));

/** Stores jobs and claims them for a worker that never comes back. */
export async function strand(store: Store, task: string, count: number, { lease }: { readonly lease: number }): Promise<readonly JobId[]> {
  const lane: Lane = { queue: "default", band: 5 as Priority, tenant: "default", task };
  const ids: JobId[] = [];
  for (let done = 0; done < count; done += BATCH) {
    const jobs = Array.from(
      { length: Math.min(BATCH, count - done) },
      (): NewJob => ({ options: undefined, tail: tail(lane.tenant), lane, input: "{}" }),
    );
    await store.jobs.enqueue(jobs);
  }
  const worker = { name: "vanished", boot: randomUUID() as BootId };
  while (ids.length < count) {
    const claimed = await store.leases.claim({ worker, quotas: [{ lane, quota: 500 }], duration: lease });
    if (claimed === undefined) throw new Error(`only ${ids.length} of ${count} could be claimed`);
    ids.push(...claimed.jobs.map(({ id }) => id));
  }
  return ids;
}
