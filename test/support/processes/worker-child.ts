import { setTimeout as sleep } from "node:timers/promises";
import { open } from "../../../packages/pawl/src/index.js";
import { HandlerLog } from "./handler-log.js";
import type { ProcessEvent, ProcessOptions } from "./worker-process.js";
import { childTasks } from "./worker-tasks.js";

/** A worker in a process of its own, which a test may kill. Ends with its parent; tells it what happens. */
const { url, handlerLog: path, work, produce, open: how } = JSON.parse(process.argv[2] as string) as ProcessOptions;
const handlerLog = new HandlerLog(path);

const tell = (event: ProcessEvent) => void (process.connected && process.send?.(event));
process.on("disconnect", () => process.exit(9));
process.channel?.unref();

const pawl = await open(url, {
  ...how,
  tasks: childTasks(handlerLog),
  onWaiting: (what) => tell({ name: "waiting", event: what.for === "server" ? { ...what, error: what.error.message } : what }),
});
for (const name of [
  "lease.lost",
  "attempt.stale",
  "worker.blocked",
  "worker.stalled",
  "worker.stopping",
  "worker.stopped",
  "leases.reaped",
] as const) {
  pawl.on(name, (event) => tell({ name, event }));
}
pawl.on("duty.failed", ({ duty, error }) => tell({ name: "duty.failed", event: { duty, error: String(error) } }));

if (work !== undefined) {
  const worker = await pawl.work(work);
  void pawl.closeOnSignal();
  tell({ name: "ready", event: worker.ref });
} else {
  void pawl.closeOnSignal();
  tell({ name: "ready", event: {} });
}

/** Enqueues without end; an id is written down when, and only when, its enqueue has resolved. */
async function enqueueForever(task: string): Promise<never> {
  for (;;) {
    try {
      const { id } = await pawl.enqueue(task, {});
      handlerLog.write({ job: id, task, step: "ack", pid: process.pid, at: Date.now(), attempt: 0 });
    } catch {
      // Away for now, or of unknown fate: not acknowledged.
      await sleep(20);
    }
  }
}
if (produce !== undefined) for (let lane = 0; lane < produce.lanes; lane++) void enqueueForever(produce.task);
