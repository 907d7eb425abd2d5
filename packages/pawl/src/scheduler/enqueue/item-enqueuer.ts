import type { Enqueued, NewJob } from "../../core/jobs/job.js";
import type { AnyTask } from "../../core/jobs/task.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { type ErrorCode, type ErrorDetails, isPawlError, type PawlError, pawlError } from "../../core/values/error.js";
import type { Scope } from "../../store/port/index.js";
import { checkArray, checkBoolean, checkKeys, checkObject, invalid, show } from "../check.js";
import { withSpan } from "../observe/tracing.js";
import type { EnqueueAllOptions, EnqueueItem, EnqueueOptions } from "../options.js";
import { encodeInput } from "./encode-input.js";
import { dependencyUnknownError, type EnqueueDeps, type StoredJob, storedJobOf, withStoredCount } from "./enqueuer.js";
import { checkIdempotencyKey, idempotencyKeyOfBatch, idempotencyKeyReusedError } from "./idempotency-key.js";
import { JobPlanner, jobFromPlan, type PlannedJob, type TaskLike } from "./job-plan.js";
import { planForInput } from "./plan-for-input.js";
import { checkOptionName } from "./read-options.js";
import type { TaskRegistry } from "./task-registry.js";

/** What became of each: stored, or what is wrong with it. */
export interface StoredItems {
  readonly repeated: boolean;
  readonly results: readonly (StoredItem | PawlError)[];
}
export interface StoredItem extends StoredJob {
  readonly task: string;
}

type PreparedItem = NewJob | PawlError;

/** A job of a batch, with its options apart from its task and input. */
export interface BatchJob {
  readonly task: AnyTask | string;
  readonly input: unknown;
  readonly options: EnqueueOptions | undefined;
}

const JOB_FIELDS = ["task", "input"] as const satisfies readonly (keyof EnqueueItem)[];
const OPTION_KEYS: ReadonlySet<string> = new Set(["idempotencyKey", "atomic", "trace"] satisfies readonly (keyof EnqueueAllOptions)[]);

/** Stores jobs of any tasks in one step, and answers for each of them. */
export class ItemEnqueuer {
  readonly #planner: JobPlanner;
  /** whose idempotency keys they are */
  readonly #tenant: string;

  constructor(
    private readonly deps: EnqueueDeps,
    scope: Scope,
  ) {
    const tenant = scope === "everyone" ? undefined : scope.tenant;
    this.#planner = new JobPlanner(deps.queues, tenant);
    this.#tenant = tenant ?? "";
  }

  async enqueue(items: readonly EnqueueItem[], options: EnqueueAllOptions = {}): Promise<StoredItems> {
    const { jobs, task, idempotencyKey, atomic } = checkItems(items, options);
    return withSpan(
      this.deps.tracing,
      { task, verb: "enqueueAll" },
      options,
      (own) => this.#enqueue(jobs, idempotencyKey, atomic, own?.trace),
      ({ results }) => ({ jobs: results.length }),
    );
  }

