import { idSuffixSource, type RandomBytes } from "../core/jobs/id.js";
import type { Enqueued, NewJob } from "../core/jobs/job.js";
import { type Lane, type LaneKey, laneKey } from "../core/jobs/lane.js";
import type { AnyTask } from "../core/jobs/task.js";
import type { Events } from "../core/observe/event.js";
import { isPawlError, type PawlError, pawlError } from "../core/values/error.js";
import type { SchemaCompiler } from "../core/values/json-schema.js";
import { checkName } from "../core/values/name.js";
import type { Bus } from "../runtime/process/bus.js";
import type { Clock } from "../runtime/time/clock.js";
import type { BatchRequest, EnqueuedBatch } from "../store/port/enqueue/batches.js";
import type { Store } from "../store/port/index.js";
import type { CheckTarget, TargetDeps } from "./access/targets.js";
import { checkDefaults, checkFunction, checkKeys, checkObject, DEFAULT_KEYS } from "./check.js";
import { Batcher } from "./enqueue/batcher.js";
import type { EnqueueDeps } from "./enqueue/enqueuer.js";
import { IngestLimiter } from "./enqueue/ingest-limiter.js";
import { PublishedTasks } from "./enqueue/published-tasks.js";
import { TaskRegistry } from "./enqueue/task-registry.js";
import { type Redact, redactor } from "./jobs/redact.js";
import { JobWaiters } from "./jobs/waiters.js";
import { checkTracing, type Tracing } from "./observe/tracing.js";
import type { QueueDefaults } from "./options.js";
import type { CodeSchedule } from "./schedules/schedule.js";

export interface SchedulerOptions {
  /** the code this process has; left out: it only produces, and may enqueue any task by name */
  readonly tasks?: readonly AnyTask[];
  /** whether tasks whose code is not here may be enqueued by name too; left out: where no tasks are given */
  readonly allowUnknownTasks?: boolean;
  /** checks inputs of tasks whose code is not here, by the JSON Schemas published with them; the service's own does */
  readonly compileSchema?: SchemaCompiler;
  /** whether jobs may be pushed to a URL; the service's own says by what its settings allow */
  readonly checkTarget?: CheckTarget;
  /** defaults of jobs, by queue */
  readonly queueDefaults?: Readonly<Record<string, QueueDefaults>>;
  /** the schedules of this code: stored when it is opened; those it had before and has no more are marked as missing */
  readonly schedules?: readonly CodeSchedule[];
  /** patterns of tasks whose inputs, outputs and failures are not shown where jobs are listed; see docs/protection.md */
  readonly redact?: readonly string[];
  /** whose schedules they are, where several applications share a store */
  readonly app?: string;
  /** follows jobs from their enqueue through every attempt; see docs/tracing.md */
  readonly tracing?: Tracing;
}

/** What a scheduler needs of the world. */
export interface Environment {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
}

/** What the schedulers of all scopes on one store share. */
export interface SchedulerDeps extends EnqueueDeps {
  readonly waiters: JobWaiters;
  readonly targets: TargetDeps;
  readonly redact?: Redact;
}

/** `encrypted`: the store encrypts what it is given. */
export function createSchedulerDeps(
  store: Store,
  bus: Bus,
  { clock, randomBytes }: Environment,
  options: SchedulerOptions,
  encrypted = false,
): SchedulerDeps {
  if (options.compileSchema !== undefined) checkFunction("compileSchema", options.compileSchema);
  const { checkTarget } = options;
  if (checkTarget !== undefined) checkFunction("checkTarget", checkTarget);
  const write = writeAndAnnounce(store, bus);
  const enqueue: EnqueueDeps["enqueue"] = async (jobs) => ((await write(jobs)) as Extract<EnqueuedBatch, { kind: "stored" }>).answers;
  const ingestLimiter = new IngestLimiter(store, bus, clock);
  const inOrder = oneAfterAnother();
  return {
    store,
    registry: new TaskRegistry(options.tasks, new PublishedTasks(store, clock, options.compileSchema), options.allowUnknownTasks),
    queues: checkQueueDefaults(options.queueDefaults),
    ingestLimiter,
    enqueue: (jobs) => inOrder(() => ingestLimiter.admitAll(jobs)).then(() => enqueue(jobs)),
    enqueueOnce: (idempotencyKey, jobs) =>
      inOrder(() => storedOrAdmit(store, ingestLimiter, idempotencyKey, jobs)).then((stored) => stored ?? write(jobs, idempotencyKey)),
    write,
    batcher: new Batcher((jobs) => enqueueAdmitted(ingestLimiter, enqueue, jobs), clock),
    nextIdSuffix: idSuffixSource(randomBytes),
    unannouncedLanes: new Map(),
    waiters: new JobWaiters(store, clock),
    targets: { store, randomBytes, encrypted, ...(checkTarget === undefined ? {} : { check: checkTarget }) },
    ...(options.redact === undefined ? {} : { redact: redactor(options.redact) }),
    ...(options.tracing === undefined ? {} : { tracing: checkTracing(options.tracing) }),
  };
}

