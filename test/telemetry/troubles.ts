import { setTimeout as pause } from "node:timers/promises";
import { type OpenOptions, type Pawl, task } from "pawl";
import type { WorkerOptions } from "pawl/worker";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import { newInstanceId } from "../../packages/pawl/src/runtime/process/identity.js";
import { memoryStore } from "../../packages/pawl/src/store/memory/index.js";
import { type FaultPlan, faultyStore } from "../../packages/pawl/src/testing/faulty.js";
import type { MetricsOptions } from "../../packages/server/src/telemetry/metrics/metrics.js";

/** A live Pawl in some condition, and the alerts that it must raise, or must not. */
export interface AlertCase {
  readonly raises: readonly string[];
  readonly spares?: readonly string[];
  readonly metrics?: MetricsOptions;
  /** scrapes that are answered; from then on none is (default: all) */
  readonly answers?: number;
  open(): Promise<Pawl>;
}

/** Fast enough for windows of seconds. */
const MAINTENANCE = { pollInterval: 100, reapInterval: 100, leaseDuration: 500 };

async function opened(options: OpenOptions = {}, faults: FaultPlan = () => undefined, store = memoryStore()): Promise<Pawl> {
  return startPawl(faultyStore(store, faults), { maintenance: MAINTENANCE, ...options });
}

/** Keeps so many jobs under way: each one that ends is followed by another, however slow the machine is. */
async function inChains(ms: number, chains: number, work: WorkerOptions, store = memoryStore()): Promise<Pawl> {
  const link = task<number, void>("link", async (n) => {
    await pause(ms);
    await pawl.enqueue(link, n + 1);
  });
  const pawl = await opened({ tasks: [link, idle] }, undefined, store);
  await pawl.enqueueMany(
    link,
    Array.from({ length: chains }, () => 0),
  );
  await pawl.work(work);
  return pawl;
}

/** Does so again and again until the pawl is closed. */
function often(ms: number, call: () => Promise<unknown>): void {
  const again = async () => {
    try {
      await call();
      setTimeout(again, ms).unref();
    } catch {
      // closed
    }
  };
  void again();
}

const idle = task<number, void>("idle", () => {});
const hopeless = task<number, void>("hopeless", { retry: 0, breaker: false }, () => {
  throw new RangeError("it never works");
});
const endless = task<number, void>("endless", { timeout: 100 }, () => new Promise(() => {}));

export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  healthy: {
    raises: [],
    metrics: { objectives: { "*": 60_000 } },
    async open() {
      const pawl = await inChains(200, 2, { concurrency: 4 });
      await pawl.schedules.put("often", idle, { every: "1s", input: 1 });
      return pawl;
    },
  },
  stranded: {
    raises: ["PawlNothingSettled", "PawlLowPriorityWaiting"],
    async open() {
      const pawl = await opened({ tasks: [idle] });
      await pawl.enqueueMany(idle, [1, 2, 3], { queue: "mail", priority: "low" });
      return pawl;
    },
  },
  paused: {
    raises: [],
    spares: ["PawlNothingSettled", "PawlLowPriorityWaiting"],
    async open() {
      const pawl = await opened({ tasks: [idle] });
      await pawl.queues.pause("mail");
      await pawl.enqueue(idle, 1, { queue: "mail", priority: "low" });
      return pawl;
    },
  },
  dying: {
    raises: ["PawlDeadLetters", "PawlDeadLettersRising"],
    async open() {
      const pawl = await opened({ tasks: [hopeless] });
      await pawl.breakers.open({ tenant: "acme", task: "hopeless" });
      await pawl.work();
      often(200, () => pawl.enqueue(hopeless, 1));
      return pawl;
    },
  },
  slow: {
    raises: ["PawlAttemptsSlow", "PawlEndToEndSlow", "PawlWorkersBusy"],
    metrics: { objectives: { link: 500 } },
    open: () => inChains(1_500, 6, { concurrency: 2 }),
  },
  growing: {
    raises: ["PawlBacklogGrowing"],
    async open() {
      const pawl = await opened({ tasks: [idle] });
      often(100, () => pawl.enqueueMany(idle, [1, 2, 3]));
      return pawl;
    },
  },
  late: {
    raises: ["PawlLate"],
    async open() {
      const pawl = await opened({ tasks: [idle] }, (operation) => (operation === "duties.tick" ? { kind: "fail" } : undefined));
      await pawl.schedules.put("often", idle, { every: "1s", input: 1 });
      return pawl;
    },
  },
  crashing: {
    raises: ["PawlRecoveries", "PawlLeasesExpiring"],
    async open() {
      const store = memoryStore();
      const pawl = await inChains(200, 1, { tasks: ["link"] }, store);
      // Workers that take a job and are never heard of again.
      const lane = { queue: "default", priority: 5, tenant: "default", task: "idle" } as const;
      often(200, async () => {
        await pawl.enqueue(idle, 1);
        await store.leases.claim({ worker: { name: "gone", instance: newInstanceId() }, quotas: [{ lane, quota: 1 }], duration: 100 });
      });
      return pawl;
    },
  },
  stuck: {
    raises: ["PawlWorkerStuck"],
    async open() {
      const pawl = await opened({ tasks: [endless] });
      await pawl.enqueue(endless, 1);
      await pawl.work({ concurrency: 1, shutdownGrace: 100 });
      return pawl;
    },
  },
  unattended: { raises: ["PawlNoMaintenance"], open: () => opened({ maintenance: false }) },
  idle: {
    raises: ["PawlWorkersIdle"],
    async open() {
      const pawl = await opened({ tasks: [idle] });
      await pawl.work({ concurrency: 4 });
      return pawl;
    },
  },
  unseen: { raises: ["PawlUnseen"], answers: 3, open: () => opened() },
  "pawl-never-seen": { raises: ["PawlUnseen"], answers: 0, open: () => opened() },
  away: { raises: ["PawlStoreAway"], open: () => opened({}, (operation) => (operation === "records.counts" ? { kind: "fail" } : undefined)) },
};
