import { setTimeout as sleep } from "node:timers/promises";
import { open, type Pawl, schedule, task } from "pawl";
import type { TraceContext, Tracing } from "pawl/service";
import { Times } from "../child/spread.ts";
import type { Input, PlannedJob, Session, StoreLocation, Watched, WorkSettings } from "../contract/system.ts";

/** Above this, jobs are streamed, so that a backlog of a million does not have to fit into memory. */
const STREAM_FROM = 200_000;
/** where jobs go that say nothing else */
const QUEUE = "default";

export function connect(location: StoreLocation): Promise<Session> {
  return connectWith(location, {});
}

export interface PawlSettings {
  /** of a service on the place */
  readonly url?: string;
  readonly engine?: "pglite";
  readonly tracing?: Tracing;
}

export interface Telemetry {
  /** is told of the pawl before it works */
  readonly follow?: (pawl: Pawl) => void;
  /** what a job carries */
  readonly traceOf?: (input: Input) => TraceContext | undefined;
}

export async function connectWith(
  location: StoreLocation,
  { url = urlOf(location), ...options }: PawlSettings,
  { follow, traceOf }: Telemetry = {},
): Promise<Session> {
  let handle: (input: Input) => void = () => {};
  let watched = (): Watched => ({ claims: new Times().spread(), errors: 0, samples: [] });
  const noop = task("bench.noop", async (input: Input) => {
    handle(input);
    if (input.ms !== undefined) await sleep(input.ms);
  });
  // Tasks of their own: what others are enqueued with must not cost the more for them.
  const run = (input: Input) => handle(input);
  const limited = {
    "one key": task("bench.one-key", { limits: [{ key: "key", concurrency: 50 }] }, run),
    parked: task("bench.parked", { limits: [{ key: "key", rate: { limit: 1, per: "1d" } }] }, run),
  };
  const taskOf = (jobs: readonly PlannedJob[]) => (jobs[0]?.limited === undefined ? noop : limited[jobs[0].limited]);
  const pawl = await open(url, { tasks: [noop, ...Object.values(limited)], ...options });
  follow?.(pawl);

  const optionsOf = ({ input: { due }, tenant }: PlannedJob) => ({
    ...(due === undefined ? {} : { runAt: due }),
    ...(tenant === undefined ? {} : { tenant }),
  });
  const traced = (input: Input) => {
    const trace = traceOf?.(input);
    return trace === undefined ? undefined : { trace };
  };
  const each = (jobs: readonly PlannedJob[]) => {
    if (traceOf !== undefined) return { each: traced };
    const [first] = jobs;
    const alike = first === undefined || Object.keys(optionsOf(first)).length === 0;
    return alike ? {} : { each: (_: Input, index: number) => optionsOf(jobs[index] as PlannedJob) };
  };

  return {
    async prepare() {},
    async enqueue(job) {
      await pawl.enqueue(noop, job.input, optionsOf(job));
    },
    async enqueueMany(jobs) {
      const all = [...jobs];
      const inputs = all.map(({ input }) => input);
      if (all.length <= STREAM_FROM) await pawl.enqueueMany(taskOf(all), inputs, each(all));
      else await pawl.enqueueStream(taskOf(all), inputs, each(all));
    },
    async enqueueStream(jobs, stored) {
      const inputs = async function* () {
        for await (const { input } of jobs) yield input;
      };
      await pawl.enqueueStream(noop, inputs(), { onChunk: ({ count }) => stored(count) });
    },
    async putSchedules(given) {
      const schedules = given.map(({ tenant, input, times }) => schedule("nightly", noop, { tenant, input, ...times }));
      await (await open(urlOf(location), { tasks: [noop], schedules, maintenance: false, ...options })).close();
    },
    async work(given, { concurrency, workers = 1, watch = false }: WorkSettings) {
      handle = given;
      if (watch) watched = watching(pawl);
      for (let i = 0; i < workers; i++) await pawl.work(concurrency === undefined ? {} : { concurrency });
    },
    watched: () => watched(),
    pause: () => pawl.queues.pause(QUEUE),
    resume: () => pawl.queues.resume(QUEUE),
    stop: () => pawl.close(),
  };
}

/** Listens to the events of this process; what it answers says what they told since it was last called. */
function watching(pawl: Pawl): () => Watched {
  let claims = new Times();
  let samples: string[] = [];
  let errors = 0;
  const complain = (what: string) => {
    if (++errors <= 3) samples.push(what);
  };
  pawl.on("store.operation", ({ operation, duration, error }) => {
    if (operation === "leases.claim") claims.add(duration);
    if (error !== undefined) complain(`${operation}: ${error}`);
  });
  pawl.on("duty.failed", ({ duty, error }) => complain(`${duty}: ${error}`));
  pawl.on("lease.lost", ({ jobs, reason }) => complain(`a lease of ${jobs} jobs was lost: ${reason}`));
  pawl.on("attempt.stale", ({ job }) => complain(`a settlement of ${job} came too late`));
  return () => {
    const told = { claims: claims.spread(), errors, samples };
    claims = new Times();
    samples = [];
    errors = 0;
    return told;
  };
}

export function urlOf(location: StoreLocation): string {
  if (location.kind === "redis") throw new Error("Pawl has no Redis store yet");
  return location.kind === "postgres" ? location.url : location.folder;
}