/** Batches are judged one after the other, so that what is large is stored in its order, and a part that is let in is never behind one that is not. */
function oneAfterAnother(): <T>(admit: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (admit) => {
    const admission = last.then(admit);
    last = admission.catch(() => {});
    return admission;
  };
}

/** A batch that is not let in may be stored already: then nobody must be let in for it. */
async function storedOrAdmit(
  store: Store,
  ingestLimiter: IngestLimiter,
  idempotencyKey: BatchRequest,
  jobs: readonly NewJob[],
): Promise<EnqueuedBatch | undefined> {
  try {
    await ingestLimiter.admitAll(jobs);
    return undefined;
  } catch (error) {
    if (!isPawlError(error, "ingest_limited")) throw error;
    const stored = await store.batches.get(idempotencyKey);
    if (stored === undefined) throw error;
    return stored;
  }
}

/** Of jobs that came together by chance, those that are let in are stored; the others are told why not, each for itself. */
async function enqueueAdmitted(
  ingestLimiter: IngestLimiter,
  enqueue: EnqueueDeps["enqueue"],
  jobs: readonly NewJob[],
): Promise<readonly (Enqueued | PawlError)[]> {
  const refusals = await ingestLimiter.admitEach(jobs);
  if (refusals.every((refusal) => refusal === undefined)) return enqueue(jobs);
  const admitted = jobs.filter((_, index) => refusals[index] === undefined);
  const answers = admitted.length === 0 ? [] : await enqueue(admitted);
  let next = 0;
  return jobs.map((_, index) => refusals[index] ?? (answers[next++] as Enqueued));
}

/** Stores a batch and tells the bus, once for all of it. */
function writeAndAnnounce(store: Store, bus: Bus): EnqueueDeps["write"] {
  return async (jobs, idempotencyKey) => {
    const batch = await storeBatch(store, jobs, idempotencyKey);
    if (batch.kind === "stored" && bus.hasListeners("jobs.enqueued")) {
      const created = enqueuedEvent(jobs.filter((_, i) => batch.answers[i]?.kind === "created"));
      if (created.count > 0) bus.emit("jobs.enqueued", created);
    }
    return batch;
  };
}

/** One of unknown fate says under which idempotency key it can be repeated. */
async function storeBatch(store: Store, jobs: readonly NewJob[], idempotencyKey: BatchRequest | undefined): Promise<EnqueuedBatch> {
  if (idempotencyKey === undefined) return { kind: "stored", answers: await store.jobs.enqueue(jobs) };
  try {
    return await store.batches.enqueue(idempotencyKey, jobs);
  } catch (error) {
    throw isPawlError(error, "enqueue_uncertain")
      ? pawlError("enqueue_uncertain", { ...error.details, idempotencyKey: idempotencyKey.id }, error)
      : error;
  }
}

function enqueuedEvent(jobs: readonly NewJob[]): Events["jobs.enqueued"] {
  const counted = new Map<LaneKey, { readonly lane: Lane; count: number }>();
  let last: { readonly lane: Lane; count: number } | undefined;
  for (const { lane } of jobs) {
    // Jobs of one plan share the very lane, and most batches are of one plan: no key is made for each of them.
    if (last?.lane !== lane) {
      const key = laneKey(lane);
      last = counted.get(key) ?? { lane, count: 0 };
      counted.set(key, last);
    }
    last.count++;
  }
  return { count: jobs.length, lanes: [...counted.values()] };
}

const QUEUE_KEYS = new Set<string>(DEFAULT_KEYS);

function checkQueueDefaults(queueDefaults: SchedulerOptions["queueDefaults"] = {}): Readonly<Record<string, QueueDefaults>> {
  for (const [name, defaults] of Object.entries(checkObject("queueDefaults", queueDefaults) as Readonly<Record<string, QueueDefaults>>)) {
    checkName("queue", name);
    checkKeys(checkObject(`queueDefaults.${name}`, defaults), QUEUE_KEYS, `queueDefaults.${name}.`);
    checkDefaults(`queueDefaults.${name}.`, defaults);
  }
  return queueDefaults;
}