  async #enqueue(
    jobs: readonly BatchJob[],
    idempotencyKey: string | undefined,
    atomic: boolean,
    trace: EnqueueAllOptions["trace"],
  ): Promise<StoredItems> {
    const prepared = await this.#prepare(jobs, trace);
    if (atomic) throwFirst(prepared);
    const validJobs = prepared.filter((one): one is NewJob => !isPawlError(one));
    checkSize(validJobs);
    const batch = await this.#store(validJobs, idempotencyKey, atomic, prepared);
    if (!atomic) return batch;
    const failed = batch.results.find((answer) => isPawlError(answer));
    if (failed !== undefined)
      throw withStoredCount(failed, batch.results.filter((answer) => "enqueued" in answer && answer.enqueued === "created").length);
    return batch;
  }

  /** What can be wrong with a job is found before anything is stored. */
  async #prepare(jobs: readonly BatchJob[], trace: EnqueueAllOptions["trace"]): Promise<readonly PreparedItem[]> {
    const tasks = new Map<AnyTask | string, TaskLike | PawlError>();
    let last: { readonly task: TaskLike; readonly options: EnqueueOptions | undefined; readonly planned: PlannedJob } | undefined;
    const planOf = (task: TaskLike, options: EnqueueOptions | undefined): PlannedJob => {
      // Neighbours of one task with equal options are planned once.
      if (last?.task === task && areEqual(last.options, options)) return last.planned;
      const optionsWithTrace = trace === undefined ? options : { trace, ...options };
      if (optionsWithTrace?.tx !== undefined) throw invalid("tx", "a batch is stored in a transaction of its own");
      const planned = this.#planner.plan(task, optionsWithTrace);
      last = { task, options, planned };
      return planned;
    };
    const prepared: PreparedItem[] = [];
    for (const { task: taskOrName, input, options } of jobs) {
      let task = tasks.get(taskOrName);
      if (task === undefined) {
        task = await taskOrRefusal(this.deps.registry, taskOrName);
        tasks.set(taskOrName, task);
      }
      if (isPawlError(task)) prepared.push(task);
      else {
        const job = this.#job(task, input, options, planOf);
        prepared.push(job instanceof Promise ? await job : job);
      }
    }
    return prepared;
  }

  #job(
    task: TaskLike,
    input: unknown,
    options: EnqueueOptions | undefined,
    planOf: (task: TaskLike, options: EnqueueOptions | undefined) => PlannedJob,
  ): PreparedItem | Promise<PreparedItem> {
    try {
      const { plan, limitKeys } = planOf(task, options);
      const text = encodeInput(task.name, task.schema, input, this.deps.caller);
      const limited = planForInput(plan, task, input, limitKeys);
      if (typeof text === "string") return jobFromPlan(limited, this.deps.nextIdSuffix(limited.lane.tenant), text);
      return text.then((late) => jobFromPlan(limited, this.deps.nextIdSuffix(limited.lane.tenant), late)).catch(refusal);
    } catch (error) {
      return refusal(error);
    }
  }

  async #store(validJobs: readonly NewJob[], id: string | undefined, atomic: boolean, prepared: readonly PreparedItem[]): Promise<StoredItems> {
    const { store, write } = this.deps;
    const idempotencyKey = id === undefined ? undefined : idempotencyKeyOfBatch(this.#tenant, id, validJobs);
    const ingestRefusals = await this.#ingestRefusals(validJobs, atomic);
    const admitted = validJobs.filter((_, index) => ingestRefusals[index] === undefined);
    // What is turned away now may be stored already: then that is the answer.
    const earlier = idempotencyKey === undefined || admitted.length === validJobs.length ? undefined : await store.batches.get(idempotencyKey);
    if (earlier === undefined && admitted.length === 0) return { repeated: false, results: resultsInOrder(prepared, ingestRefusals) };
    const batch = earlier ?? (await write(admitted, idempotencyKey === undefined ? undefined : { ...idempotencyKey, ...noteOf(ingestRefusals) }));
    if (batch.kind === "different") throw idempotencyKeyReusedError(id as string);
    const allRefusals = batch.kind === "repeated" ? refusalsIn(batch.note) : ingestRefusals;
    let next = 0;
    const answers = validJobs.map((_, index) => allRefusals[index] ?? batch.answers[next++]);
    return { repeated: batch.kind === "repeated", results: resultsInOrder(prepared, answers) };
  }

  /** Those that an ingest limit does not let in, by place: each for itself, or all if they are to be stored all or none. */
  async #ingestRefusals(jobs: readonly NewJob[], atomic: boolean): Promise<ItemRefusals> {
    const { ingestLimiter } = this.deps;
    if (!atomic) return ingestLimiter.admitEach(jobs);
    try {
      await ingestLimiter.admitAll(jobs);
      return [];
    } catch (error) {
      if (isPawlError(error, "ingest_limited")) return jobs.map(() => error);
      throw error;
    }
  }
}

/** All are stored or none: the first that is wrong is told, with its place. */
function throwFirst(prepared: readonly PreparedItem[]): void {
  for (const [index, one] of prepared.entries()) {
    if (isPawlError(one)) throw pawlError(one.code, { ...one.details, index }, one.cause);
  }
}

