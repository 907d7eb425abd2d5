import { BOUNDS } from "../core/bounds.js";
import { cut } from "../core/cut.js";
import { pawlError } from "../core/error.js";
import type { JobId } from "../core/id.js";
import { isFinished, type JobOptions, type JobRecord } from "../core/job.js";
import type { Verb } from "../core/lifecycle.js";
import { isSealed, SEALED_VALUE } from "../core/sealed.js";
import type { Scope, Store } from "../store/port.js";
import type { Change, RedriveOptions } from "../store/port-jobs.js";
import type { PartRequest } from "../store/port-pages.js";
import { checkDuration, checkKeys, checkObject, checkText, invalid, show, told } from "./check.js";
import type { Enqueuer } from "./enqueuer.js";
import { type Explanation, explainJob } from "./explain.js";
import { checkFilter, checkPage, checkPart } from "./filter.js";
import { idOf } from "./given.js";
import { JobHandle } from "./handle.js";
import { encodeInput } from "./input.js";
import type { JobReference } from "./options.js";
import { allParts, fullPage, type Part, partWithNext } from "./pages.js";
import type { Redact } from "./redact.js";
import type { Registry } from "./registry.js";
import type { AttemptPage, Job, JobChange, JobPage, Jobs, JobsFilter, LogPage, PartOptions, RedriveHow, WaitOptions } from "./scheduler.js";
import { type AttemptView, attemptView, type JobView, type LogView, logView, viewOf } from "./view.js";
import type { Waiters } from "./waiters.js";

export interface JobsParts {
  readonly store: Store;
  readonly scope: Scope;
  readonly registry: Registry;
  readonly enqueuer: Enqueuer;
  readonly waiters: Waiters;
  readonly redact?: Redact;
  /** whose share of the checks of inputs it uses */
  readonly caller?: string;
}

/** Jobs by id, in one scope: names the job, asks the store, and puts its answer as a value or a coded error. */
export class ScopedJobs implements Jobs {
  readonly #parts: JobsParts;

  constructor(parts: JobsParts) {
    this.#parts = parts;
  }

