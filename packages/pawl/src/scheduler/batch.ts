import { BOUNDS } from "../core/bounds.js";
import { type ErrorCode, type ErrorDetails, isPawlError, type PawlError, pawlError } from "../core/error.js";
import type { Enqueued, NewJob } from "../core/job.js";
import type { Scope } from "../store/port.js";
import type { AnyTask } from "../worker/task.js";
import { checkArray, checkBoolean, checkKeys, checkObject, invalid, show } from "./check.js";
import { type Intake, orphaned, type Stored, storedOf, withStored } from "./enqueuer.js";
import { encodeInput } from "./input.js";
import { withLimits } from "./limits.js";
import { batchRequest, checkRequest, requestReused } from "./once.js";
import type { BatchJob, BatchOptions, EnqueueOptions } from "./options.js";
import { jobOf, type Planned, Planner, type TaskLike } from "./plan.js";
import type { Registry } from "./registry.js";
import { traced } from "./tracing.js";

/** What became of each: stored, or what is wrong with it. */
export interface StoredBatch {
  readonly repeated: boolean;
  readonly answers: readonly (BatchStored | PawlError)[];
}
export interface BatchStored extends Stored {
  readonly task: string;
}

type Prepared = NewJob | PawlError;

const JOB_KEYS: ReadonlySet<string> = new Set(["task", "input", "options"] satisfies readonly (keyof BatchJob)[]);
const OPTION_KEYS: ReadonlySet<string> = new Set(["request", "atomic", "trace"] satisfies readonly (keyof BatchOptions)[]);

/** Stores jobs of any tasks in one step, and answers for each of them. */
export class BatchEnqueuer {
  readonly #planner: Planner;
  /** whose request ids they are */
  readonly #tenant: string;

  constructor(
    private readonly intake: Intake,
    scope: Scope,
  ) {
    const tenant = scope === "everyone" ? undefined : scope.tenant;
    this.#planner = new Planner(intake.queues, tenant);
    this.#tenant = tenant ?? "";
  }

  async enqueue(jobs: readonly BatchJob[], given: BatchOptions = {}): Promise<StoredBatch> {
    const { all, task, request, atomic } = checkBatch(jobs, given);
    return traced(
      this.intake.tracing,
      { task, verb: "enqueueBatch" },
      given,
      (own) => this.#enqueue(all, request, atomic, own?.trace),
      ({ answers }) => ({ jobs: answers.length }),
    );
  }

  async #enqueue(jobs: readonly BatchJob[], request: string | undefined, atomic: boolean, trace: BatchOptions["trace"]): Promise<StoredBatch> {
    const prepared = await this.#prepare(jobs, trace);
    if (atomic) throwFirst(prepared);
    const sound = prepared.filter((one): one is NewJob => !isPawlError(one));
    checkSize(sound);
    const batch = await this.#store(sound, request, atomic, prepared);
    if (!atomic) return batch;
    const failed = batch.answers.find((answer) => isPawlError(answer));
    if (failed !== undefined)
      throw withStored(failed, batch.answers.filter((answer) => "enqueued" in answer && answer.enqueued === "created").length);
    return batch;
  }

  /** What can be wrong with a job is found before anything is stored. */
  async #prepare(jobs: readonly BatchJob[], trace: BatchOptions["trace"]): Promise<readonly Prepared[]> {
    const tasks = new Map<AnyTask | string, TaskLike | PawlError>();
    const planned = new Map<EnqueueOptions | undefined, { readonly task: TaskLike; readonly planned: Planned }>();
    const planOf = (task: TaskLike, options: EnqueueOptions | undefined): Planned => {
      // Many that share their options are planned once.
      const known = planned.get(options);
      if (known?.task === task) return known.planned;
      const said = trace === undefined ? options : { trace, ...options };
      if (said?.tx !== undefined) throw invalid("tx", "a batch is stored in a transaction of its own");
      const fresh = this.#planner.plan(task, said);
      planned.set(options, { task, planned: fresh });
      return fresh;
    };
    const prepared: Prepared[] = [];
    for (const { task: given, input, options } of jobs) {
      let task = tasks.get(given);
      if (task === undefined) {
        task = await taskOrRefusal(this.intake.registry, given);
        tasks.set(given, task);
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
    planOf: (task: TaskLike, options: EnqueueOptions | undefined) => Planned,
  ): Prepared | Promise<Prepared> {
    try {
      const { plan, limitKeys } = planOf(task, options);
      const text = encodeInput(task.name, task.schema, input, this.intake.caller);
      const limited = withLimits(plan, task, input, limitKeys);
      if (typeof text === "string") return jobOf(limited, this.intake.tails(limited.lane.tenant), text);
      return text.then((late) => jobOf(limited, this.intake.tails(limited.lane.tenant), late)).catch(refusal);
    } catch (error) {
      return refusal(error);
    }
  }

  async #store(sound: readonly NewJob[], id: string | undefined, atomic: boolean, prepared: readonly Prepared[]): Promise<StoredBatch> {
    const { store, write } = this.intake;
    const request = id === undefined ? undefined : batchRequest(this.#tenant, id, sound);
    const refused = await this.#refused(sound, atomic);
    const admitted = sound.filter((_, place) => refused[place] === undefined);
    // What is turned away now may be stored already: then that is the answer.
    const known = request === undefined || admitted.length === sound.length ? undefined : await store.batches.get(request);
    if (known === undefined && admitted.length === 0) return { repeated: false, answers: filled(prepared, refused) };
    const batch = known ?? (await write(admitted, request === undefined ? undefined : { ...request, ...noteOf(refused) }));
    if (batch.kind === "different") throw requestReused(id as string);
    const turnedAway = batch.kind === "repeated" ? refusalsIn(batch.note) : refused;
    let next = 0;
    const answers = sound.map((_, place) => turnedAway[place] ?? batch.answers[next++]);
    return { repeated: batch.kind === "repeated", answers: filled(prepared, answers) };
  }

  /** Those that an ingest limit does not let in, by place: each for itself, or all if they are to be stored all or none. */
  async #refused(jobs: readonly NewJob[], atomic: boolean): Promise<Refusals> {
    const { backpressure } = this.intake;
    if (!atomic) return backpressure.each(jobs);
    try {
      await backpressure.whole(jobs);
      return [];
    } catch (error) {
      if (isPawlError(error, "ingest_limited")) return jobs.map(() => error);
      throw error;
    }
  }
}

