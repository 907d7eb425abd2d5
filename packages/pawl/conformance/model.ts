import fc from "fast-check";
import { expect } from "vitest";
import type { IdSuffix, JobId } from "../src/core/jobs/id.js";
import type { JobState, NewJob } from "../src/core/jobs/job.js";
import type { Lane } from "../src/core/jobs/lane.js";
import type { Verb } from "../src/core/jobs/lifecycle.js";
import { attemptsSoFar, decide, type Outcome } from "../src/core/jobs/outcome.js";
import { memoryStore } from "../src/store/memory/index.js";
import type { Scope, Store } from "../src/store/port/index.js";
import type { Settlement } from "../src/store/port/settle/leases.js";
import {
  type ModelCommand,
  modelCommands,
  PRIORITIES,
  QUEUES,
  RATED,
  type RandomJob,
  type RandomSettlement,
  SHORT_LEASE,
  TASKS,
  TENANTS,
} from "./commands.js";
import { dutiesOf } from "./duties.js";
import { compareSchedules, isScheduleCommand, performSchedule, verbOfSchedule } from "./schedules/commands.js";
import { leaseOf, StorePair } from "./store-pair.js";
import { ANA, ANA_REBORN, BOB, HOUR, NOBODY, SECOND, TestClock } from "./world.js";

export interface ModelOptions {
  /** an empty store whose clock is `now` */
  readonly make: (now: () => number) => Promise<Store>;
  readonly runs: number;
  /** what happens in them; by default, anything */
  readonly stories?: fc.Arbitrary<readonly ModelCommand[]>;
  /** to repeat a run: what the failure printed */
  readonly seed?: number;
  readonly path?: string;
}

/**
 * Random sequences of commands, one after the other, against the memory store as the model. After each of them the
 * answers and everything that can be seen must be equal. A failure prints its seed, its path and the shortest story.
 */
export async function runModel({ make, runs, stories = modelCommands, seed, path }: ModelOptions): Promise<void> {
  let failedAt = Number.POSITIVE_INFINITY;
  const property = fc.asyncProperty(stories, async (commands) => {
    // To pass is to end the search for a shorter story.
    if (performance.now() - failedAt > SHORTENING) return;
    try {
      await tell(commands, make);
    } catch (error) {
      failedAt = Math.min(failedAt, performance.now());
      throw error;
    }
  });
  await fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed }), ...(path === undefined ? {} : { path }) });
}

/** ms spent on shortening a story that fails: on a real database each try takes a while */
const SHORTENING = 30_000;

async function tell(commands: readonly ModelCommand[], make: ModelOptions["make"]): Promise<void> {
  const clock = new TestClock();
  const stores = new StorePair(memoryStore({ now: clock.now }), await make(clock.now), clock);
  const rated = commands.some(isRated);
  for (const command of commands) {
    await perform(stores, command);
    if (rated && PASSING.has(command.do)) await lookAtRates(stores);
    await stores.compare(verbOf(command), TASKS);
    await compareSchedules(stores);
  }
  await stores.compareAll();
}

function isRated(command: ModelCommand): boolean {
  return command.do === "enqueue" && command.jobs.some(({ options }) => options?.limits?.some(({ rule }) => rule.rate !== undefined) === true);
}

/** By these tokens come, or are taken by a worker, and nobody adds a limit check. */
const PASSING: ReadonlySet<ModelCommand["do"]> = new Set(["claim", "claimSuspect", "advance", "vanish"]);

/** How soon somebody looks who waits for a token is each store's own affair; here both look at once. */
async function lookAtRates({ model, real }: StorePair): Promise<void> {
  for (const limitKey of RATED) await Promise.all([model, real].map((store) => store.limits.pause(limitKey, 0)));
}

const LANES: readonly Lane[] = QUEUES.flatMap((queue) =>
  PRIORITIES.flatMap((priority) => TENANTS.flatMap((tenant) => TASKS.map((task) => ({ queue, priority, tenant, task })))),
);
const WORKERS = [ANA, BOB, ANA_REBORN] as const;

function verbOf(command: ModelCommand): Verb | undefined {
  if (isScheduleCommand(command)) return verbOfSchedule(command);
  switch (command.do) {
    case "claimSuspect":
      return "claim";
    case "vanish":
      return "reap";
    case "renew":
    case "record":
    case "log":
    case "fold":
    case "carryOut":
    case "pauseLane":
    case "resumeLane":
    case "advance":
      return undefined;
    case "promoteDue":
      return "promote";
    default:
      return command.do;
  }
}

