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
interface Hold {
  readonly hold: LeaseId;
  readonly from: number;
  readonly until: number;
}
export type ToThread = Hold | { readonly drop: readonly LeaseId[] } | "stop";
export type FromThread =
  | "up"
  | { readonly renewed: readonly LeaseId[]; readonly at: number }
  | { readonly lost: readonly LeaseId[]; readonly why: string };

const LONGEST_REST = 1_000;
const TELL_AFTER = 20;

function absolute(monotonic: number): number {
  return performance.timeOrigin + monotonic;
}

/**
 * Renews from a thread of its own, with a connection of its own: a blocked event loop does not lose its leases. What it
 * takes to start the thread is asked for until it is had, and a thread that dies is replaced and told of all leases.
 */
export function threadRenewer(data: () => Promise<RenewalData>): Renewer {
  const holds = new Map<LeaseId, Hold>();
  const dropped: LeaseId[] = [];
  let telling: NodeJS.Timeout | undefined;
  let thread: import("node:worker_threads").Worker | undefined;
  let renewed: (lease: LeaseId, at: number) => void = () => {};
  let lost: (lease: LeaseId, why: string) => void = () => {};
  let failures = 0;
  let stopped = false;
  let isUp = () => {};
  const ready = new Promise<void>((resolve) => {
    isUp = resolve;
  });

  function start(): void {
    if (!stopped) data().then(spawn).catch(startLater);
  }

  function startLater(): void {
    thread = undefined;
    if (!stopped) setTimeout(start, Math.min(LONGEST_REST, 50 * 2 ** Math.min(failures++, 10))).unref();
  }

  function spawn(given: RenewalData): void {
    if (stopped) return;
    const transferList = given.link.kind === "port" ? [given.link.port] : [];
    const next = spawnThread(import.meta.url, "./renewal-thread.js", { workerData: given, transferList, name: "pawl renewal" });
    next.unref();
    next.on("error", () => {}); // its exit follows
    next.once("exit", startLater);
    next.on("message", (message: FromThread) => {
      if (message === "up") {
        failures = 0;
        isUp();
      } else if ("renewed" in message) for (const lease of message.renewed) renewed(lease, message.at - performance.timeOrigin);
      else for (const lease of message.lost) lost(lease, message.why);
    });
    thread = next;
    for (const hold of holds.values()) post(hold);
  }

  function post(message: ToThread): void {
    thread?.postMessage(message);
  }

  function tellDropped(): void {
    telling = undefined;
    post({ drop: dropped.splice(0) });
  }

  start();
  return {
    ready,
    hold(lease, latestDeadline) {
      const hold: Hold = { hold: lease, from: absolute(performance.now()), until: absolute(latestDeadline) };
      holds.set(lease, hold);
      post(hold);
    },
    drop(lease) {
      holds.delete(lease);
      // Most leases live for milliseconds: tell of them in bulk. But soon: one that was given up must run out.
      dropped.push(lease);
      if (telling === undefined) telling = setTimeout(tellDropped, TELL_AFTER).unref();
    },
    onRenewed(call) {
      renewed = call;
    },
    onLost(call) {
      lost = call;
    },
    async stop() {
      stopped = true;
      post("stop");
      await thread?.terminate();
    },
  };
}
