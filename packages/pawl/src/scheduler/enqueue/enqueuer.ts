import type { IdSuffixSource, JobId } from "../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../core/jobs/job.js";
import { type Lane, type LaneKey, laneKey } from "../../core/jobs/lane.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { isPawlError, type PawlError, pawlError } from "../../core/values/error.js";
import type { BatchRequest, EnqueuedBatch } from "../../store/port/enqueue/batches.js";
import type { Scope, Store, StoreTransaction } from "../../store/port/index.js";
import { checkDuration, checkFunction, checkObject, invalid } from "../check.js";
import { type Tracing, withSpan } from "../observe/tracing.js";
import type { EnqueueManyOptions, EnqueueOptions, EnqueueStreamOptions, QueueDefaults, StreamSummary } from "../options.js";
import type { Batcher } from "./batcher.js";
import { ChunkPipe, forEachInput, type OnChunkStored } from "./chunks.js";
import { encodeInput } from "./encode-input.js";
import { LaneGrouper } from "./group-by-lane.js";
import {
  answersOfBatch,
  checkIdempotencyKey,
  idempotencyKeyOfBatch,
  idempotencyKeyOfChunk,
  idempotencyKeyReusedError,
  withKeyOfWholeCall,
} from "./idempotency-key.js";
import type { IngestLimiter } from "./ingest-limiter.js";
import { type JobPlan, JobPlanner, jobFromPlan, type PlannedJob, type TaskLike } from "./job-plan.js";
import { joinTransaction } from "./join-transaction.js";
import { optionNames } from "./option-table.js";
import { planForInput } from "./plan-for-input.js";
import type { TaskRegistry } from "./task-registry.js";

/** What all schedulers on one store share, whatever their tenant. */
export interface EnqueueDeps {
  readonly store: Store;
  readonly registry: TaskRegistry;
  readonly queues: Readonly<Record<string, QueueDefaults>>;
  readonly ingestLimiter: IngestLimiter;
  /** stores a batch that is let in, and tells the bus */
  readonly enqueue: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>;
  /** the same, once per idempotency key */
  readonly enqueueOnce: (idempotencyKey: BatchRequest, jobs: readonly NewJob[]) => Promise<EnqueuedBatch>;
  /** stores what was let in elsewhere, once if it has an idempotency key, and tells the bus */
  readonly write: (jobs: readonly NewJob[], idempotencyKey?: BatchRequest) => Promise<EnqueuedBatch>;
  /** stores single jobs in company */
  readonly batcher: Batcher;
  readonly nextIdSuffix: IdSuffixSource;
  /** lanes that got jobs in a transaction of the caller's own, which nobody is told of before `wake()` */
  readonly unannouncedLanes: Map<LaneKey, Lane>;
  /** throws if the store is closed; left out: its calls say so */
  readonly checkOpen?: () => void;
  readonly tracing?: Tracing;
  /** whose share of the checks of inputs it uses */
  readonly caller?: string;
}

/** What became of one job: the id, and how. */
export interface StoredJob {
  readonly id: JobId;
  readonly enqueued: "created" | "existing" | "rejected";
  readonly replaced?: JobId;
}

/** Chunks on their way: as many as keep the server busy while the next one is made. */
const MAX_CHUNKS_IN_FLIGHT = 3;

type TaskInputs = Iterable<unknown> | AsyncIterable<unknown>;

/** Checks, plans and stores new jobs, one or many. What can be wrong with a job is found before it is sent. */
export class Enqueuer {
  readonly #deps: EnqueueDeps;
  readonly #planner: JobPlanner;

  constructor(deps: EnqueueDeps, scope: Scope) {
    this.#deps = deps;
    this.#planner = new JobPlanner(deps.queues, scope === "everyone" ? undefined : scope.tenant);
  }

  one(task: TaskLike, input: unknown, options: EnqueueOptions | undefined): Promise<StoredJob> {
    const { tracing } = this.#deps;
    if (tracing === undefined) return this.#one(task, input, options);
    const what = { task: task.name, verb: "enqueue" } as const;
    return withSpan(
      tracing,
      what,
      options,
      (tracedOptions) => this.#one(task, input, tracedOptions),
      ({ id }) => ({ jobs: 1, job: id }),
    );
  }