async function perform(stores: StorePair, command: ModelCommand): Promise<void> {
  if (isScheduleCommand(command)) return performSchedule(stores, command);
  switch (command.do) {
    case "enqueue":
      return enqueue(stores, command.jobs);
    case "claim": {
      const { worker, first, quota, duration } = command;
      const lanes = [...LANES.slice(first % LANES.length), ...LANES.slice(0, first % LANES.length)];
      const request = { worker: WORKERS[worker], quotas: lanes.map((lane) => ({ lane, quota })), duration: stores.apart(duration) };
      return stores.claim(request.worker, (store) => store.leases.claim(request));
    }
    case "claimSuspect": {
      const request = { worker: WORKERS[command.worker], queues: command.queues, tasks: command.tasks, duration: stores.apart(SHORT_LEASE) };
      return stores.claim(request.worker, (store) => store.leases.claimSuspect(request));
    }
    case "settle":
      return settle(stores, command);
    case "renew": {
      const duration = stores.apart(command.duration);
      const pairs = [...new Set(command.leases.flatMap((number) => stores.lease(number) ?? []))];
      await stores.both(async (store, side) => {
        const { held } = await store.leases.renew(
          WORKERS[command.worker],
          pairs.map((pair) => leaseOf(pair, side)),
          duration,
        );
        return pairs.map((pair) => held.includes(leaseOf(pair, side)));
      });
      return;
    }
    case "record":
    case "log":
      return write(stores, command);
    case "reap":
      return reap(stores, command.limit);
    case "vanish":
      stores.clock.advance(SHORT_LEASE + SECOND);
      return reap(stores, 100);
    case "promoteDue":
      await stores.both((store) => dutiesOf(store).promote(command.limit));
      return;
    case "expire":
      // Without a limit: whether timers of jobs that ended count towards it is each store's own affair.
      await stores.both((store) => dutiesOf(store).expire(1_000));
      return;
    case "unblock":
    case "carryOut":
    case "fold":
      // How much there is to do is each store's own affair; what it does to the jobs is compared.
      await Promise.all([stores.model, stores.real].map((store) => dutiesOf(store)[command.do](1_000)));
      return;
    case "admit":
      await stores.both(async (store) => (await dutiesOf(store).admit(1_000)).count);
      return;
    case "pauseLane":
      await stores.both((store) => store.lanes.pause(command.kind, command.name));
      return;
    case "resumeLane":
      await stores.both((store) => store.lanes.resume(command.kind, command.name));
      return;
    case "advance":
      stores.clock.advance(command.ms);
      return;
    default:
      return change(stores, command);
  }
}

async function enqueue(stores: StorePair, jobs: readonly RandomJob[]): Promise<void> {
  const made = jobs.map((job) => newJob(stores, job));
  const answers = await stores.both((store) => store.jobs.enqueue(made));
  expect(answers).toHaveLength(jobs.length);
  for (const answer of answers) if (answer.kind === "created") stores.jobs.push(answer.id);
}

/**
 * One lease after the other. In which order the jobs of one line up again is each store's own affair (nobody is
 * promised a place after a crash), so they are sent to the back one by one, in the same order in both.
 */
async function reap(stores: StorePair, most: number): Promise<void> {
  for (let n = 0; n < most; n++) {
    const running = await statesOf(stores, "running");
    const { leases } = await stores.both((store) => dutiesOf(store).reap(1));
    if (leases === 0) return;
    const back = (await statesOf(stores, "ready")).filter((id) => running.includes(id));
    if (back.length < 2) continue;
    for (const id of back) {
      await stores.both(({ jobs }) => jobs.pause("everyone", id));
      await stores.both(({ jobs }) => jobs.resume("everyone", id));
    }
  }
}

async function statesOf(stores: StorePair, state: JobState): Promise<readonly JobId[]> {
  return (await stores.model.jobs.list("everyone", { state }, { limit: 1_000 })).jobs.map(({ id }) => id);
}

let idSuffixes = 0;

function newJob(stores: StorePair, { queue, priority, tenant, task, delay, options, request, unique, after }: RandomJob): NewJob {
  idSuffixes += 1;
  return {
    idSuffix: `7000-8000-${idSuffixes.toString(16).padStart(12, "0")}` as IdSuffix,
    lane: { queue, priority, tenant, task },
    input: '{"n":1}',
    options: unique === undefined ? options : { ...options, uniqueKey: unique.key },
    ...(delay === 0 ? {} : { delay: stores.apart(delay) }),
    ...(request === undefined ? {} : { idempotencyKey: { id: request, digest: task } }),
    ...(unique === undefined ? {} : { unique }),
    ...(after === undefined ? {} : { dependsOn: { parents: parentsOf(stores, after.parents), onDependencyDeath: after.onDependencyDeath } }),
  };
}

