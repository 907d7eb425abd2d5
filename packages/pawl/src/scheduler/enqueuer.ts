import { DEFAULTS } from "../core/defaults.js";
import { isPawlError, type PawlError, pawlError } from "../core/error.js";
import type { JobId, TailSource } from "../core/id.js";
import type { Enqueued, NewJob } from "../core/job.js";
import { type Lane, type LaneKey, laneKey } from "../core/lane.js";
import type { ForeignTransaction, Scope, Store } from "../store/port.js";
import type { BatchRequest, EnqueuedBatch } from "../store/port-batches.js";
import type { Backpressure } from "./backpressure.js";
import type { Batcher } from "./batcher.js";
import { checkDuration, checkFunction, checkObject, invalid } from "./check.js";
import { ChunkPipe, type Done, each } from "./chunks.js";
import { encodeInput } from "./input.js";
import { LaneOrder } from "./lane-order.js";
import { withLimits } from "./limits.js";
import { answersOf, batchRequest, checkRequest, chunkRequest, ofWholeCall, requestReused } from "./once.js";
import type { EnqueueOptions, ManyOptions, QueueDefaults, StreamOptions, StreamSummary } from "./options.js";
import { jobOf, type Plan, type Planned, Planner, type TaskLike } from "./plan.js";
import type { Registry } from "./registry.js";
import { type Tracing, traced } from "./tracing.js";

/** What all schedulers on one store share, whatever their tenant. */
export interface Intake {
  readonly store: Store;
  readonly registry: Registry;
  readonly queues: Readonly<Record<string, QueueDefaults>>;
  readonly backpressure: Backpressure;
  /** stores a batch that is let in, and tells the bus */
  readonly enqueue: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>;
  /** the same, once per request id */
  readonly enqueueOnce: (request: BatchRequest, jobs: readonly NewJob[]) => Promise<EnqueuedBatch>;
  /** stores what was let in elsewhere, once if it has a request id, and tells the bus */
  readonly write: (jobs: readonly NewJob[], request?: BatchRequest) => Promise<EnqueuedBatch>;
  /** stores single jobs in company */
  readonly batcher: Batcher;
  readonly tails: TailSource;
  /** lanes that got jobs in a transaction of the caller's own, which nobody is told of before `wake()` */
  readonly untold: Map<LaneKey, Lane>;
  readonly tracing?: Tracing;
  /** whose share of the checks of inputs it uses */
  readonly caller?: string;
}

/** What became of one job: the id, and how. */
export interface Stored {
  readonly id: JobId;
  readonly enqueued: "created" | "existing" | "rejected";
  readonly replaced?: JobId;
}

/** Chunks on their way: as many as keep the server busy while the next one is made. */
const IN_FLIGHT = 3;

type Inputs = Iterable<unknown> | AsyncIterable<unknown>;

/** Checks, plans and stores new jobs, one or many. What can be wrong with a job is found before it is sent. */
export class Enqueuer {
  readonly #intake: Intake;
  readonly #planner: Planner;

  constructor(intake: Intake, scope: Scope) {
    this.#intake = intake;
    this.#planner = new Planner(intake.queues, scope === "everyone" ? undefined : scope.tenant);
  }

  one(task: TaskLike, input: unknown, options: EnqueueOptions | undefined): Promise<Stored> {
    const { tracing } = this.#intake;
    if (tracing === undefined) return this.#one(task, input, options);
    const what = { task: task.name, verb: "enqueue" } as const;
    return traced(
      tracing,
      what,
      options,
      (given) => this.#one(task, input, given),
      ({ id }) => ({ jobs: 1, job: id }),
    );
  }

  async #one(task: TaskLike, input: unknown, options: EnqueueOptions | undefined): Promise<Stored> {
    const { plan, tx, limitKeys } = this.#planner.plan(task, options);
    const text = await encodeInput(task.name, task.schema, input, this.#intake.caller);
    return this.add(withLimits(plan, task, input, limitKeys), text, tx);
  }

