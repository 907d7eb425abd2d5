import { isJobId, type JobId } from "../../core/jobs/id.js";
import { isFinished } from "../../core/jobs/job.js";
import { isPawlError, pawlError } from "../../core/values/error.js";
import { keepAlive, keepAliveFor } from "../../runtime/process/keep-alive.js";
import { checkDuration, checkKeys, checkObject, shortened } from "../../scheduler/check.js";
import type { StoredJob } from "../../scheduler/enqueue/enqueuer.js";
import { jobIdOf } from "../../scheduler/enqueue/read-options.js";
import { changeAll } from "../../scheduler/jobs/bulk-change.js";
import { checkOptionalReason } from "../../scheduler/jobs/check-reason.js";
import { checkWait } from "../../scheduler/jobs/check-wait.js";
import { checkFilter } from "../../scheduler/jobs/filter.js";
import { JobHandle } from "../../scheduler/jobs/handle.js";
import type { AttemptView, JobView, LogView } from "../../scheduler/jobs/view.js";
import type { Explanation } from "../../scheduler/observe/explain.js";
import type { JobRef } from "../../scheduler/options.js";
import { checkPageOptions, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type { BulkOptions, BulkReport, BulkVerb, Job, JobChange, JobFilter, Jobs, RedriveJobOptions, Wait } from "../../scheduler/scheduler.js";
import type { Scope } from "../../store/port/index.js";
import type { HttpTransport, ServiceCall } from "../transport/http-transport.js";
import { attemptView, explanation, jobView, logView } from "./parse-views.js";

/** ms that one long poll waits; the wait itself may be longer */
const POLL_WAIT_MS = 25_000;
/** ms, where the service does not say when */
const RETRY_MS = 5_000;

/** Jobs by id, through the service. */
export class RemoteJobs implements Jobs {
  constructor(
    private readonly transport: HttpTransport,
    private readonly scope: Scope,
  ) {}

  async get(job: JobRef): Promise<JobView> {
    const id = idFor(job);
    const view = jobView(await this.transport.get(pathOf(id)));
    // A credential of all tenants sees them all: this scheduler acts for one.
    if (this.scope !== "everyone" && view.tenant !== this.scope.tenant) throw pawlError("job_unknown", { job: id });
    return view;
  }

  list(filter?: JobFilter, page?: PageOptions): PagedList<JobView> {
    return pagedList(page, async (one) => {
      const query = { ...queryOf(this.scope, filter), ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/jobs", query), jobView);
    });
  }

  history(job: JobRef, page?: PageOptions): PagedList<AttemptView> {
    return this.#parts("history", job, page, attemptView);
  }

  logs(job: JobRef, page?: PageOptions): PagedList<LogView> {
    return this.#parts("logs", job, page, logView);
  }

  #parts<T>(name: "history" | "logs", job: JobRef, page: PageOptions | undefined, view: (item: unknown) => T): PagedList<T> {
    return pagedList(page, async (one) => {
      const query = { ...checkPageOptions(one) };
      return revivedPage(await this.transport.get(`${await this.#own(job)}/${name}`, query), view);
    });
  }

  async explain(job: JobRef): Promise<Explanation> {
    return explanation(await this.transport.get(`${await this.#own(job)}/explain`));
  }

  async count(filter?: JobFilter): Promise<number> {
    return ((await this.transport.get("/v1/jobs/count", queryOf(this.scope, filter))) as { count: number }).count;
  }

  async cancel(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#verb("cancel", job, reasonIn(reason));
  }
  async pause(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#verb("pause", job, reasonIn(reason));
  }
  async resume(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#verb("resume", job, reasonIn(reason));
  }
  async promote(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#verb("promote", job, reasonIn(reason));
  }
  bulk(verb: BulkVerb, filter: JobFilter, how?: BulkOptions): Promise<BulkReport> {
    return changeAll(this, verb, filter, how);
  }
  async restore(): Promise<number> {
    throw pawlError("remote_unsupported", { what: "pawl.jobs.restore" });
  }
  async redrive(job: JobRef, how: RedriveJobOptions = {}): Promise<JobChange> {
    checkKeys(checkObject("how", how), REDRIVE_KEYS, "redrive.");
    if (how.delay !== undefined) checkDuration("delay", how.delay);
    return this.#verb("redrive", job, { ...how, ...reasonIn(how.reason) });
  }
  async delete(job: JobRef, reason?: string): Promise<void> {
    const query = reasonIn(reason);
    await this.transport.json({ method: "DELETE", path: await this.#own(job), query });
  }

  async rerun(job: JobRef): Promise<Job> {
    return this.handle(await this.transport.post(`${await this.#own(job)}/rerun`));
  }

  async wait(job: JobRef, how?: Wait): Promise<JobView> {
    const { wait, signal } = checkWait(how);
    const { clock } = this.transport;
    const id = idFor(job);
    const path = await this.#own(job);
    const end = wait === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + wait;
    const release = keepAlive();
    try {
      for (;;) {
        signal?.throwIfAborted();
        const left = Math.max(0, Math.min(POLL_WAIT_MS, Math.ceil(end - clock.monotonic())));
        const query = { wait: left };
        const call = { method: "GET", path, query, timeout: left + 15_000, pool: "waits" } as const;
        const view = await this.#waited(signal === undefined ? call : { ...call, signal });
        if (view !== undefined && isFinished(view.state)) return view;
        if (clock.monotonic() >= end) throw pawlError("wait_timeout", { job: id, wait });
      }
    } finally {
      release();
    }
  }

  /** Nothing, where too many wait there: then it is asked again later. */
  async #waited(call: ServiceCall): Promise<JobView | undefined> {
    try {
      return jobView(await this.transport.json(call));
    } catch (error) {
      if (!isPawlError(error, "too_many_requests")) throw error;
      const { retryAfter } = error.details;
      await keepAliveFor(this.transport.clock, typeof retryAfter === "number" ? retryAfter : RETRY_MS);
      return undefined;
    }
  }

  async result(job: JobRef, how?: Wait): Promise<unknown> {
    const { id, state, output, failure } = await this.wait(job, how);
    if (state === "succeeded") return output;
    throw pawlError("job_failed", { job: id, state, reason: failure?.message ?? "no reason is recorded" }, failure);
  }

  /** A handle of what the service says was enqueued. */
  handle<Out>(answer: unknown): Job<Out> {
    const { task, ...stored } = answer as StoredJob & { readonly task: string };
    return new JobHandle<Out>(this, task, stored);
  }

  async #verb(verb: string, job: JobRef, body: object = {}): Promise<JobChange> {
    return (await this.transport.post(`${await this.#own(job)}/${verb}`, body)) as JobChange;
  }

  /** Where the job is, if it is this scheduler's to see. */
  async #own(job: JobRef): Promise<string> {
    const id = idFor(job);
    if (this.scope !== "everyone") await this.get(id);
    return pathOf(id);
  }
}

export function queryOf(scope: Scope, filter: JobFilter | undefined): Readonly<Record<string, unknown>> {
  checkFilter(scope, filter);
  return { ...filter, ...(scope === "everyone" ? {} : { tenant: scope.tenant }) };
}

const REDRIVE_KEYS: ReadonlySet<string> = new Set(["input", "delay", "reason"] satisfies (keyof RedriveJobOptions)[]);

function reasonIn(reason: string | undefined): { readonly reason?: string } {
  const checked = checkOptionalReason(reason);
  return checked === undefined ? {} : { reason: checked };
}

function pathOf(id: JobId): string {
  return `/v1/jobs/${id}`;
}

function idFor(job: JobRef): JobId {
  const id = jobIdOf(job);
  if (id === undefined || !isJobId(id)) throw pawlError("job_unknown", { job: shortened(typeof job === "object" && job !== null ? job.id : job) });
  return id;
}
