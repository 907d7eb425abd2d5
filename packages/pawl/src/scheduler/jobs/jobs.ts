import { ENCRYPTED_VALUE, isEncrypted } from "../../core/access/encrypted-value.js";
import type { JobId } from "../../core/jobs/id.js";
import { isFinished, type JobOptions, type JobRecord } from "../../core/jobs/job.js";
import type { Verb } from "../../core/jobs/lifecycle.js";
import { pawlError } from "../../core/values/error.js";
import type { ExportedJob } from "../../store/port/duties/duties.js";
import type { Scope, Store } from "../../store/port/index.js";
import type { JobChangeResult, RedriveOptions } from "../../store/port/jobs/jobs.js";
import type { PartRequest } from "../../store/port/jobs/pages.js";
import { checkArray, checkDuration, checkKeys, checkObject, shortened } from "../check.js";
import { encodeInput } from "../enqueue/encode-input.js";
import type { Enqueuer } from "../enqueue/enqueuer.js";
import { jobIdOf } from "../enqueue/read-options.js";
import type { TaskRegistry } from "../enqueue/task-registry.js";
import { type Explanation, explainJob } from "../observe/explain.js";
import type { JobRef } from "../options.js";
import { type CursorFormat, type PagedList, type PageOptions, pagedList } from "../page.js";
import type { BulkOptions, BulkReport, BulkVerb, Job, JobChange, JobFilter, Jobs, RedriveJobOptions, Wait } from "../scheduler.js";
import { changeAll } from "./bulk-change.js";
import { checkOptionalReason, checkReason } from "./check-reason.js";
import { countJobs } from "./count-jobs.js";
import { checkFilter, checkJobsPage, checkPartPage } from "./filter.js";
import { JobHandle } from "./handle.js";
import { fullPage, HISTORY_CURSOR, JOBS_CURSOR, LOGS_CURSOR, partPage } from "./pages.js";
import type { Redact } from "./redact.js";
import { type AttemptView, attemptView, type JobView, jobView, type LogView, logView } from "./view.js";
import type { JobWaiters } from "./waiters.js";

export interface JobsDeps {
  readonly store: Store;
  readonly scope: Scope;
  readonly registry: TaskRegistry;
  readonly enqueuer: Enqueuer;
  readonly waiters: JobWaiters;
  readonly redact?: Redact;
  /** whose share of the checks of inputs it uses */
  readonly caller?: string;
}

/** Jobs by id, in one scope: names the job, asks the store, and puts its answer as a value or a coded error. */
export class ScopedJobs implements Jobs {
  readonly #deps: JobsDeps;

  constructor(deps: JobsDeps) {
    this.#deps = deps;
  }

  async get(job: JobRef): Promise<JobView> {
    return jobView(await this.#record(requireJobId(job)), this.#deps.scope);
  }

  list(filter?: JobFilter, page?: PageOptions): PagedList<JobView> {
    const { store, scope, redact = (view) => view } = this.#deps;
    return pagedList(page, async (one) => {
      const which = checkFilter(scope, filter);
      const { jobs, next } = await fullPage(store.jobs, which.scope, which.filter, checkJobsPage(one));
      return { items: jobs.map((record) => redact(jobView(record, scope))), ...(next === undefined ? {} : { next: JOBS_CURSOR.encode(next) }) };
    });
  }

  history(job: JobRef, page?: PageOptions): PagedList<AttemptView> {
    const { store, scope } = this.#deps;
    const read = (id: JobId, part: PartRequest) => store.jobs.history(scope, id, part);
    return this.#parts(job, page, HISTORY_CURSOR, read, (record) => attemptView(record, scope));
  }

  logs(job: JobRef, page?: PageOptions): PagedList<LogView> {
    const { store, scope } = this.#deps;
    return this.#parts(job, page, LOGS_CURSOR, (id, part) => store.jobs.logs(scope, id, part), logView);
  }

  #parts<T, V>(
    job: JobRef,
    page: PageOptions | undefined,
    format: CursorFormat<number>,
    read: (id: JobId, part: PartRequest) => Promise<readonly T[]>,
    view: (item: T) => V,
  ): PagedList<V> {
    return pagedList(page, async (one) => {
      const id = requireJobId(job);
      const { items, ...next } = await partPage(format, (part) => read(id, part), checkPartPage(one, format));
      if (items.length === 0) await this.#record(id);
      return { items: items.map(view), ...next };
    });
  }

  async explain(job: JobRef): Promise<Explanation> {
    const id = requireJobId(job);
    const { store, scope } = this.#deps;
    const explanation = await explainJob(store, scope, id);
    if (explanation === undefined) throw pawlError("job_unknown", { job: id });
    return explanation;
  }

