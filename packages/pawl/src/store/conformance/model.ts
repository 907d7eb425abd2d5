import fc from "fast-check";
import { expect } from "vitest";
import type { IdTail, JobId } from "../../core/id.js";
import type { NewJob, State } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Verb } from "../../core/lifecycle.js";
import { decide, type Outcome, standingOf } from "../../core/outcome.js";
import { memoryStore } from "../memory/index.js";
import type { Scope, Store } from "../port.js";
import type { Settlement } from "../port-leases.js";
import { BANDS, type Command, modelCommands, QUEUES, RATED, type RandomJob, type RandomSettlement, SHORT_LEASE, TASKS, TENANTS } from "./commands.js";
import { compareSchedules, isScheduleCommand, performSchedule, verbOfSchedule } from "./schedule-commands.js";
import { leaseOf, Twins } from "./twins.js";
import { ANA, ANA_REBORN, BOB, HOUR, NOBODY, SECOND, TestClock } from "./world.js";

export interface ModelOptions {
  /** an empty store whose clock is `now` */
  readonly make: (now: () => number) => Promise<Store>;
  readonly runs: number;
  /** what happens in them; by default, anything */
  readonly stories?: fc.Arbitrary<readonly Command[]>;
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

async function tell(commands: readonly Command[], make: ModelOptions["make"]): Promise<void> {
  const clock = new TestClock();
  const twins = new Twins(memoryStore({ now: clock.now }), await make(clock.now), clock);
  const rated = commands.some(isRated);
  for (const command of commands) {
    await perform(twins, command);
    if (rated && PASSING.has(command.do)) await lookAtRates(twins);
    await twins.compare(verbOf(command), TASKS);
    await compareSchedules(twins);
  }
  await twins.compareAll();
}

function isRated(command: Command): boolean {
  return command.do === "enqueue" && command.jobs.some(({ options }) => options?.limits?.some(({ rule }) => rule.rate !== undefined) === true);
}

/** By these tokens come, or are taken by a worker, and nobody knocks. */
const PASSING: ReadonlySet<Command["do"]> = new Set(["claim", "claimSuspect", "advance", "vanish"]);

/** How soon somebody looks who waits for a token is each store's own affair; here both look at once. */
async function lookAtRates({ model, real }: Twins): Promise<void> {
  for (const gate of RATED) await Promise.all([model, real].map((store) => store.limits.pause(gate, 0)));
}

const LANES: readonly Lane[] = QUEUES.flatMap((queue) =>
  BANDS.flatMap((band) => TENANTS.flatMap((tenant) => TASKS.map((task) => ({ queue, band, tenant, task })))),
);
const WORKERS = [ANA, BOB, ANA_REBORN] as const;

function verbOf(command: Command): Verb | undefined {
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
    default:
      return command.do;
  }
}

