import type { ApiKeyStore } from "../port/access/api-keys.js";
import type { AuditStore } from "../port/access/audit.js";
import type { DataKeyStore } from "../port/access/data-keys.js";
import type { PurgeStore } from "../port/access/purges.js";
import type { ReplyStore } from "../port/access/replies.js";
import type { LaneStore } from "../port/claim/lanes.js";
import type { WorkerStore } from "../port/claim/workers.js";
import type { DutyStore } from "../port/duties/duties.js";
import type { BatchStore } from "../port/enqueue/batches.js";
import type { IngestStore } from "../port/enqueue/ingest.js";
import type { Store } from "../port/index.js";
import type { DeadStore } from "../port/jobs/dead.js";
import type { JobStore } from "../port/jobs/jobs.js";
import type { TargetStore } from "../port/jobs/targets.js";
import type { TaskStore } from "../port/jobs/tasks.js";
import type { BreakerStore } from "../port/limits/breakers.js";
import type { LimitStore } from "../port/limits/limits.js";
import type { CheckupStore } from "../port/observe/checkup.js";
import type { EventStore } from "../port/observe/events.js";
import type { ExplainStore } from "../port/observe/explain.js";
import type { SeriesStore } from "../port/observe/series.js";
import type { ScheduleStore } from "../port/schedules/schedules.js";
import type { LeaseStore } from "../port/settle/leases.js";
import type { RecordStore } from "../port/settle/records.js";
import type { PolicyStore } from "../port/sharing/policies.js";

/** Every operation of the port, so that a wrapper cannot forget one: a new verb does not compile before it is here. */
const OPERATIONS = {
  jobs: {
    enqueue: true,
    get: true,
    lanes: true,
    list: true,
    history: true,
    logs: true,
    whole: true,
    cancel: true,
    pause: true,
    resume: true,
    promote: true,
    redrive: true,
    delete: true,
  } satisfies Record<keyof JobStore, true>,
  batches: { enqueue: true, get: true } satisfies Record<keyof BatchStore, true>,
  leases: {
    claim: true,
    claimLimited: true,
    claimSuspect: true,
    renew: true,
    settle: true,
    reap: true,
    intents: true,
    transaction: true,
  } satisfies Record<keyof LeaseStore, true>,
  lanes: { live: true, pause: true, resume: true, paused: true } satisfies Record<keyof LaneStore, true>,
  tasks: { publish: true, get: true } satisfies Record<keyof TaskStore, true>,
  limits: { admit: true, get: true, list: true, pause: true } satisfies Record<keyof LimitStore, true>,
  policies: { put: true, get: true, list: true } satisfies Record<keyof PolicyStore, true>,
  explain: { look: true, waits: true, parked: true, depths: true } satisfies Record<keyof ExplainStore, true>,
  ingest: { limits: true, take: true } satisfies Record<keyof IngestStore, true>,
  workers: { publish: true, retire: true, live: true } satisfies Record<keyof WorkerStore, true>,
  breakers: { report: true, probe: true, get: true, list: true, listNotClosed: true, force: true } satisfies Record<keyof BreakerStore, true>,
  dead: { groups: true } satisfies Record<keyof DeadStore, true>,
  checkup: { look: true } satisfies Record<keyof CheckupStore, true>,
  schedules: {
    put: true,
    get: true,
    list: true,
    pause: true,
    resume: true,
    delete: true,
    tick: true,
    trigger: true,
    backfill: true,
    ticks: true,
    fired: true,
    trim: true,
  } satisfies Record<keyof ScheduleStore, true>,
  duties: { poll: true, promote: true, expire: true, unblock: true, carryOut: true, fold: true, prune: true, restore: true } satisfies Record<
    keyof DutyStore,
    true
  >,
  records: { counts: true, tenantCounts: true, log: true, recall: true, record: true } satisfies Record<keyof RecordStore, true>,
  events: { watch: true, watched: true, append: true, read: true, trim: true } satisfies Record<keyof EventStore, true>,
  series: { read: true, trim: true } satisfies Record<keyof SeriesStore, true>,
  targets: { put: true, get: true, list: true, rotate: true, delete: true, gone: true, open: true } satisfies Record<keyof TargetStore, true>,
  apiKeys: {
    create: true,
    check: true,
    version: true,
    get: true,
    list: true,
    rotate: true,
    revoke: true,
    peppers: true,
    touch: true,
  } satisfies Record<keyof ApiKeyStore, true>,
  audit: { record: true, list: true, read: true, heads: true } satisfies Record<keyof AuditStore, true>,
  replies: { begin: true, finish: true, abandon: true } satisfies Record<keyof ReplyStore, true>,
  dataKeys: { add: true, newest: true, get: true, masterKeys: true, notBy: true, rewrap: true } satisfies Record<keyof DataKeyStore, true>,
  purges: { begin: true, get: true, list: true, jobs: true, rest: true, end: true } satisfies Record<keyof PurgeStore, true>,
} as const;