/** At most one of them is unknown: which of several is named is each store's own affair. */
function parentsOf(stores: StorePair, numbers: readonly number[]): readonly JobId[] {
  const parents = numbers.map((number) => stores.job(number));
  return parents[0] === undefined ? [NOBODY] : parents.filter((id) => id !== undefined);
}

async function settle(stores: StorePair, { as, items }: Extract<ModelCommand, { do: "settle" }>): Promise<void> {
  const [first] = items;
  const holder = first === undefined ? undefined : stores.lease(first.lease)?.worker;
  if (holder === undefined) return;
  const worker = as === "holder" ? holder : WORKERS[as];
  const apart = items.map((item) => ({ ...item, delay: stores.apart(item.delay) }));
  await stores.both((store, side) =>
    store.leases.settle(
      worker,
      apart.flatMap((item) => settlement(stores, item, side) ?? []),
    ),
  );
}

function settlement(stores: StorePair, { lease, job: number, outcome, delay }: RandomSettlement, side: "model" | "real"): Settlement | undefined {
  const pair = stores.lease(lease);
  const job = pair?.model.jobs[number % pair.model.jobs.length];
  if (pair === undefined || job === undefined) return undefined;
  const now = stores.clock.now();
  const patch = decide(attemptsSoFar(job, job.options, now), OUTCOMES[outcome](delay), delay === 0 ? [0, 0] : [delay, delay], () => 0.5);
  const limited = job.options?.limits === undefined && job.limited !== true ? {} : ({ limited: true } as const);
  // Where a job stands is each store's own affair.
  const { at } = pair[side].jobs.find(({ id }) => id === job.id) ?? {};
  return { lease: leaseOf(pair, side), job: job.id, at, lane: job.lane, patch, startedAt: pair.model.now, finishedAt: now, ...limited };
}

const OUTCOMES: Readonly<Record<RandomSettlement["outcome"], (delay: number) => Outcome>> = {
  succeeded: () => ({ kind: "succeeded", output: '{"ok":true}' }),
  failed: () => ({ kind: "failed", failure: { kind: "error", name: "Error", message: "no", stack: "at x" }, retryable: true }),
  killed: () => ({ kind: "failed", failure: { kind: "timeout", name: "timeout", message: "too slow" }, retryable: false }),
  snoozed: (delay) => ({ kind: "snoozed", delay }),
  released: () => ({ kind: "released" }),
  cancelled: () => ({ kind: "cancelled", reason: "asked to" }),
};

async function write(stores: StorePair, command: Extract<ModelCommand, { do: "record" | "log" }>): Promise<void> {
  const pair = stores.lease(command.lease);
  const job = pair?.model.jobs[command.job % pair.model.jobs.length]?.id;
  if (pair === undefined || job === undefined) return;
  const worker = command.as === "holder" ? pair.worker : WORKERS[command.as];
  await stores.both(async (store, side) => {
    const lease = leaseOf(pair, side);
    // Whether a job that is settled while others of its lease are not still takes lines is each store's own affair.
    if ((await stores.model.jobs.get("everyone", job))?.state !== "running") return undefined;
    if (command.do === "record") {
      const { name, value } = command;
      const answer = await store.records.record(worker, { lease, job, name, value, ttl: HOUR });
      return [answer, await store.records.recall(job, name)];
    }
    const level = command.progress ? "progress" : "info";
    return store.records.log(worker, [{ lease, job, at: stores.clock.now(), level, message: "line", data: "1" }]);
  });
}

async function change(stores: StorePair, command: Extract<ModelCommand, { job: number; scope: string }>): Promise<void> {
  const id = stores.job(command.job) ?? NOBODY;
  const delay = command.do === "redrive" ? stores.apart(command.delay) : 0;
  const scope: Scope = command.scope === "everyone" ? "everyone" : { tenant: command.scope };
  await stores.both(({ jobs }) => {
    if (command.do === "cancel") return jobs.cancel(scope, id, "no need");
    if (command.do !== "redrive") return jobs[command.do](scope, id);
    return jobs.redrive(scope, id, { delay, ...(command.input === undefined ? {} : { input: command.input }) });
  });
}
