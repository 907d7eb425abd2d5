import type { InstanceId } from "../core/jobs/id.js";
import type { JobRecord } from "../core/jobs/job.js";
import { attemptsSoFar, decide, type Outcome } from "../core/jobs/outcome.js";
import { Bus } from "../runtime/process/bus.js";
import { createSchedulerDeps, type SchedulerDeps, type SchedulerOptions } from "../scheduler/deps.js";
import { LocalScheduler } from "../scheduler/local.js";
import { memoryStore } from "../store/memory/index.js";
import type { Store } from "../store/port/index.js";
import { generator, type VirtualClock, virtualClock } from "./clock.js";

/** A scheduler in memory without a worker: the test says what becomes of the jobs. */
export interface BareScheduler {
  readonly scheduler: LocalScheduler;
  readonly deps: SchedulerDeps;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: VirtualClock;
  /** Everything stored, newest due time first. */
  records(): Promise<readonly JobRecord[]>;
  /** Takes all that is ready, as a worker would, and ends each attempt so, without retries. */
  attempt(outcome: Outcome): Promise<number>;
}

const WORKER = { name: "test", instance: "00000000-0000-4000-8000-000000000000" as InstanceId };

export function bareScheduler(options: SchedulerOptions = {}, around: (store: Store) => Store = (store) => store): BareScheduler {
  const clock = virtualClock();
  const store = memoryStore({ now: clock.now });
  const bus = new Bus();
  const random = generator(1);
  const parts = createSchedulerDeps(
    around(store),
    bus,
    { clock, randomBytes: (size) => Uint8Array.from({ length: size }, () => random() * 256) },
    options,
  );
  return {
    scheduler: new LocalScheduler(parts),
    deps: parts,
    store,
    bus,
    clock,
    async records() {
      return (await store.jobs.list("everyone", {}, { limit: 1_000 })).jobs;
    },
    async attempt(outcome) {
      const tasks = (await store.records.counts()).map(({ task }) => task);
      const { lanes } = await store.lanes.live(undefined, tasks);
      const quotas = lanes.map((lane) => ({ lane, quota: 1_000 }));
      const claimed = await store.leases.claim({ worker: WORKER, quotas, duration: 60_000 });
      if (claimed === undefined) return 0;
      const { lease, now, jobs } = claimed;
      await store.leases.settle(
        WORKER,
        jobs.map((job) => ({
          lease,
          job: job.id,
          lane: job.lane,
          patch: decide(attemptsSoFar(job, job.options, now), outcome, 0, () => 0),
          startedAt: now,
          finishedAt: now,
        })),
      );
      return jobs.length;
    },
  };
}
