import type { PawlError } from "../core/error.js";
import { type RandomBytes, tailSource } from "../core/id.js";
import type { Enqueued, NewJob } from "../core/job.js";
import { laneKey } from "../core/lane.js";
import { checkName } from "../core/name.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { AnyTask } from "../worker/task.js";
import { Backpressure } from "./backpressure.js";
import { Batcher } from "./batcher.js";
import { checkDefaults, checkKeys, checkObject, DEFAULT_KEYS } from "./check.js";
import { Directory } from "./directory.js";
import type { Intake } from "./enqueuer.js";
import type { QueueDefaults } from "./options.js";
import { Registry } from "./registry.js";
import type { CodeSchedule } from "./schedule.js";
import { Waiters } from "./waiters.js";

export interface SchedulerOptions {
  /** the code this process has; left out: it only produces, and may enqueue any task by name */
  readonly tasks?: readonly AnyTask[];
  /** defaults by queue */
  readonly queues?: Readonly<Record<string, QueueDefaults>>;
  /** the schedules of this code: stored when it is opened; those it had before and has no more are marked as missing */
  readonly schedules?: readonly CodeSchedule[];
  /** whose schedules they are, where several applications share a store */
  readonly app?: string;
}

/** What a scheduler needs of the world. */
export interface Surroundings {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
}

/** What the schedulers of all scopes on one store share. */
export interface SchedulerParts extends Intake {
  readonly waiters: Waiters;
}

export function schedulerParts(store: Store, bus: Bus, { clock, randomBytes }: Surroundings, options: SchedulerOptions): SchedulerParts {
  const enqueue = enqueueAndTell(store, bus);
  const backpressure = new Backpressure(store, bus, clock);
  return {
    store,
    registry: new Registry(options.tasks, new Directory(store, clock)),
    queues: checkQueues(options.queues),
    backpressure,
    enqueue: inTurn((jobs) => backpressure.whole(jobs), enqueue),
    batcher: new Batcher((jobs) => enqueueAdmitted(backpressure, enqueue, jobs), clock),
    tails: tailSource(randomBytes),
    untold: new Map(),
    waiters: new Waiters(store, clock),
  };
}

/** Batches are judged one after the other, so that what is large is stored in its order, and a part that is let in is never behind one that is not. */
function inTurn(admit: (jobs: readonly NewJob[]) => Promise<void>, enqueue: Intake["enqueue"]): Intake["enqueue"] {
  let last: Promise<unknown> = Promise.resolve();
  return (jobs) => {
    const admitted = last.then(() => admit(jobs));
    last = admitted.catch(() => {});
    return admitted.then(() => enqueue(jobs));
  };
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
function enqueueAndTell(store: Store, bus: Bus): Intake["enqueue"] {
  return async (jobs) => {
    const answers = await store.jobs.enqueue(jobs);
    if (bus.hears("jobs.enqueued")) {
      const lanes = jobs.filter((_, i) => answers[i]?.kind === "created").map(({ lane }) => lane);
      if (lanes.length > 0)
        bus.emit("jobs.enqueued", { count: lanes.length, lanes: [...new Map(lanes.map((lane) => [laneKey(lane), lane])).values()] });
    }
    return answers;
  };
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
