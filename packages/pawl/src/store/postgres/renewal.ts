import type { LeaseId } from "../../core/id.js";
import { spawnThread } from "../../runtime/thread.js";
import type { Renewer } from "../port.js";
import type { RenewalLink, Statement } from "./drivers/driver.js";

/** What the thread is started with. Times in it are absolute: `performance.timeOrigin` plus `performance.now()`. */
export interface RenewalData {
  readonly link: RenewalLink;
  readonly statement: Statement;
  readonly worker: number;
  readonly duration: number;
  readonly every: number;
}
export type ToThread = { readonly hold: LeaseId; readonly from: number; readonly until: number } | { readonly drop: readonly LeaseId[] } | "stop";
export type FromThread = { readonly renewed: readonly LeaseId[]; readonly at: number } | { readonly lost: readonly LeaseId[]; readonly why: string };

function absolute(monotonic: number): number {
  return performance.timeOrigin + monotonic;
}

/** Renews from a thread of its own, with a connection of its own: a blocked event loop does not lose its leases. */
export function threadRenewer(data: Promise<RenewalData>, onError: (error: unknown) => void): Renewer {
  const waiting: ToThread[] = [];
  let thread: import("node:worker_threads").Worker | undefined;
  let renewed: (lease: LeaseId, at: number) => void = () => {};
  let lost: (lease: LeaseId, why: string) => void = () => {};
  let stopped = false;
  const dropped: LeaseId[] = [];

  const started = data.then((ready) => {
    if (stopped) return;
    const transferList = ready.link.kind === "port" ? [ready.link.port] : [];
    thread = spawnThread(import.meta.url, "./renewal-thread.js", { workerData: ready, transferList, name: "pawl renewal" });
    thread.unref();
    thread.on("error", onError);
    thread.on("message", (message: FromThread) => {
      if ("renewed" in message) for (const lease of message.renewed) renewed(lease, message.at - performance.timeOrigin);
      else for (const lease of message.lost) lost(lease, message.why);
    });
    for (const message of waiting.splice(0)) thread.postMessage(message);
  }, onError);

  function post(message: ToThread): void {
    if (thread === undefined) waiting.push(message);
    else thread.postMessage(message);
  }

  return {
    hold(lease, latestDeadline) {
      post({ hold: lease, from: absolute(performance.now()), until: absolute(latestDeadline) });
    },
    drop(lease) {
      // Most leases live for milliseconds: tell of them in bulk. One renewal too many does no harm.
      if (dropped.push(lease) >= 64) post({ drop: dropped.splice(0) });
    },
    onRenewed(call) {
      renewed = call;
    },
    onLost(call) {
      lost = call;
    },
    async stop() {
      stopped = true;
      await started;
      thread?.postMessage("stop" satisfies ToThread);
      await thread?.terminate();
    },
  };
}
