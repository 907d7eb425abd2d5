import { BOUNDS } from "../core/bounds.js";
import { cut } from "../core/cut.js";
import { isPawlError, pawlError } from "../core/error.js";
import { isJobId, type JobId } from "../core/id.js";
import { isFinished } from "../core/job.js";
import { keepAlive, restFor } from "../runtime/alive.js";
import { checkDuration, checkKeys, checkObject, invalid, show, told } from "../scheduler/check.js";
import type { Stored } from "../scheduler/enqueuer.js";
import type { Explanation } from "../scheduler/explain.js";
import { checkFilter, checkPage, checkPart } from "../scheduler/filter.js";
import { idOf } from "../scheduler/given.js";
import { JobHandle } from "../scheduler/handle.js";
import type { JobReference } from "../scheduler/options.js";
import { allParts } from "../scheduler/pages.js";
import type {
  AttemptPage,
  Job,
  JobChange,
  JobPage,
  Jobs,
  JobsFilter,
  LogPage,
  PartOptions,
  RedriveHow,
  WaitOptions,
} from "../scheduler/scheduler.js";
import type { AttemptView, JobView, LogView } from "../scheduler/view.js";
import type { Scope } from "../store/port.js";
import { attemptView, explanation, jobView, logView } from "./views.js";
import type { Call, Wire } from "./wire.js";

/** ms that one long poll waits; the wait itself may be longer */
const POLL = 25_000;
/** ms, where the service does not say when */
const LATER = 5_000;

/** Jobs by id, through the service. */
export class RemoteJobs implements Jobs {
  constructor(
    private readonly wire: Wire,
    private readonly scope: Scope,
  ) {}

  async get(job: JobReference): Promise<JobView> {
    const id = idFor(job);
    const view = jobView(await this.wire.get(pathOf(id)));
    // A credential of all tenants sees them all: this scheduler acts for one.
    if (this.scope !== "everyone" && view.tenant !== this.scope.tenant) throw pawlError("job_unknown", { job: id });
    return view;
  }

  async list(filter?: JobsFilter, page?: { readonly limit?: number; readonly after?: string }): Promise<JobPage> {
    const { bytes: _, ...asked } = checkPage(page);
    return pageOf(await this.wire.get("/v1/jobs", { ...queryOf(this.scope, filter), ...asked }));
  }

  async history(job: JobReference): Promise<readonly AttemptView[]> {
    return allParts(async (after) => {
      const { attempts: items, ...next } = await this.historyPage(job, { after });
      return { items, ...next };
    });
  }

  async historyPage(job: JobReference, page?: PartOptions): Promise<AttemptPage> {
    const { limit, after } = checkPart(page);
    const { attempts, ...next } = (await this.wire.get(`${await this.#own(job)}/history`, { limit, after })) as unknown as AttemptPage;
    return { attempts: attempts.map(attemptView), ...next };
  }

  async logs(job: JobReference): Promise<readonly LogView[]> {
    return allParts(async (after) => {
      const { lines: items, ...next } = await this.logPage(job, { after });
      return { items, ...next };
    });
  }

  async logPage(job: JobReference, page?: PartOptions): Promise<LogPage> {
    const { limit, after } = checkPart(page);
    const { lines, ...next } = (await this.wire.get(`${await this.#own(job)}/logs`, { limit, after })) as unknown as LogPage;
    return { lines: lines.map(logView), ...next };
  }

  async explain(job: JobReference): Promise<Explanation> {
    return explanation(await this.wire.get(`${await this.#own(job)}/explain`));
  }