  cancel(job: JobRef, reason = "cancelled"): Promise<JobChange> {
    return this.#change("cancel", job, (scope, id) => this.#deps.store.jobs.cancel(scope, id, checkReason(reason)));
  }
  pause(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#change("pause", job, (scope, id) => this.#deps.store.jobs.pause(scope, id, checkOptionalReason(reason)));
  }
  resume(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#change("resume", job, (scope, id) => this.#deps.store.jobs.resume(scope, id, checkOptionalReason(reason)));
  }
  promote(job: JobRef, reason?: string): Promise<JobChange> {
    return this.#change("promote", job, (scope, id) => this.#deps.store.jobs.promote(scope, id, checkOptionalReason(reason)));
  }
  async delete(job: JobRef, reason?: string): Promise<void> {
    await this.#change("delete", job, (scope, id) => this.#deps.store.jobs.delete(scope, id, checkOptionalReason(reason)));
  }

  async count(filter?: JobFilter): Promise<number> {
    const { store, scope } = this.#deps;
    const which = checkFilter(scope, filter);
    return countJobs(store, which.scope, which.filter);
  }

  bulk(verb: BulkVerb, filter: JobFilter, how?: BulkOptions): Promise<BulkReport> {
    return changeAll(this, verb, filter, how);
  }

  restore(jobs: readonly ExportedJob[]): Promise<number> {
    const { store, scope } = this.#deps;
    if (scope !== "everyone") throw pawlError("all_tenants_only", { what: "restoring jobs" });
    return store.jobs.restore(checkArray("jobs", jobs) as readonly ExportedJob[]);
  }

  async redrive(job: JobRef, how: RedriveJobOptions = {}): Promise<JobChange> {
    checkKeys(checkObject("how", how), REDRIVE_KEYS, "redrive.");
    return this.#change("redrive", job, async (scope, id) => this.#deps.store.jobs.redrive(scope, id, await this.#redriveOptions(id, how)));
  }

  async rerun(job: JobRef): Promise<Job> {
    const { id, lane, state, input, options } = await this.#record(requireJobId(job));
    if (!isFinished(state)) throw pawlError("job_state_conflict", { job: id, state, verb: "rerun" });
    if (isEncrypted(input)) throw payloadUndecryptable("the input", id);
    // The key says which jobs are the same; a replay is meant to be another one. And it is for now, not one of a herd, nor part of what the first was.
    const { uniqueKey: _, spread: __, trace: ___, ...kept } = options;
    const repeated: JobOptions = { ...kept, rerunOf: id };
    const stored = await this.#deps.enqueuer.add({ lane, options: repeated }, input);
    return new JobHandle(this, lane.task, stored);
  }

  async wait(job: JobRef, how?: Wait): Promise<JobView> {
    const { waiters, scope } = this.#deps;
    return jobView(await waiters.wait(scope, requireJobId(job), how), scope);
  }

  async result(job: JobRef, how?: Wait): Promise<unknown> {
    const { id, state, output, failure, encrypted } = await this.wait(job, how);
    if (encrypted === true && output === ENCRYPTED_VALUE) throw payloadUndecryptable("the output", id);
    if (state === "succeeded") return output;
    throw pawlError("job_failed", { job: id, state, reason: failure?.message ?? "no reason is recorded" }, failure);
  }

  async #redriveOptions(id: JobId, { input, delay, reason }: RedriveJobOptions): Promise<RedriveOptions> {
    return {
      ...(input === undefined ? {} : { input: await this.#encode((await this.#record(id)).lane.task, input) }),
      ...(delay === undefined ? {} : { delay: checkDuration("delay", delay) }),
      ...(reason === undefined ? {} : { reason: checkReason(reason) }),
    };
  }

  async #encode(task: string, input: unknown): Promise<string> {
    const { registry, caller } = this.#deps;
    return encodeInput(task, (registry.get(task) ?? (await registry.published.find(task))).schema, input, caller);
  }

  async #record(id: JobId): Promise<JobRecord> {
    const { store, scope } = this.#deps;
    const record = await store.jobs.get(scope, id);
    if (record === undefined) throw pawlError("job_unknown", { job: id });
    return record;
  }

  async #change(verb: Verb, job: JobRef, ask: (scope: Scope, id: JobId) => Promise<JobChangeResult>): Promise<JobChange> {
    const id = requireJobId(job);
    const change = await ask(this.#deps.scope, id);
    switch (change.kind) {
      case "changed":
        return { from: change.from, to: change.to };
      case "unknown":
        throw pawlError("job_unknown", { job: id });
      case "refused":
        throw pawlError("job_state_conflict", { job: id, state: change.state, verb });
    }
  }
}

const REDRIVE_KEYS = new Set(["input", "delay", "reason"] satisfies (keyof RedriveJobOptions)[]);

/** What cannot be an id is as unknown as one that is nobody's. */
function requireJobId(job: JobRef): JobId {
  const id = jobIdOf(job);
  if (id === undefined) throw pawlError("job_unknown", { job: shortened(typeof job === "object" && job !== null ? job.id : job) });
  return id;
}

function payloadUndecryptable(what: string, job: JobId) {
  return pawlError("payload_undecryptable", { what, job, reason: "its key is not here, or gone" });
}
