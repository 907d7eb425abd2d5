import type { JobId } from "../../core/jobs/id.js";
import type { JobRecord, JobState } from "../../core/jobs/job.js";
import type { Lane } from "../../core/jobs/lane.js";
import { ableWorkersOf, takesJobs } from "../../core/limits/able-workers.js";
import { lacksOf, type Serves } from "../../core/limits/capacity.js";
import type { LimitState } from "../../core/limits/lane-limit.js";
import type { LimitReason } from "../../core/limits/limit-rule.js";
import { laneShareOfStarts, startsPerMs } from "../../core/limits/start-rate.js";
import { tokens, tokensIn } from "../../core/limits/token-bucket.js";
import { explain, type JobSituation, type LimitKeyReason, type PolicyLimitReason, type Reason } from "../../core/observe/explain.js";
import { inWords } from "../../core/observe/explain-text.js";
import { policyKey, type QueuePolicy, refsOf, type TenantPolicy } from "../../core/sharing/policy.js";
import type { Scope, Store } from "../../store/port/index.js";
import type { JobLook } from "../../store/port/observe/explain.js";
import { failureView } from "../jobs/view.js";

/** Why a job is not running, and when it will: as data, and in words. */
export interface Explanation {
  readonly job: JobId;
  readonly state: JobState;
  /** all that stands in its way, the decisive one first */
  readonly reasons: readonly Reason<Date>[];
  /** absent where it waits for something nobody can foresee */
  readonly estimatedStart?: Date;
  readonly text: string;
}

/** Gathers what is known of a job and its surroundings, at about one moment; undefined if the scope has no such job. */
export async function explainJob(store: Store, scope: Scope, id: JobId): Promise<Explanation | undefined> {
  const found = await store.explain.look(scope, id);
  if (found === undefined) return undefined;
  const { failure } = found.job;
  const look = failure === undefined ? found : { ...found, job: { ...found.job, failure: failureView(failure, scope) } };
  const explained = explain(await situationOf(store, scope, look));
  const { reasons, start } = explained;
  return {
    job: id,
    state: look.job.state,
    reasons: reasons.map(reasonView),
    ...(start === undefined ? {} : { estimatedStart: new Date(start) }),
    text: inWords(explained, look.now),
  };
}

/** The fields of reasons that are instants. */
export const REASON_TIMES = ["at", "since", "until"] as const;

function reasonView(reason: Reason): Reason<Date> {
  const view: Record<string, unknown> = { ...reason };
  for (const name of REASON_TIMES) if (typeof view[name] === "number") view[name] = new Date(view[name]);
  return view as unknown as Reason<Date>;
}

async function situationOf(store: Store, scope: Scope, look: JobLook): Promise<JobSituation> {
  const { now, job, holder, parents, suspect, ahead, more } = look;
  const { lane } = job;
  const refs = new Set(refsOf(lane).map(policyKey));
  const [paused, live, [task], breaker, key] = await Promise.all([
    store.lanes.paused(),
    store.workers.live(),
    store.tasks.get([lane.task]),
    breakerOf(store, job),
    keyOf(store, look),
  ]);
  const workers = live.map(({ serves }) => serves).filter(takesJobs);
  const needs = task?.defaults.needs ?? {};
  const ableWorkers = job.state === "ready" ? ableWorkersOf(lane, needs, workers) : undefined;
  const [part, beside] = await Promise.all([partOfLane(store, look, workers), ableWorkers === undefined ? 0 : besideOf(store, lane, workers)]);
  const pace = look.startRate === undefined ? undefined : startsPerMs(look.startRate, now);
  return {
    now,
    job,
    ...(holder === undefined ? {} : { holder }),
    parents: { on: parents, count: job.waitsFor?.length ?? 0 },
    suspect,
    inLane: { ahead, more },
    ...(pace === undefined ? {} : { startRate: pace * part }),
    ...(ableWorkers === undefined ? {} : { ableWorkers }),
    discreet: scope !== "everyone",
    part,
    beside,
    paused: paused.filter((ref) => refs.has(policyKey(ref))),
    lacks: lacksOf(lane, needs, workers),
    ...(breaker === undefined ? {} : { breaker }),
    policyLimits: look.limits.flatMap((limit) => capOf(limit, now, scope)),
    ...(key === undefined ? {} : { limitKey: key }),
  };
}