  /** Stores a job whose parts are known to be sound. */
  async add(plan: Plan, input: string, tx?: ForeignTransaction): Promise<Stored> {
    const job = jobOf(plan, this.#intake.tails(plan.lane.tenant), input);
    const answer = tx === undefined ? await this.#intake.batcher.add(job) : ((await this.#inside(tx, [job]))[0] as Enqueued);
    if (answer.kind === "rejected") throw pawlError("key_taken", { key: plan.more?.unique?.key, task: plan.lane.task, job: answer.holder });
    return storedOf(answer, plan.lane.task, plan.more?.request);
  }

  many(task: TaskLike, inputs: readonly unknown[], options: ManyOptions<unknown> | undefined): Promise<readonly Stored[]> {
    const what = { task: task.name, verb: "enqueueMany" } as const;
    return traced(
      this.#intake.tracing,
      what,
      options,
      (given) => this.#many(task, inputs, given),
      ({ length }) => ({ jobs: length }),
    );
  }

  async #many(task: TaskLike, inputs: readonly unknown[], options: ManyOptions<unknown> | undefined): Promise<readonly Stored[]> {
    if (!Array.isArray(inputs)) throw invalid("inputs", "enqueueMany takes an array; enqueueStream takes any iterable");
    const chunks: (readonly Enqueued[])[] = [];
    let reused: string | undefined;
    const order = await this.#inChunks(task, inputs, options, atOnce, (answers, chunk, jobs) => {
      chunks[chunk] = answers;
      reused ??= jobs[answers.findIndex(({ kind }) => kind === "requestReused")]?.request?.id;
    });
    const answers = inPlace(chunks.flat(), order);
    try {
      return answers.map((answer) => storedOf(answer, task.name, reused));
    } catch (error) {
      throw withStored(error, answers.filter(({ kind }) => kind === "created").length);
    }
  }

  stream(task: TaskLike, inputs: Inputs, options: StreamOptions<unknown> | undefined): Promise<StreamSummary> {
    const what = { task: task.name, verb: "enqueueStream" } as const;
    return traced(
      this.#intake.tracing,
      what,
      options,
      (given) => this.#stream(task, inputs, given),
      ({ count }) => ({ jobs: count }),
    );
  }

  async #stream(task: TaskLike, inputs: Inputs, options: StreamOptions<unknown> = {}): Promise<StreamSummary> {
    const { onChunk, patience = DEFAULTS.ingest.patience, ...shared } = checkObject("options", options) as StreamOptions<unknown>;
    if (onChunk !== undefined) checkFunction("onChunk", onChunk);
    const { backpressure } = this.#intake;
    const longest = checkDuration("patience", patience);
    const patiently: Patience = (send) => backpressure.patiently(send, longest);
    const summary = { count: 0, created: 0, existing: 0, rejected: 0, orphaned: 0, requestReused: 0 };
    await this.#inChunks(task, inputs, shared, patiently, (answers) => {
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
    inputs: Inputs,
    options: ManyOptions<unknown> | undefined,
    patiently: Patience,
    done: Done,
  ): Promise<readonly number[] | undefined> {
    const { tx, request, tenant, prepare } = this.#preparer(task, options);
    let chunks = 0;
    const send = (jobs: readonly NewJob[]) => {
      const once = request === undefined ? undefined : batchRequest(tenant, chunkRequest(request, chunks++), jobs);
      return tx === undefined ? patiently(() => this.#outside(jobs, once)) : this.#inside(tx, jobs, once);
    };
    const pipe = new ChunkPipe(send, { most: tx === undefined ? IN_FLIGHT : 1, firstAlone: request !== undefined }, done);
    // Of a stream nothing more than a chunk is kept.
    const order = Array.isArray(inputs) && options?.each !== undefined ? new LaneOrder(pipe) : undefined;
    const next = order ?? pipe;
    let index = 0;
    try {
      await each(inputs, (input) => {
        const job = prepare(input, index++);
        return job instanceof Promise ? job.then((late) => next.add(late)) : next.add(job);
      });
      await order?.flush();
      await pipe.end();
      return order?.sent;
    } catch (error) {
      await pipe.settled();
      throw withStored(ofWholeCall(error, request), pipe.stored);
    }
  }

  /** Resolves what many jobs share once, and answers with what makes each of them. */
  #preparer(task: TaskLike, options: ManyOptions<unknown> = {}) {
    const { each: ownOf, request, ...shared } = checkObject("options", options) as ManyOptions<unknown>;
    if (ownOf !== undefined) checkFunction("each", ownOf);
    if (request !== undefined) checkRequest(request);
    checkShared(shared);
    const common = this.#planner.plan(task, shared);
    const { tails, caller } = this.#intake;
    const planOf = (input: unknown, index: number): Planned => {
      const own: EnqueueOptions | undefined = ownOf?.(input, index);
      if (own === undefined) return common;
      if ((checkObject("what each answers", own) as EnqueueOptions).tx !== undefined)
        throw invalid("tx", "all of them share it: give it beside each, not inside");
      return this.#planner.plan(task, { ...shared, ...own });
    };
    const prepare = (input: unknown, index: number): NewJob | Promise<NewJob> => {
      const { plan, limitKeys } = planOf(input, index);
      const text = encodeInput(task.name, task.schema, input, caller);
      const limited = withLimits(plan, task, input, limitKeys);
      if (typeof text === "string") return jobOf(limited, tails(limited.lane.tenant), text);
      return text.then((late) => jobOf(limited, tails(limited.lane.tenant), late));
    };
    return { tx: common.tx, request, tenant: common.plan.lane.tenant, prepare };
  }

  async #outside(jobs: readonly NewJob[], once: BatchRequest | undefined): Promise<readonly Enqueued[]> {
    const { enqueue, enqueueOnce } = this.#intake;
    return once === undefined ? enqueue(jobs) : answersOf(await enqueueOnce(once, jobs), once.id);
  }

  async #inside(tx: ForeignTransaction, jobs: readonly NewJob[], once?: BatchRequest): Promise<readonly Enqueued[]> {
    const { store, untold, backpressure } = this.#intake;
    await backpressure.whole(jobs, tx);
    const answers = once === undefined ? await store.jobs.enqueue(jobs, tx) : answersOf(await store.batches.enqueue(once, jobs, tx), once.id);
    for (const { lane } of jobs) if (untold.size < 1_000) untold.set(laneKey(lane), lane);
    return answers;
  }
}

