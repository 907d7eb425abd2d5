import type { JobId } from "../../core/jobs/id.js";
import { isPawlError } from "../../core/values/error.js";
import type { StoredJob } from "../enqueue/enqueuer.js";
import type { StoredItems } from "../enqueue/item-enqueuer.js";
import type { Explanation } from "../observe/explain.js";
import type { PagedList, PageOptions } from "../page.js";
import type { EnqueueAllResult, Job, JobChange, Jobs, RedriveJobOptions, WaitOptions } from "../scheduler.js";
import type { AttemptView, JobView, LogView } from "./view.js";

/** A handle is small, since `enqueueMany` makes many: an id, and the scheduler's own `jobs` to ask. */
export class JobHandle<Out> implements Job<Out> {
  readonly id: JobId;
  readonly task: string;
  readonly enqueued: StoredJob["enqueued"];
  declare readonly replaced?: JobId;
  readonly #jobs: Jobs;

  constructor(jobs: Jobs, task: string, stored: StoredJob) {
    this.#jobs = jobs;
    this.id = stored.id;
    this.task = task;
    this.enqueued = stored.enqueued;
    if (stored.replaced !== undefined) this.replaced = stored.replaced;
  }

  get(): Promise<JobView<Out>> {
    return this.#jobs.get(this.id) as Promise<JobView<Out>>;
  }
  result(options?: WaitOptions): Promise<Out> {
    return this.#jobs.result(this.id, options) as Promise<Out>;
  }
  history(page?: PageOptions): PagedList<AttemptView> {
    return this.#jobs.history(this.id, page);
  }
  logs(page?: PageOptions): PagedList<LogView> {
    return this.#jobs.logs(this.id, page);
  }
  explain(): Promise<Explanation> {
    return this.#jobs.explain(this.id);
  }
  cancel(reason?: string): Promise<JobChange> {
    return this.#jobs.cancel(this.id, reason);
  }
  pause(): Promise<JobChange> {
    return this.#jobs.pause(this.id);
  }
  resume(): Promise<JobChange> {
    return this.#jobs.resume(this.id);
  }
  promote(): Promise<JobChange> {
    return this.#jobs.promote(this.id);
  }
  redrive(how?: RedriveJobOptions): Promise<JobChange> {
    return this.#jobs.redrive(this.id, how);
  }
  delete(): Promise<void> {
    return this.#jobs.delete(this.id);
  }
}

export function enqueueAllResultOf(jobs: Jobs, { repeated, results }: StoredItems): EnqueueAllResult {
  return { repeated, results: results.map((answer) => (isPawlError(answer) ? { error: answer } : new JobHandle(jobs, answer.task, answer))) };
}