type StoreNoun = keyof typeof OPERATIONS;
/** "jobs.enqueue", "leases.settle" … */
export type Operation = { [N in StoreNoun]: `${N}.${keyof (typeof OPERATIONS)[N] & string}` }[StoreNoun];

/** Makes the call, before, after or instead of which it may do something of its own. */
export type CallWrapper = <T>(operation: Operation, call: () => Promise<T>) => Promise<T>;

/** A store whose every operation goes through `around`. */
export function wrapStore(store: Store, wrapper: CallWrapper): Store {
  return {
    jobs: wrapNoun("jobs", store.jobs, wrapper),
    batches: wrapNoun("batches", store.batches, wrapper),
    leases: wrapNoun("leases", store.leases, wrapper),
    lanes: wrapNoun("lanes", store.lanes, wrapper),
    tasks: wrapNoun("tasks", store.tasks, wrapper),
    limits: wrapNoun("limits", store.limits, wrapper),
    policies: wrapNoun("policies", store.policies, wrapper),
    explain: wrapNoun("explain", store.explain, wrapper),
    ingest: wrapNoun("ingest", store.ingest, wrapper),
    workers: wrapNoun("workers", store.workers, wrapper),
    breakers: wrapNoun("breakers", store.breakers, wrapper),
    dead: wrapNoun("dead", store.dead, wrapper),
    checkup: wrapNoun("checkup", store.checkup, wrapper),
    schedules: wrapNoun("schedules", store.schedules, wrapper),
    duties: wrapNoun("duties", store.duties, wrapper),
    records: wrapNoun("records", store.records, wrapper),
    events: wrapNoun("events", store.events, wrapper),
    series: wrapNoun("series", store.series, wrapper),
    targets: wrapNoun("targets", store.targets, wrapper),
    apiKeys: wrapNoun("apiKeys", store.apiKeys, wrapper),
    audit: wrapNoun("audit", store.audit, wrapper),
    replies: wrapNoun("replies", store.replies, wrapper),
    dataKeys: wrapNoun("dataKeys", store.dataKeys, wrapper),
    purges: wrapNoun("purges", store.purges, wrapper),
    get engine() {
      return store.engine;
    },
    onWakeup: (listener) => store.onWakeup(listener),
    sendWakeup: (wakeup) => store.sendWakeup(wakeup),
    receivesWakeups: () => store.receivesWakeups(),
    ...(store.handoff === undefined ? {} : { handoff: store.handoff }),
    ...(store.renewer === undefined ? {} : { renewer: store.renewer.bind(store) }),
    close: () => store.close(),
  };
}

type StoreVerbs = Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>;

function wrapNoun<N extends StoreNoun>(noun: N, verbs: Store[N], wrapper: CallWrapper): Store[N] {
  const inner = verbs as unknown as StoreVerbs;
  const outer: Record<string, (...args: readonly unknown[]) => Promise<unknown>> = {};
  for (const verb of Object.keys(OPERATIONS[noun])) {
    const operation = `${noun}.${verb}` as Operation;
    outer[verb] = (...args) => wrapper(operation, async () => inner[verb]?.(...args));
  }
  return outer as unknown as Store[N];
}
