import { pawlError } from "../core/error.js";
import { isFinished } from "../core/job.js";
import { checkName } from "../core/name.js";
import { restFor } from "../runtime/alive.js";
import type { TenantView } from "../scheduler/scheduler.js";
import type { ExportEntry } from "../scheduler/tenant-export.js";
import type { PurgeOptions, PurgeProgress } from "../scheduler/tenant-purge.js";
import type { Tenants } from "../scheduler/tenants.js";
import type { JobView } from "../scheduler/view.js";
import { RemoteNamed } from "./named.js";
import { attemptView, breakerView, jobView, logView, scheduleView, targetView, tickView } from "./views.js";
import type { Wire } from "./wire.js";

/** ms between two looks at how far a purge is */
const LOOK_EVERY = 500;

/** Tenants through the service. */
export class RemoteTenants extends RemoteNamed<"tenant", TenantView> implements Tenants {
  constructor(wire: Wire) {
    super(wire, "tenant");
  }

  async *export(tenant: string): AsyncGenerator<ExportEntry, void> {
    const path = `${this.path(checkName("tenant", tenant))}/export`;
    const stop = new AbortController();
    try {
      let last: ExportEntry | undefined;
      for await (const line of linesOf(await this.wire.stream(path, {}, { accept: "application/x-ndjson" }, stop.signal))) {
        last = entryOf(JSON.parse(line) as ExportEntry);
        yield last;
      }
      if (last?.kind !== "end") throw pawlError("store_unreachable", { store: this.wire.url.origin, reason: "the export was cut off" });
    } catch (error) {
      this.wire.checkOpen(error);
      throw error;
    } finally {
      stop.abort();
    }
  }

  /** It runs as a job of the service, which goes on by itself: the signal cancels that job. */
  async purge(tenant: string, { onProgress, signal }: PurgeOptions = {}): Promise<PurgeProgress> {
    const { id } = (await this.wire.post(`${this.path(tenant)}/purge`)) as { readonly id: string };
    const job = `/v1/jobs/${encodeURIComponent(id)}`;
    for (;;) {
      const view = (await this.wire.get(job)) as JobView<PurgeProgress>;
      if (view.state === "succeeded") return view.output as PurgeProgress;
      if (isFinished(view.state))
        throw pawlError("job_failed", { job: id, state: view.state, reason: view.failure?.message ?? "no reason is recorded" });
      if (view.progress !== undefined) onProgress?.(view.progress as PurgeProgress);
      if (signal?.aborted === true) {
        await this.wire.post(`${job}/cancel`, { reason: "the purge was stopped" });
        signal.throwIfAborted();
      }
      await restFor(this.wire.clock, LOOK_EVERY);
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
function entryOf(told: ExportEntry): ExportEntry {
  switch (told.kind) {
    case "job":
      return { ...told, job: jobView(told.job), history: told.history.map(attemptView), logs: told.logs.map(logView) };
    case "schedule":
      return { ...told, schedule: scheduleView(told.schedule), ticks: told.ticks.map(tickView) };
    case "target":
      return { ...told, target: targetView(told.target) };
    case "breaker":
      return { ...told, breaker: breakerView(told.breaker) };
    case "audit":
      return { ...told, entry: { ...told.entry, at: new Date(told.entry.at) } };
    default:
      return told;
  }
}
