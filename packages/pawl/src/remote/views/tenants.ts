import { isFinished } from "../../core/jobs/job.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import { keepAliveFor } from "../../runtime/process/keep-alive.js";
import type { ExportEntry } from "../../scheduler/access/tenant-export.js";
import type { PurgeOptions, PurgeProgress } from "../../scheduler/access/tenant-purge.js";
import type { Tenants } from "../../scheduler/access/tenants.js";
import type { JobView } from "../../scheduler/jobs/view.js";
import type { TenantView } from "../../scheduler/scheduler.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { attemptView, breakerView, jobView, logView, scheduleView, targetView, tickView } from "./parse-views.js";
import { RemoteNamed } from "./queues-tasks.js";

/** ms between two looks at how far a purge is */
const PROGRESS_POLL_MS = 500;

/** Tenants through the service. */
export class RemoteTenants extends RemoteNamed<"tenant", TenantView> implements Tenants {
  constructor(transport: HttpTransport) {
    super(transport, "tenant");
  }

  async *export(tenant: string): AsyncGenerator<ExportEntry, void> {
    const path = `${this.path(checkName("tenant", tenant))}/export`;
    const stop = new AbortController();
    try {
      let last: ExportEntry | undefined;
      for await (const line of linesOf(await this.transport.stream(path, {}, { accept: "application/x-ndjson" }, stop.signal))) {
        last = entryOf(JSON.parse(line) as ExportEntry);
        yield last;
      }
      if (last?.kind !== "end") throw pawlError("store_unreachable", { store: this.transport.url.origin, reason: "the export was cut off" });
    } catch (error) {
      this.transport.checkOpen(error);
      throw error;
    } finally {
      stop.abort();
    }
  }

  /** It runs as a job of the service, which goes on by itself: the signal cancels that job. */
  async purge(tenant: string, { onProgress, signal }: PurgeOptions = {}): Promise<PurgeProgress> {
    const { id } = (await this.transport.post(`${this.path(tenant)}/purge`)) as { readonly id: string };
    const job = `/v1/jobs/${encodeURIComponent(id)}`;
    for (;;) {
      const view = (await this.transport.get(job)) as JobView<PurgeProgress>;
      if (view.state === "succeeded") return view.output as PurgeProgress;
      if (isFinished(view.state))
        throw pawlError("job_failed", { job: id, state: view.state, reason: view.failure?.message ?? "no reason is recorded" });
      if (view.progress !== undefined) onProgress?.(view.progress as PurgeProgress);
      if (signal?.aborted === true) {
        await this.transport.post(`${job}/cancel`, { reason: "the purge was stopped" });
        signal.throwIfAborted();
      }
      await keepAliveFor(this.transport.clock, PROGRESS_POLL_MS);
    }
  }
}

async function* linesOf(chunks: AsyncIterable<unknown>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
    rest = lines.pop() as string;
    yield* lines;
  }
}

/** Times are dates again. */
function entryOf(entry: ExportEntry): ExportEntry {
  switch (entry.kind) {
    case "job":
      return { ...entry, job: jobView(entry.job), history: entry.history.map(attemptView), logs: entry.logs.map(logView) };
    case "schedule":
      return { ...entry, schedule: scheduleView(entry.schedule), ticks: entry.ticks.map(tickView) };
    case "target":
      return { ...entry, target: targetView(entry.target) };
    case "breaker":
      return { ...entry, breaker: breakerView(entry.breaker) };
    case "audit":
      return { ...entry, entry: { ...entry.entry, at: new Date(entry.entry.at) } };
    default:
      return entry;
  }
}
