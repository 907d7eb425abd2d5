import { isPawlError, type PawlError, pawlError } from "../core/error.js";
import type { Events } from "../core/event.js";
import { type RandomBytes, tailSource } from "../core/id.js";
import type { Enqueued, NewJob } from "../core/job.js";
import type { SchemaCompiler } from "../core/json-schema.js";
import { type Lane, type LaneKey, laneKey } from "../core/lane.js";
import { checkName } from "../core/name.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { BatchRequest, EnqueuedBatch } from "../store/port-batches.js";
import type { AnyTask } from "../worker/task.js";
import { Backpressure } from "./backpressure.js";
import { Batcher } from "./batcher.js";
import { checkDefaults, checkFunction, checkKeys, checkObject, DEFAULT_KEYS } from "./check.js";
import { Directory } from "./directory.js";
import type { Intake } from "./enqueuer.js";
import type { QueueDefaults } from "./options.js";
import { type Redact, redactor } from "./redact.js";
import { Registry } from "./registry.js";
import type { CodeSchedule } from "./schedule.js";
import type { CheckTarget, TargetParts } from "./targets.js";
import { checkTracing, type Tracing } from "./tracing.js";
import { Waiters } from "./waiters.js";

export interface SchedulerOptions {
  /** the code this process has; left out: it only produces, and may enqueue any task by name */
  readonly tasks?: readonly AnyTask[];
  /** whether tasks whose code is not here may be enqueued by name too; left out: where no tasks are given */
  readonly anyTask?: boolean;
  /** checks inputs of tasks whose code is not here, by the JSON Schemas published with them; the service's own does */
  readonly compileSchema?: SchemaCompiler;
  /** whether jobs may be pushed to a URL; the service's own says by what its settings allow */
  readonly checkTarget?: CheckTarget;
  /** defaults by queue */
  readonly queues?: Readonly<Record<string, QueueDefaults>>;
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
export interface Surroundings {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
}

/** What the schedulers of all scopes on one store share. */
export interface SchedulerParts extends Intake {
  readonly waiters: Waiters;
  readonly targets: TargetParts;
  readonly redact?: Redact;
}

/** `sealed`: the store seals what it is given. */
export function schedulerParts(
  store: Store,
  bus: Bus,
  { clock, randomBytes }: Surroundings,
  options: SchedulerOptions,
  sealed = false,
): SchedulerParts {
  if (options.compileSchema !== undefined) checkFunction("compileSchema", options.compileSchema);
  const { checkTarget } = options;
  if (checkTarget !== undefined) checkFunction("checkTarget", checkTarget);
  const write = writeAndTell(store, bus);
  const enqueue: Intake["enqueue"] = async (jobs) => ((await write(jobs)) as Extract<EnqueuedBatch, { kind: "stored" }>).answers;
  const backpressure = new Backpressure(store, bus, clock);
  const inTurn = turns();
  return {
    store,
    registry: new Registry(options.tasks, new Directory(store, clock, options.compileSchema), options.anyTask),
    queues: checkQueues(options.queues),
    backpressure,
    enqueue: (jobs) => inTurn(() => backpressure.whole(jobs)).then(() => enqueue(jobs)),
    enqueueOnce: (request, jobs) => inTurn(() => knownOrLetIn(store, backpressure, request, jobs)).then((known) => known ?? write(jobs, request)),
    write,
    batcher: new Batcher((jobs) => enqueueAdmitted(backpressure, enqueue, jobs), clock),
    tails: tailSource(randomBytes),
    untold: new Map(),
    waiters: new Waiters(store, clock),
    targets: { store, randomBytes, sealed, ...(checkTarget === undefined ? {} : { check: checkTarget }) },
    ...(options.redact === undefined ? {} : { redact: redactor(options.redact) }),
    ...(options.tracing === undefined ? {} : { tracing: checkTracing(options.tracing) }),
  };
}

/** Batches are judged one after the other, so that what is large is stored in its order, and a part that is let in is never behind one that is not. */
function turns(): <T>(judge: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (judge) => {
    const judged = last.then(judge);
    last = judged.catch(() => {});
    return judged;
  };
}

/** A batch that is not let in may be stored already: then nobody must be let in for it. */
async function knownOrLetIn(
  store: Store,
  backpressure: Backpressure,
  request: BatchRequest,
  jobs: readonly NewJob[],
): Promise<EnqueuedBatch | undefined> {
  try {
    await backpressure.whole(jobs);
    return undefined;
  } catch (error) {
    if (!isPawlError(error, "ingest_limited")) throw error;
    const known = await store.batches.get(request);
    if (known === undefined) throw error;
    return known;
  }
}

/** Of jobs that came together by chance, those that are let in are stored; the others are told why not, each for itself. */
async function enqueueAdmitted(
  backpressure: Backpressure,
  enqueue: Intake["enqueue"],
  jobs: readonly NewJob[],
): Promise<readonly (Enqueued | PawlError)[]> {
  const refusals = await backpressure.each(jobs);
  if (refusals.every((refusal) => refusal === undefined)) return enqueue(jobs);
  const admitted = jobs.filter((_, place) => refusals[place] === undefined);
  const answers = admitted.length === 0 ? [] : await enqueue(admitted);
  let next = 0;
  return jobs.map((_, place) => refusals[place] ?? (answers[next++] as Enqueued));
}

/** Stores a batch and tells the bus, once for all of it. */
function writeAndTell(store: Store, bus: Bus): Intake["write"] {
  return async (jobs, request) => {
    const batch = await sent(store, jobs, request);
    if (batch.kind === "stored" && bus.hears("jobs.enqueued")) {
      const created = byLane(jobs.filter((_, i) => batch.answers[i]?.kind === "created"));
      if (created.count > 0) bus.emit("jobs.enqueued", created);
    }
    return batch;
  };
}

/** One of unknown fate says under which request id it can be repeated. */
async function sent(store: Store, jobs: readonly NewJob[], request: BatchRequest | undefined): Promise<EnqueuedBatch> {
  if (request === undefined) return { kind: "stored", answers: await store.jobs.enqueue(jobs) };
  try {
    return await store.batches.enqueue(request, jobs);
  } catch (error) {
    throw isPawlError(error, "enqueue_unknown") ? pawlError("enqueue_unknown", { ...error.details, request: request.id }, error) : error;
  }
}

function byLane(jobs: readonly NewJob[]): Events["jobs.enqueued"] {
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
  const lanes = [...counted.values()];
  return { count: jobs.length, lanes: lanes.map(({ lane }) => lane), counts: lanes.map(({ count }) => count) };
}

const QUEUE_KEYS = new Set<string>(DEFAULT_KEYS);

function checkQueues(queues: SchedulerOptions["queues"] = {}): Readonly<Record<string, QueueDefaults>> {
  for (const [name, defaults] of Object.entries(checkObject("queues", queues) as Readonly<Record<string, QueueDefaults>>)) {
    checkName("queue", name);
    checkKeys(checkObject(`queues.${name}`, defaults), QUEUE_KEYS, `queues.${name}.`);
    checkDefaults(`queues.${name}.`, defaults);
  }
  return queues;
}