/** In the places of the jobs that were sound, what became of them. */
function resultsInOrder(prepared: readonly PreparedItem[], answers: readonly (Enqueued | PawlError | undefined)[]): StoredItems["results"] {
  let next = 0;
  return prepared.map((one) => {
    if (isPawlError(one)) return one;
    const answer = answers[next++] as Enqueued | PawlError;
    if (isPawlError(answer)) return answer;
    const { task } = one.lane;
    if (answer.kind === "dependencyUnknown") return dependencyUnknownError(task, answer.parent);
    return answer.kind === "idempotencyKeyReused"
      ? idempotencyKeyReusedError(String(one.idempotencyKey?.id))
      : { task, ...storedJobOf(answer, task) };
  });
}

/** What is wrong with all of it is thrown; so is a field that no job has, since its job would be another one without it. */
export function checkItems(items: readonly EnqueueItem[], options: EnqueueAllOptions) {
  checkKeys(checkObject("options", options), OPTION_KEYS);
  const { idempotencyKey, atomic = false } = options;
  if (idempotencyKey !== undefined) checkIdempotencyKey(idempotencyKey);
  const jobs = checkJobs(items);
  return { jobs, idempotencyKey, atomic: checkBoolean("atomic", atomic), task: taskOf(jobs) };
}

/** The task, or why there is none. */
export async function taskOrRefusal(registry: TaskRegistry, task: AnyTask | string): Promise<TaskLike | PawlError> {
  try {
    return await registry.find(task);
  } catch (error) {
    if (isPawlError(error, "task_unknown") || isPawlError(error, "name_invalid") || isPawlError(error, "option_invalid")) return error;
    throw error;
  }
}

function checkJobs(items: unknown): readonly BatchJob[] {
  const all = checkArray("jobs", items);
  const maxJobs = BOUNDS.enqueueAll;
  if (all.length === 0 || all.length > maxJobs) throw invalid("jobs", `a batch has 1 to ${maxJobs} jobs, not ${all.length}; enqueueMany takes more`);
  return all.map((item, index) => {
    const { task, input, ...options } = checkObject(`jobs[${index}]`, item) as EnqueueItem;
    const names = Object.keys(options);
    for (const name of names) {
      if (name === "options") throw invalid(`jobs[${index}].options`, "there is no such field: write the options beside task and input");
      checkOptionName(name, `jobs[${index}].`, JOB_FIELDS);
    }
    return { task, input, options: names.length === 0 ? undefined : options };
  });
}

/** Whether two jobs have the same options, value by value. Two objects that only look alike are not equal. */
function areEqual(one: EnqueueOptions | undefined, other: EnqueueOptions | undefined): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined) return false;
  const names = Object.keys(one) as (keyof EnqueueOptions)[];
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && Object.is(one[name], other[name]));
}

function checkSize(jobs: readonly NewJob[]): void {
  const size = jobs.reduce((sum, { input }) => sum + input.length, 0);
  if (size > BOUNDS.statement) throw invalid("jobs", `their inputs come to ${size} characters, over the ${BOUNDS.statement} of a batch`);
}

/** For a trace: the task of all of them, or that there are several. */
function taskOf(jobs: readonly BatchJob[]): string {
  const names = new Set(jobs.map(({ task }) => (typeof task === "string" ? task : (task?.name ?? show(task)))));
  return names.size === 1 ? ([...names][0] as string) : "several";
}

/** What is wrong with a job is its answer; anything else is thrown. */
export function refusal(error: unknown): PawlError {
  if (isPawlError(error)) return error;
  throw error;
}

type ItemRefusals = readonly (PawlError | undefined)[];

/** What an ingest limit refused is kept with the rest: repeated, it is refused alike. (What is wrong by itself is found again.) */
function noteOf(ingestRefusals: ItemRefusals): { readonly note?: string } {
  const entries = ingestRefusals.flatMap((error, index) => (error === undefined ? [] : [[index, error.code, error.details] as const]));
  return entries.length === 0 ? {} : { note: JSON.stringify(entries) };
}

function refusalsIn(note: string | undefined): ItemRefusals {
  const refusals: (PawlError | undefined)[] = [];
  if (note === undefined) return refusals;
  for (const [index, code, details] of JSON.parse(note) as readonly [number, ErrorCode, ErrorDetails][]) refusals[index] = pawlError(code, details);
  return refusals;
}