/** The answers to jobs by the places of these. */
function inPlace(answers: readonly Enqueued[], order: readonly number[] | undefined): readonly Enqueued[] {
  if (order === undefined) return answers;
  const placed = new Array<Enqueued>(answers.length);
  order.forEach((place, index) => {
    placed[place] = answers[index] as Enqueued;
  });
  return placed;
}

/** How often something is sent that is not let in. */
type Patience = (send: () => Promise<readonly Enqueued[]>) => Promise<readonly Enqueued[]>;
const atOnce: Patience = (send) => send();

const OWN = ["key", "unique", "throttle", "debounce"] as const;

export function checkShared(shared: object): void {
  for (const name of OWN) if (name in shared) throw invalid(name, "it would be the same for all of them: give each its own with each(input)");
}

/** What became of a job of this task, which had this request id if it had one. */
export function storedOf(answer: Enqueued, task: string, request?: string): Stored {
  switch (answer.kind) {
    case "created":
      return answer.replaced === undefined
        ? { id: answer.id, enqueued: "created" }
        : { id: answer.id, enqueued: "created", replaced: answer.replaced };
    case "existing":
      return { id: answer.id, enqueued: "existing" };
    case "rejected":
      return { id: answer.holder, enqueued: "rejected" };
    case "orphaned":
      throw orphaned(task, answer.parent);
    case "requestReused":
      throw requestReused(String(request));
  }
}

export function orphaned(task: string, parent: JobId): PawlError {
  return pawlError("dependency_unknown", { job: `of ${task}`, parent });
}

export function withStored<E>(error: E, stored: number): E | PawlError {
  return isPawlError(error) ? pawlError(error.code, { ...error.details, stored }, error) : error;
}