  async cancel(job: JobReference, reason?: string): Promise<JobChange> {
    if (reason !== undefined && (typeof reason !== "string" || reason.trim() === "")) throw invalid("reason", `${show(reason)} says nothing`);
    return this.#verb("cancel", job, reason === undefined ? {} : { reason: cut(reason, BOUNDS.reason) });
  }
  pause(job: JobReference): Promise<JobChange> {
    return this.#verb("pause", job);
  }
  resume(job: JobReference): Promise<JobChange> {
    return this.#verb("resume", job);
  }
  retry(job: JobReference): Promise<JobChange> {
    return this.#verb("retry", job);
  }
  async redrive(job: JobReference, how: RedriveHow = {}): Promise<JobChange> {
    checkKeys(checkObject("how", how), REDRIVE_KEYS, "redrive.");
    if (how.delay !== undefined) checkDuration("delay", how.delay);
    return this.#verb("redrive", job, how);
  }
  async drop(job: JobReference): Promise<JobChange> {
    return (await this.wire.json({ method: "DELETE", path: await this.#own(job) })) as JobChange;
  }

  async replay(job: JobReference): Promise<Job> {
    return this.handle(await this.wire.post(`${await this.#own(job)}/replay`));
  }

  async wait(job: JobReference, options: WaitOptions = {}): Promise<JobView> {
    checkKeys(checkObject("options", options), WAIT_KEYS);
    const { signal } = options;
    const timeout = options.timeout === undefined ? undefined : checkDuration("timeout", options.timeout);
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("signal", "it is not an AbortSignal");
    const { clock } = this.wire;
    const id = idFor(job);
    const path = await this.#own(job);
    const end = timeout === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + timeout;
    const release = keepAlive();
    try {
      for (;;) {
        signal?.throwIfAborted();
        const left = Math.max(0, Math.min(POLL, Math.ceil(end - clock.monotonic())));
        const query = { timeout: left };
        const call = { method: "GET", path: `${path}/wait`, query, timeout: left + 15_000, pool: "waits" } as const;
        const view = await this.#waited(signal === undefined ? call : { ...call, signal });
        if (view !== undefined && isFinished(view.state)) return view;
        if (clock.monotonic() >= end) throw pawlError("wait_timeout", { job: id, timeout });
      }
    } finally {
      release();
    }
  }

  /** Nothing, where too many wait there: then it is asked again later. */
  async #waited(call: Call): Promise<JobView | undefined> {
    try {
      return jobView(await this.wire.json(call));
    } catch (error) {
      if (!isPawlError(error, "too_many_requests")) throw error;
      const { retryAfter } = error.details;
      await restFor(this.wire.clock, typeof retryAfter === "number" ? retryAfter : LATER);
      return undefined;
    }
  }

  async result(job: JobReference, options?: WaitOptions): Promise<unknown> {
    const { id, state, output, failure } = await this.wait(job, options);
    if (state === "succeeded") return output;
    throw pawlError("job_failed", { job: id, state, reason: failure?.message ?? "no reason is recorded" }, failure);
  }

  /** A handle of what the service says was enqueued. */
  handle<Out>(told: unknown): Job<Out> {
    const { task, ...stored } = told as Stored & { readonly task: string };
    return new JobHandle<Out>(this, task, stored);
  }

  async #verb(verb: string, job: JobReference, body: object = {}): Promise<JobChange> {
    return (await this.wire.post(`${await this.#own(job)}/${verb}`, body)) as JobChange;
  }

  /** Where the job is, if it is this scheduler's to see. */
  async #own(job: JobReference): Promise<string> {
    const id = idFor(job);
    if (this.scope !== "everyone") await this.get(id);
    return pathOf(id);
  }
}

export function queryOf(scope: Scope, filter: JobsFilter | undefined): Readonly<Record<string, unknown>> {
  checkFilter(scope, filter);
  return { ...filter, ...(scope === "everyone" ? {} : { tenant: scope.tenant }) };
}

export function pageOf(told: unknown): JobPage {
  const { jobs, next } = told as { readonly jobs: readonly unknown[]; readonly next?: JobId };
  return { jobs: jobs.map(jobView), ...(next === undefined ? {} : { next }) };
}

const WAIT_KEYS: ReadonlySet<string> = new Set<keyof WaitOptions>(["timeout", "signal"]);
const REDRIVE_KEYS: ReadonlySet<string> = new Set<keyof RedriveHow>(["input", "delay"]);

function pathOf(id: JobId): string {
  return `/v1/jobs/${id}`;
}

function idFor(job: JobReference): JobId {
  const id = idOf(job);
  if (id === undefined || !isJobId(id)) throw pawlError("job_unknown", { job: told(typeof job === "object" && job !== null ? job.id : job) });
  return id;
}