/** Other queues and tasks with ready jobs, as far as these workers serve them. */
async function besideOf(store: Store, { queue, task }: Lane, workers: readonly Serves[]): Promise<number> {
  const { lanes } = await store.lanes.live(undefined, [...new Set(workers.flatMap(({ tasks }) => tasks))]);
  const others = lanes.filter((lane) => (lane.queue !== queue || lane.task !== task) && lacksOf(lane, {}, workers).length === 0);
  return new Set(others.map((lane) => `${lane.queue}\u0001${lane.task}`)).size;
}

async function breakerOf(store: Store, { lane }: JobRecord): Promise<JobSituation["breaker"]> {
  const [breaker] = await store.breakers.get([{ tenant: lane.tenant, task: lane.task }]);
  if (breaker?.state !== "open") return undefined;
  return breaker.probeAt === undefined ? {} : { until: breaker.probeAt };
}

/** The lane's part of the starts of its queue and task. */
async function partOfLane(store: Store, { job, rivals }: JobLook, workers: readonly Serves[]): Promise<number> {
  if (rivals.length === 0) return 1;
  const [queue, weights] = await Promise.all([
    store.policies.get({ kind: "queue", name: job.lane.queue }),
    store.policies.list("tenant").then(({ policies }) => new Map(policies.map(({ name, policy }) => [name, (policy as TenantPolicy).weight]))),
  ]);
  return laneShareOfStarts(job.lane, rivals, (queue?.policy ?? {}) as QueuePolicy, {
    weightOf: (tenant) => weights.get(tenant) ?? 1,
    tookOf(tenant) {
      const times = workers.flatMap(({ took }) => took?.filter(([name]) => name === tenant) ?? []);
      return times.length === 0 ? undefined : times.reduce((sum, [, ms]) => sum + ms, 0) / times.length;
    },
  });
}

/** A limit on its lane, if there is no room under it now. What others do under it is not a tenant's to know. */
function capOf({ kind, name, concurrency, rate, used, tat }: LimitState, now: number, scope: Scope): readonly PolicyLimitReason[] {
  const shown = scope === "everyone" || kind === "tenant";
  const concurrencyReached = concurrency !== undefined && used >= concurrency;
  const rateReached = rate !== undefined && tokens(rate, tat, now) < 1;
  return [
    ...(concurrencyReached ? [{ what: kind, name, limit: "concurrency", most: concurrency, ...(shown ? { held: used } : {}) } as const] : []),
    ...(rateReached ? [{ what: kind, name, limit: "rate", most: rate.limit, until: now + tokensIn(rate, tat, now, 1) } as const] : []),
  ];
}

/** How the key stands at which it is parked. */
async function keyOf(store: Store, { now, job, slotHolders }: JobLook): Promise<LimitKeyReason | undefined> {
  const { limitKey, parkedFor, lane, options } = job;
  if (limitKey === undefined || parkedFor === undefined || parkedFor === "paused") return undefined;
  const [waitingKey] = await store.limits.list({ tenant: lane.tenant, ...limitKey }, { limit: 1 });
  if (waitingKey === undefined) return { ...limitKey, for: parkedFor };
  const { rule, held, waiting, more, next, fullAt, pausedUntil } = waitingKey;
  // Nobody may have looked since it lined up: the one in front knows best what the key waits for.
  const reason: LimitReason = pausedUntil !== undefined && pausedUntil > now ? "key_paused" : next.job === job.id ? next.reason : parkedFor;
  const own = options.limits?.find(({ limit, key }) => limit === limitKey.limit && key === limitKey.key);
  // Behind others a token is not its own yet, so only the one in front knows when.
  const token =
    reason === "rate" && rule.rate !== undefined && next.job === job.id ? now + tokensIn(rule.rate, fullAt, now, own?.cost ?? 1) : undefined;
  const until = reason === "key_paused" ? pausedUntil : token;
  // Places are of no use to one that waits for a token or the end of a pause; and one may have kept its own turn.
  const holders = reason === "concurrency" || reason === "serial" ? slotHolders.filter((holder) => holder.job !== job.id) : [];
  return {
    ...limitKey,
    for: reason,
    held,
    waiting,
    ...(more === undefined ? {} : { more }),
    ...(rule.serial === true ? { most: 1 } : rule.concurrency === undefined ? {} : { most: rule.concurrency }),
    ...(holders.length === 0 ? {} : { holders }),
    ...(until === undefined ? {} : { until }),
  };
}