async function perform(twins: Twins, command: Command): Promise<void> {
  if (isScheduleCommand(command)) return performSchedule(twins, command);
  switch (command.do) {
    case "enqueue":
      return enqueue(twins, command.jobs);
    case "claim": {
      const { worker, first, quota, duration } = command;
      const lanes = [...LANES.slice(first % LANES.length), ...LANES.slice(0, first % LANES.length)];
      const request = { worker: WORKERS[worker], quotas: lanes.map((lane) => ({ lane, quota })), duration: twins.apart(duration) };
      return twins.claim(request.worker, (store) => store.leases.claim(request));
    }
    case "claimSuspect": {
      const request = { worker: WORKERS[command.worker], queues: command.queues, tasks: command.tasks, duration: twins.apart(SHORT_LEASE) };
      return twins.claim(request.worker, (store) => store.leases.claimSuspect(request));
    }
    case "settle":
      return settle(twins, command);
    case "renew": {
      const duration = twins.apart(command.duration);
      const pairs = [...new Set(command.leases.flatMap((number) => twins.lease(number) ?? []))];
      await twins.both(async (store, side) => {
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
      return write(twins, command);
    case "reap":
      return reap(twins, command.limit);
    case "vanish":
      twins.clock.advance(SHORT_LEASE + SECOND);
      return reap(twins, 100);
    case "promote":
      await twins.both((store) => store.duties.promote(command.limit));
      return;
    case "expire":
      // Without a limit: whether timers of jobs that ended count towards it is each store's own affair.
      await twins.both((store) => store.duties.expire(1_000));
      return;
    case "unblock":
    case "carryOut":
    case "fold":
      // How much there is to do is each store's own affair; what it does to the jobs is compared.
      await Promise.all([twins.model, twins.real].map((store) => store.duties[command.do](1_000)));
      return;
    case "admit":
      await twins.both(async (store) => (await store.limits.admit(1_000)).count);
      return;
    case "pauseLane":
      await twins.both((store) => store.lanes.pause(command.kind, command.name));
      return;
    case "resumeLane":
      await twins.both((store) => store.lanes.resume(command.kind, command.name));
      return;
    case "advance":
      twins.clock.advance(command.ms);
      return;
    default:
      return change(twins, command);
  }
}

async function enqueue(twins: Twins, jobs: readonly RandomJob[]): Promise<void> {
  const made = jobs.map((job) => newJob(twins, job));
  const answers = await twins.both((store) => store.jobs.enqueue(made));
  expect(answers).toHaveLength(jobs.length);
  for (const answer of answers) if (answer.kind === "created") twins.jobs.push(answer.id);
}

/**
 * One lease after the other. In which order the jobs of one line up again is each store's own affair (nobody is
 * promised a place after a crash), so they are sent to the back one by one, in the same order in both.
 */
async function reap(twins: Twins, most: number): Promise<void> {
  for (let n = 0; n < most; n++) {
    const running = await statesOf(twins, "running");
    const { leases } = await twins.both((store) => store.leases.reap(1));
    if (leases === 0) return;
    const back = (await statesOf(twins, "ready")).filter((id) => running.includes(id));
    if (back.length < 2) continue;
    for (const id of back) {
      await twins.both(({ jobs }) => jobs.pause("everyone", id));
      await twins.both(({ jobs }) => jobs.resume("everyone", id));
    }
  }
}

async function statesOf(twins: Twins, state: State): Promise<readonly JobId[]> {
  return (await twins.model.jobs.list("everyone", { state }, { limit: 1_000 })).jobs.map(({ id }) => id);
}

let tails = 0;

function newJob(twins: Twins, { queue, priority: band, tenant, task, delay, options, request, unique, after }: RandomJob): NewJob {
  tails += 1;
  return {
    tail: `7000-8000-${tails.toString(16).padStart(12, "0")}` as IdTail,
    lane: { queue, band, tenant, task },
    input: '{"n":1}',
    options: unique === undefined ? options : { ...options, key: unique.key },
    ...(delay === 0 ? {} : { delay: twins.apart(delay) }),
    ...(request === undefined ? {} : { request: { id: request, digest: task } }),
    ...(unique === undefined ? {} : { unique }),
    ...(after === undefined ? {} : { dependsOn: { parents: parentsOf(twins, after.parents), onDeath: after.onDeath } }),
  };
}

/** At most one of them is unknown: which of several is named is each store's own affair. */
function parentsOf(twins: Twins, numbers: readonly number[]): readonly JobId[] {
  const parents = numbers.map((number) => twins.job(number));
  return parents[0] === undefined ? [NOBODY] : parents.filter((id) => id !== undefined);
}

async function settle(twins: Twins, { as, items }: Extract<Command, { do: "settle" }>): Promise<void> {
  const [first] = items;
  const holder = first === undefined ? undefined : twins.lease(first.lease)?.worker;
  if (holder === undefined) return;
  const worker = as === "holder" ? holder : WORKERS[as];
  const apart = items.map((item) => ({ ...item, delay: twins.apart(item.delay) }));
  await twins.both((store, side) =>
    store.leases.settle(
      worker,
      apart.flatMap((item) => settlement(twins, item, side) ?? []),
    ),
  );
}

function settlement(twins: Twins, { lease, job: number, outcome, delay }: RandomSettlement, side: "model" | "real"): Settlement | undefined {
  const pair = twins.lease(lease);
  const job = pair?.model.jobs[number % pair.model.jobs.length];
  if (pair === undefined || job === undefined) return undefined;
  const now = twins.clock.now();
  const patch = decide(standingOf(job, job.options, now), OUTCOMES[outcome](delay), delay === 0 ? [0, 0] : [delay, delay], () => 0.5);
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

async function write(twins: Twins, command: Extract<Command, { do: "record" | "log" }>): Promise<void> {
  const pair = twins.lease(command.lease);
  const job = pair?.model.jobs[command.job % pair.model.jobs.length]?.id;
  if (pair === undefined || job === undefined) return;
  const worker = command.as === "holder" ? pair.worker : WORKERS[command.as];
  await twins.both(async (store, side) => {
    const lease = leaseOf(pair, side);
    // Whether a job that is settled while others of its lease are not still takes lines is each store's own affair.
    if ((await twins.model.jobs.get("everyone", job))?.state !== "running") return undefined;
    if (command.do === "record") {
      const { name, value } = command;
      const answer = await store.records.record(worker, { lease, job, name, value, ttl: HOUR });
      return [answer, await store.records.recall(job, name)];
    }
    const level = command.progress ? "progress" : "info";
    return store.records.log(worker, [{ lease, job, at: twins.clock.now(), level, message: "line", data: "1" }]);
  });
}

async function change(twins: Twins, command: Extract<Command, { job: number; scope: string }>): Promise<void> {
  const id = twins.job(command.job) ?? NOBODY;
  const delay = command.do === "redrive" ? twins.apart(command.delay) : 0;
  const scope: Scope = command.scope === "everyone" ? "everyone" : { tenant: command.scope };
  await twins.both(({ jobs }) => {
    if (command.do === "cancel") return jobs.cancel(scope, id, "no need");
    if (command.do !== "redrive") return jobs[command.do](scope, id);
    return jobs.redrive(scope, id, { delay, ...(command.input === undefined ? {} : { input: command.input }) });
  });
}
