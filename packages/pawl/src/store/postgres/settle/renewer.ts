import type { LeaseId } from "../../../core/jobs/id.js";
import { type PawlError, pawlError } from "../../../core/values/error.js";
import { spawnThread } from "../../../runtime/io/thread.js";
import type { Renewer } from "../../port/settle/leases.js";
import type { RenewalLink, Statement } from "../drivers/driver.js";
import { RenewalTable } from "./renewal-table.js";

/** What the thread is started with. */
export interface RenewalData {
  readonly link: RenewalLink;
  readonly statement: Statement;
  readonly worker: number;
  readonly duration: number;
  readonly every: number;
}
export interface ThreadData extends RenewalData {
  /** of the `RenewalTable` */
  readonly memory: SharedArrayBuffer;
}
export type FromThread =
  | "up"
  | { readonly renewed: readonly LeaseId[]; readonly at: number }
  | { readonly lost: readonly LeaseId[]; readonly why: string }
  | { readonly trouble: string };

const LONGEST_REST_MS = 1_000;
/** ms a thread takes to come up, at the very most: it needs nothing of this one for that, which may be blocked meanwhile */
const COMES_UP_WITHIN = 5_000;

function absolute(monotonic: number): number {
  return performance.timeOrigin + monotonic;
}

/**
 * Renews from a thread of its own, with a connection of its own: a blocked event loop does not lose its leases. What it
 * takes to start the thread is asked for until it is had, and a thread that dies is replaced. It reads what to renew from
 * memory that is shared with it, so it need not be up before the first lease is held, unless one may be due by then.
 */
export function threadRenewer(data: () => Promise<RenewalData>): Renewer {
  const table = new RenewalTable();
  const indexes = new Map<LeaseId, number>();
  const free: number[] = [];
  let thread: import("node:worker_threads").Worker | undefined;
  let renewed: (lease: LeaseId, at: number) => void = () => {};
  let lost: (lease: LeaseId, why: string) => void = () => {};
  let trouble: (error: PawlError) => void = () => {};
  let failures = 0;
  let stopped = false;
  let mayClaim = () => {};
  const ready = new Promise<void>((resolve) => {
    mayClaim = resolve;
  });

  function start(): void {
    if (!stopped) data().then(spawn).catch(startLater);
  }

  function startLater(cause: unknown): void {
    thread = undefined;
    if (stopped) return;
    trouble(pawlError("renewal_failed", { reason: cause instanceof Error ? cause.message : `its thread ended with ${cause}` }, cause));
    setTimeout(start, Math.min(LONGEST_REST_MS, 50 * 2 ** Math.min(failures++, 10))).unref();
  }

  function spawn(started: RenewalData): void {
    if (stopped) return;
    const transferList = started.link.kind === "port" ? [started.link.port] : [];
    const next = spawnThread(import.meta.url, "./renewal-thread.js", {
      workerData: { ...started, memory: table.memory } satisfies ThreadData,
      transferList,
      name: "pawl renewal",
    });
    next.unref();
    let cause: unknown;
    next.on("error", (error) => {
      cause = error; // its exit follows
    });
    next.once("exit", (code) => startLater(cause ?? code));
    next.on("message", (message: FromThread) => {
      if (message === "up") {
        failures = 0;
        mayClaim();
      } else if ("renewed" in message) for (const lease of message.renewed) renewed(lease, message.at - performance.timeOrigin);
      else if ("lost" in message) for (const lease of message.lost) lost(lease, message.why);
      else trouble(pawlError("renewal_failed", { reason: message.trouble }));
    });
    thread = next;
    if (started.every >= COMES_UP_WITHIN) mayClaim();
  }

  start();
  return {
    ready,
    hold(lease, latestDeadline) {
      const until = absolute(latestDeadline);
      const known = indexes.get(lease);
      if (known !== undefined) {
        table.extend(known, until);
        return;
      }
      const index = free.pop() ?? indexes.size;
      indexes.set(lease, index);
      table.put(index, lease, absolute(performance.now()), until);
    },
    drop(lease) {
      const index = indexes.get(lease);
      if (index === undefined) return;
      table.clear(index);
      indexes.delete(lease);
      free.push(index);
    },
    onRenewed(call) {
      renewed = call;
    },
    onLost(call) {
      lost = call;
    },
    onTrouble(call) {
      trouble = call;
    },
    async stop() {
      stopped = true;
      await thread?.terminate();
    },
  };
}
