import type { JobId } from "../../core/jobs/id.js";
import { isPawlError } from "../../core/values/error.js";
import type { StoredJob } from "../enqueue/enqueuer.js";
import type { StoredItems } from "../enqueue/item-enqueuer.js";
import type { Explanation } from "../observe/explain.js";
import type { PagedList, PageOptions } from "../page.js";
import type { EnqueueAllResult, Job, JobChange, Jobs, RedriveJobOptions, Wait } from "../scheduler.js";
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
  result(how?: Wait): Promise<Out> {
    return this.#jobs.result(this.id, how) as Promise<Out>;
  }
  wait(how?: Wait): Promise<JobView<Out>> {
    return this.#jobs.wait(this.id, how) as Promise<JobView<Out>>;
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
  pause(reason?: string): Promise<JobChange> {
    return this.#jobs.pause(this.id, reason);
  }
  resume(reason?: string): Promise<JobChange> {
    return this.#jobs.resume(this.id, reason);
  }
  promote(reason?: string): Promise<JobChange> {
    return this.#jobs.promote(this.id, reason);
  }
  redrive(how?: RedriveJobOptions): Promise<JobChange> {
    return this.#jobs.redrive(this.id, how);
  }
  rerun(): Promise<Job<Out>> {
    return this.#jobs.rerun(this.id) as Promise<Job<Out>>;
  }
  delete(reason?: string): Promise<void> {
    return this.#jobs.delete(this.id, reason);
  }
}

export function enqueueAllResultOf(jobs: Jobs, { repeated, results }: StoredItems): EnqueueAllResult {
  return { repeated, results: results.map((answer) => (isPawlError(answer) ? { error: answer } : new JobHandle(jobs, answer.task, answer))) };
}
