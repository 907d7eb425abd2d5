import { isPawlError } from "../core/error.js";
import type { JobId } from "../core/id.js";
import type { StoredBatch } from "./batch.js";
import type { Stored } from "./enqueuer.js";
import type { Explanation } from "./explain.js";
import type { Batch, Job, JobChange, Jobs, RedriveHow, WaitOptions } from "./scheduler.js";
import type { AttemptView, JobView, LogView } from "./view.js";

/** A handle is small, since `enqueueMany` makes many: an id, and the scheduler's own `jobs` to ask. */
export class JobHandle<Out> implements Job<Out> {
  readonly id: JobId;
  readonly task: string;
  readonly enqueued: Stored["enqueued"];
  declare readonly replaced?: JobId;
  readonly #jobs: Jobs;

  constructor(jobs: Jobs, task: string, stored: Stored) {
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
  history(): Promise<readonly AttemptView[]> {
    return this.#jobs.history(this.id);
  }
  logs(): Promise<readonly LogView[]> {
    return this.#jobs.logs(this.id);
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
  retry(): Promise<JobChange> {
    return this.#jobs.retry(this.id);
  }
  redrive(how?: RedriveHow): Promise<JobChange> {
    return this.#jobs.redrive(this.id, how);
  }
  drop(): Promise<JobChange> {
    return this.#jobs.drop(this.id);
  }
}

export function batchOf(jobs: Jobs, { repeated, answers }: StoredBatch): Batch {
  return { repeated, answers: answers.map((answer) => (isPawlError(answer) ? { error: answer } : new JobHandle(jobs, answer.task, answer))) };
}