/** All are stored or none: the first that is wrong is told, with its place. */
function throwFirst(prepared: readonly Prepared[]): void {
  for (const [place, one] of prepared.entries()) {
    if (isPawlError(one)) throw pawlError(one.code, { ...one.details, place }, one.cause);
  }
}

/** In the places of the jobs that were sound, what became of them. */
function filled(prepared: readonly Prepared[], answers: readonly (Enqueued | PawlError | undefined)[]): StoredBatch["answers"] {
  let next = 0;
  return prepared.map((one) => {
    if (isPawlError(one)) return one;
    const answer = answers[next++] as Enqueued | PawlError;
    if (isPawlError(answer)) return answer;
    const { task } = one.lane;
    if (answer.kind === "orphaned") return orphaned(task, answer.parent);
    return answer.kind === "requestReused" ? requestReused(String(one.request?.id)) : { task, ...storedOf(answer, task) };
  });
}

/** What is wrong with all of it is thrown. */
export function checkBatch(jobs: readonly BatchJob[], given: BatchOptions) {
  checkKeys(checkObject("options", given), OPTION_KEYS);
  const { request, atomic = false } = given;
  if (request !== undefined) checkRequest(request);
  return { all: checkJobs(jobs), request, atomic: checkBoolean("atomic", atomic), task: taskOf(jobs) };
}

/** The task, or why there is none. */
export async function taskOrRefusal(registry: Registry, task: AnyTask | string): Promise<TaskLike | PawlError> {
  try {
    return await registry.find(task);
  } catch (error) {
    if (isPawlError(error, "task_unknown") || isPawlError(error, "name_invalid") || isPawlError(error, "option_invalid")) return error;
    throw error;
  }
}

function checkJobs(jobs: unknown): readonly BatchJob[] {
  const all = checkArray("jobs", jobs);
  const most = BOUNDS.enqueueBatch;
  if (all.length === 0 || all.length > most) throw invalid("jobs", `a batch has 1 to ${most} jobs, not ${all.length}; enqueueMany takes more`);
  for (const [place, job] of all.entries()) {
    checkKeys(checkObject(`jobs[${place}]`, job), JOB_KEYS, `jobs[${place}].`);
    const { options } = job as BatchJob;
    if (options !== undefined) checkObject(`jobs[${place}].options`, options);
  }
  return all as readonly BatchJob[];
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

type Refusals = readonly (PawlError | undefined)[];

/** What an ingest limit refused is kept with the rest: repeated, it is refused alike. (What is wrong by itself is found again.) */
function noteOf(refused: Refusals): { readonly note?: string } {
  const said = refused.flatMap((error, place) => (error === undefined ? [] : [[place, error.code, error.details] as const]));
  return said.length === 0 ? {} : { note: JSON.stringify(said) };
}

function refusalsIn(note: string | undefined): Refusals {
  const refusals: (PawlError | undefined)[] = [];
  if (note === undefined) return refusals;
  for (const [place, code, details] of JSON.parse(note) as readonly [number, ErrorCode, ErrorDetails][]) refusals[place] = pawlError(code, details);
  return refusals;
}
