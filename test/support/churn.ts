import { randomBytes, randomUUID } from "node:crypto";
import { type BootId, tailSource } from "../../packages/pawl/src/core/id.js";
import type { Store } from "../../packages/pawl/src/store/port.js";

/** Enqueues, claims and settles without a pause until told to stop; answers how much went through. */
export function churn(store: Store): () => Promise<{ settled: number }> {
  const lane = { queue: "default", band: 5, tenant: "acme", task: "churn" } as const;
  const worker = { name: "churn", boot: randomUUID() as BootId };
  const tail = tailSource((size) => randomBytes(size));
  let over = false;
  let settled = 0;
  const going = (async () => {
    do {
      await store.jobs.enqueue(Array.from({ length: 20 }, () => ({ tail: tail(lane.tenant), lane, input: "1", options: undefined })));
      const claimed = await store.leases.claim({ worker, quotas: [{ lane, quota: 20 }], duration: 15_000 });
      if (claimed === undefined) continue;
      const answers = await store.leases.settle(
        worker,
        claimed.jobs.map((job) => ({
          lease: claimed.lease,
          job: job.id,
          lane,
          startedAt: claimed.now,
          finishedAt: claimed.now,
          patch: { outcome: "succeeded", next: "succeeded", spent: 1, crashes: 0 },
        })),
      );
      settled += answers.filter((answer) => answer === "settled").length;
    } while (!over);
  })();
  return async () => {
    over = true;
    await going;
    return { settled };
  };
}