  async get(job: JobReference): Promise<JobView> {
    return viewOf(await this.#record(idFor(job)), this.#parts.scope);
  }

  async list(filter?: JobsFilter, page?: { readonly limit?: number; readonly after?: string }): Promise<JobPage> {
    const { store, scope, redact = (view) => view } = this.#parts;
    const which = checkFilter(scope, filter);
    const { jobs, next } = await fullPage(store.jobs, which.scope, which.filter, checkPage(page));
    return { jobs: jobs.map((record) => redact(viewOf(record, scope))), ...(next === undefined ? {} : { next }) };
  }

  async history(job: JobReference): Promise<readonly AttemptView[]> {
    return allParts(async (after) => {
      const { attempts: items, ...next } = await this.historyPage(job, { after });
      return { items, ...next };
    });
  }

  async historyPage(job: JobReference, page?: PartOptions): Promise<AttemptPage> {
    const { items, ...next } = await this.#part(job, page, (scope, id, part) => this.#parts.store.jobs.history(scope, id, part));
    return { attempts: items.map((record) => attemptView(record, this.#parts.scope)), ...next };
  }

  async logs(job: JobReference): Promise<readonly LogView[]> {
    return allParts(async (after) => {
      const { lines: items, ...next } = await this.logPage(job, { after });
      return { items, ...next };
    });
  }

  async logPage(job: JobReference, page?: PartOptions): Promise<LogPage> {
    const { items, ...next } = await this.#part(job, page, (scope, id, part) => this.#parts.store.jobs.logs(scope, id, part));
    return { lines: items.map(logView), ...next };
  }

  async #part<T>(
    job: JobReference,
    page: PartOptions | undefined,
    read: (scope: Scope, id: JobId, part: PartRequest) => Promise<readonly T[]>,
  ): Promise<Part<T>> {
    const id = idFor(job);
    const part = await partWithNext((asked) => read(this.#parts.scope, id, asked), checkPart(page));
    if (part.items.length === 0) await this.#record(id);
    return part;
  }

  async explain(job: JobReference): Promise<Explanation> {
    const id = idFor(job);
    const { store, scope } = this.#parts;
    const explanation = await explainJob(store, scope, id);
    if (explanation === undefined) throw pawlError("job_unknown", { job: id });
    return explanation;
  }

  cancel(job: JobReference, reason = "cancelled"): Promise<JobChange> {
    return this.#change("cancel", job, (scope, id) => this.#parts.store.jobs.cancel(scope, id, checkReason(reason)));
  }
  pause(job: JobReference): Promise<JobChange> {
    return this.#change("pause", job, (scope, id) => this.#parts.store.jobs.pause(scope, id));
  }
  resume(job: JobReference): Promise<JobChange> {
    return this.#change("resume", job, (scope, id) => this.#parts.store.jobs.resume(scope, id));
  }
  retry(job: JobReference): Promise<JobChange> {
    return this.#change("retry", job, (scope, id) => this.#parts.store.jobs.retry(scope, id));
  }
  drop(job: JobReference): Promise<JobChange> {
    return this.#change("drop", job, (scope, id) => this.#parts.store.jobs.drop(scope, id));
  }

  async redrive(job: JobReference, how: RedriveHow = {}): Promise<JobChange> {
    checkKeys(checkObject("how", how), REDRIVE_KEYS, "redrive.");
    return this.#change("redrive", job, async (scope, id) => this.#parts.store.jobs.redrive(scope, id, await this.#redriveOptions(id, how)));
  }

  async replay(job: JobReference): Promise<Job> {
    const { id, lane, state, input, options } = await this.#record(idFor(job));
    if (!isFinished(state)) throw pawlError("job_state", { job: id, state, verb: "replay" });
    if (isSealed(input)) throw unreadable("the input", id);
    // The key says which jobs are the same; a replay is meant to be another one. And it is for now, not one of a herd, nor part of what the first was.
    const { key: _, spread: __, trace: ___, ...kept } = options;
    const repeated: JobOptions = { ...kept, replayOf: id };
    const stored = await this.#parts.enqueuer.add({ lane, options: repeated }, input);
    return new JobHandle(this, lane.task, stored);
  }

  async wait(job: JobReference, options?: WaitOptions): Promise<JobView> {
    const { waiters, scope } = this.#parts;
    return viewOf(await waiters.wait(scope, idFor(job), options), scope);
  }

  async result(job: JobReference, options?: WaitOptions): Promise<unknown> {
    const { id, state, output, failure, sealed } = await this.wait(job, options);
    if (sealed === true && output === SEALED_VALUE) throw unreadable("the output", id);
    if (state === "succeeded") return output;
    throw pawlError("job_failed", { job: id, state, reason: failure?.message ?? "no reason is recorded" }, failure);
  }

  async #redriveOptions(id: JobId, { input, delay }: RedriveHow): Promise<RedriveOptions> {
    return {
      ...(input === undefined ? {} : { input: await this.#encode((await this.#record(id)).lane.task, input) }),
      ...(delay === undefined ? {} : { delay: checkDuration("delay", delay) }),
    };
  }

  async #encode(task: string, input: unknown): Promise<string> {
    const { registry, caller } = this.#parts;
    return encodeInput(task, (registry.get(task) ?? (await registry.directory.find(task))).schema, input, caller);
  }

  async #record(id: JobId): Promise<JobRecord> {
    const { store, scope } = this.#parts;
    const record = await store.jobs.get(scope, id);
    if (record === undefined) throw pawlError("job_unknown", { job: id });
    return record;
  }

  async #change(verb: Verb, job: JobReference, ask: (scope: Scope, id: JobId) => Promise<Change>): Promise<JobChange> {
    const id = idFor(job);
    const change = await ask(this.#parts.scope, id);
    switch (change.kind) {
      case "changed":
        return { from: change.from, to: change.to };
      case "unknown":
        throw pawlError("job_unknown", { job: id });
      case "refused":
        throw pawlError("job_state", { job: id, state: change.state, verb });
    }
  }
}

const REDRIVE_KEYS = new Set(["input", "delay"]);

function checkReason(reason: unknown): string {
  if (typeof reason !== "string" || reason.trim() === "") throw invalid("reason", `${show(reason)} says nothing`);
  return cut(checkText("reason", reason), BOUNDS.reason);
}

/** What cannot be an id is as unknown as one that is nobody's. */
function idFor(job: JobReference): JobId {
  const id = idOf(job);
  if (id === undefined) throw pawlError("job_unknown", { job: told(typeof job === "object" && job !== null ? job.id : job) });
  return id;
}

function unreadable(what: string, job: JobId) {
  return pawlError("payload_unreadable", { what, job, reason: "its key is not here, or gone" });
}