  async #one(task: TaskLike, input: unknown, options: EnqueueOptions | undefined): Promise<StoredJob> {
    const { plan, tx, limitKeys } = this.#planner.plan(task, options);
    const text = await encodeInput(task.name, task.schema, input, this.#deps.caller);
    return this.add(planForInput(plan, task, input, limitKeys), text, this.#join(tx));
  }

  /** Stores a job whose parts are known to be sound. */
  async add(plan: JobPlan, input: string, tx?: StoreTransaction): Promise<StoredJob> {
    const job = jobFromPlan(plan, this.#deps.nextIdSuffix(plan.lane.tenant), input);
    const answer = tx === undefined ? await this.#deps.batcher.add(job) : ((await this.#insideTransaction(tx, [job]))[0] as Enqueued);
    if (answer.kind === "rejected") throw pawlError("unique_key_taken", { key: plan.extras?.unique?.key, task: plan.lane.task, job: answer.holder });
    return storedJobOf(answer, plan.lane.task, plan.extras?.idempotencyKey);
  }

  many(task: TaskLike, inputs: readonly unknown[], options: EnqueueManyOptions<unknown> | undefined): Promise<readonly StoredJob[]> {
    const what = { task: task.name, verb: "enqueueMany" } as const;
    return withSpan(
      this.#deps.tracing,
      what,
      options,
      (tracedOptions) => this.#many(task, inputs, tracedOptions),
      ({ length }) => ({ jobs: length }),
    );
  }

  async #many(task: TaskLike, inputs: readonly unknown[], options: EnqueueManyOptions<unknown> | undefined): Promise<readonly StoredJob[]> {
    if (!Array.isArray(inputs)) throw invalid("inputs", "enqueueMany takes an array; enqueueStream takes any iterable");
    const chunks: (readonly Enqueued[])[] = [];
    let reused: string | undefined;
    const order = await this.#inChunks(task, inputs, options, sendOnce, (answers, chunk, jobs) => {
      chunks[chunk] = answers;
      reused ??= jobs[answers.findIndex(({ kind }) => kind === "idempotencyKeyReused")]?.idempotencyKey?.id;
    });
    const answers = inCallOrder(chunks.flat(), order);
    try {
      return answers.map((answer) => storedJobOf(answer, task.name, reused));
    } catch (error) {
      throw withStoredCount(error, answers.filter(({ kind }) => kind === "created").length);
    }
  }

  stream(task: TaskLike, inputs: TaskInputs, options: EnqueueStreamOptions<unknown> | undefined): Promise<StreamSummary> {
    const what = { task: task.name, verb: "enqueueStream" } as const;
    return withSpan(
      this.#deps.tracing,
      what,
      options,
      (tracedOptions) => this.#stream(task, inputs, tracedOptions),
      ({ count }) => ({ jobs: count }),
    );
  }

  async #stream(task: TaskLike, inputs: TaskInputs, options: EnqueueStreamOptions<unknown> = {}): Promise<StreamSummary> {
    const { onChunk, wait = DEFAULTS.ingest.patience, ...shared } = checkObject("options", options) as EnqueueStreamOptions<unknown>;
    if (onChunk !== undefined) checkFunction("onChunk", onChunk);
    const { ingestLimiter } = this.#deps;
    const maxWait = checkDuration("wait", wait);
    const sendWithRetry: SendWithRetry = (send) => ingestLimiter.retryUntilAdmitted(send, maxWait);
    const summary = { count: 0, created: 0, existing: 0, rejected: 0, dependencyUnknown: 0, idempotencyKeyReused: 0 };
    await this.#inChunks(task, inputs, shared, sendWithRetry, (answers) => {
      summary.count += answers.length;
      for (const { kind } of answers) summary[kind]++;
      onChunk?.({ ...summary });
    });
    return summary;
  }

  /**
   * Several chunks at a time; in a transaction of the caller's, which has one connection, one after the other. Answers the
   * places of the jobs in the order they went out, if that is not the order they were given in.
   */
  async #inChunks(
    task: TaskLike,
    inputs: TaskInputs,
    options: EnqueueManyOptions<unknown> | undefined,
    sendWithRetry: SendWithRetry,
    done: OnChunkStored,
  ): Promise<readonly number[] | undefined> {
    // No inputs at all would ask the store nothing.
    this.#deps.checkOpen?.();
    const { idempotencyKey, tenant, prepare, ...shared } = this.#preparer(task, options);
    const tx = this.#join(shared.tx);
    let chunks = 0;
    const send = (jobs: readonly NewJob[]) => {
      const chunkKey =
        idempotencyKey === undefined ? undefined : idempotencyKeyOfBatch(tenant, idempotencyKeyOfChunk(idempotencyKey, chunks++), jobs);
      return tx === undefined ? sendWithRetry(() => this.#outsideTransaction(jobs, chunkKey)) : this.#insideTransaction(tx, jobs, chunkKey);
    };
    const pipe = new ChunkPipe(
      send,
      { maxInFlight: tx === undefined ? MAX_CHUNKS_IN_FLIGHT : 1, firstChunkAlone: idempotencyKey !== undefined },
      done,
    );
    // Of a stream nothing more than a chunk is kept.
    const order = Array.isArray(inputs) && options?.each !== undefined ? new LaneGrouper(pipe) : undefined;
    const next = order ?? pipe;
    let index = 0;
    try {
      await forEachInput(inputs, (input) => {
        const job = prepare(input, index++);
        return job instanceof Promise ? job.then((late) => next.add(late)) : next.add(job);
      });
      await order?.flush();
      await pipe.end();
      return order?.sent;
    } catch (error) {
      await pipe.settled();
      throw withStoredCount(withKeyOfWholeCall(error, idempotencyKey), pipe.stored);
    }
  }

  /** Resolves what many jobs share once, and answers with what makes each of them. */
  #preparer(task: TaskLike, options: EnqueueManyOptions<unknown> = {}) {
    const { each: ownOf, idempotencyKey, ...shared } = checkObject("options", options) as EnqueueManyOptions<unknown>;
    if (ownOf !== undefined) checkFunction("each", ownOf);
    if (idempotencyKey !== undefined) checkIdempotencyKey(idempotencyKey);
    checkSharedOptions(shared);
    const common = this.#planner.plan(task, shared);
    const { nextIdSuffix, caller } = this.#deps;
    const planOf = (input: unknown, index: number): PlannedJob => {
      const own: EnqueueOptions | undefined = ownOf?.(input, index);
      if (own === undefined) return common;
      if ((checkObject("what each answers", own) as EnqueueOptions).tx !== undefined)
        throw invalid("tx", "all of them share it: give it beside each, not inside");
      return this.#planner.plan(task, { ...shared, ...own });
    };
    const prepare = (input: unknown, index: number): NewJob | Promise<NewJob> => {
      const { plan, limitKeys } = planOf(input, index);
      const text = encodeInput(task.name, task.schema, input, caller);
      const limited = planForInput(plan, task, input, limitKeys);
      if (typeof text === "string") return jobFromPlan(limited, nextIdSuffix(limited.lane.tenant), text);
      return text.then((late) => jobFromPlan(limited, nextIdSuffix(limited.lane.tenant), late));
    };
    return { tx: common.tx, idempotencyKey, tenant: common.plan.lane.tenant, prepare };
  }

  #join(tx: Transaction | undefined): StoreTransaction | undefined {
    return tx === undefined ? undefined : joinTransaction(this.#deps.store, tx);
  }

  async #outsideTransaction(jobs: readonly NewJob[], chunkKey: BatchRequest | undefined): Promise<readonly Enqueued[]> {
    const { enqueue, enqueueOnce } = this.#deps;
    return chunkKey === undefined ? enqueue(jobs) : answersOfBatch(await enqueueOnce(chunkKey, jobs), chunkKey.id);
  }

  async #insideTransaction(tx: StoreTransaction, jobs: readonly NewJob[], chunkKey?: BatchRequest): Promise<readonly Enqueued[]> {
    const { store, unannouncedLanes, ingestLimiter } = this.#deps;
    await ingestLimiter.admitAll(jobs, tx);
    const answers =
      chunkKey === undefined ? await store.jobs.enqueue(jobs, tx) : answersOfBatch(await store.batches.enqueue(chunkKey, jobs, tx), chunkKey.id);
    for (const { lane } of jobs) if (unannouncedLanes.size < 1_000) unannouncedLanes.set(laneKey(lane), lane);
    return answers;
  }
}

/** The answers to jobs by the places of these. */
function inCallOrder(answers: readonly Enqueued[], order: readonly number[] | undefined): readonly Enqueued[] {
  if (order === undefined) return answers;
  const ordered = new Array<Enqueued>(answers.length);
  order.forEach((callIndex, index) => {
    ordered[callIndex] = answers[index] as Enqueued;
  });
  return ordered;
}

/** How often something is sent that is not let in. */
type SendWithRetry = (send: () => Promise<readonly Enqueued[]>) => Promise<readonly Enqueued[]>;
const sendOnce: SendWithRetry = (send) => send();

/** An idempotency key can be shared: then it is that of the whole call. */
const PER_JOB_OPTIONS = optionNames(({ perJob }) => perJob === true).filter((name) => name !== "idempotencyKey");

export function checkSharedOptions(shared: object): void {
  for (const name of PER_JOB_OPTIONS)
    if (name in shared) throw invalid(name, "it would be the same for all of them: give each its own with each(input)");
}

/** What became of a job of this task, which had this idempotency key if it had one. */
export function storedJobOf(answer: Enqueued, task: string, idempotencyKey?: string): StoredJob {
  switch (answer.kind) {
    case "created":
      return answer.replaced === undefined
        ? { id: answer.id, enqueued: "created" }
        : { id: answer.id, enqueued: "created", replaced: answer.replaced };
    case "existing":
      return { id: answer.id, enqueued: "existing" };
    case "rejected":
      return { id: answer.holder, enqueued: "rejected" };
    case "dependencyUnknown":
      throw dependencyUnknownError(task, answer.parent);
    case "idempotencyKeyReused":
      throw idempotencyKeyReusedError(String(idempotencyKey));
  }
}

export function dependencyUnknownError(task: string, parent: JobId): PawlError {
  return pawlError("dependency_unknown", { job: `of ${task}`, parent });
}

export function withStoredCount<E>(error: E, stored: number): E | PawlError {
  return isPawlError(error) ? pawlError(error.code, { ...error.details, stored }, error) : error;
}
