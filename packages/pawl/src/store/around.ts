import type { Store } from "./port.js";
import type { AuditStore } from "./port-audit.js";
import type { BatchStore } from "./port-batches.js";
import type { BreakerStore } from "./port-breakers.js";
import type { CheckupStore } from "./port-checkup.js";
import type { DataKeyStore } from "./port-data-keys.js";
import type { DeadStore } from "./port-dead.js";
import type { DutyStore } from "./port-duties.js";
import type { EventStore } from "./port-events.js";
import type { ExplainStore } from "./port-explain.js";
import type { IngestStore } from "./port-ingest.js";
import type { JobStore } from "./port-jobs.js";
import type { ApiKeyStore } from "./port-keys.js";
import type { LaneStore } from "./port-lanes.js";
import type { LeaseStore } from "./port-leases.js";
import type { LimitStore } from "./port-limits.js";
import type { PolicyStore } from "./port-policies.js";
import type { PurgeStore } from "./port-purges.js";
import type { RecordStore } from "./port-records.js";
import type { ReplyStore } from "./port-replies.js";
import type { ScheduleStore } from "./port-schedules.js";
import type { SeriesStore } from "./port-series.js";
import type { TargetStore } from "./port-targets.js";
import type { TaskStore } from "./port-tasks.js";
import type { WorkerStore } from "./port-workers.js";

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
    retry: true,
    redrive: true,
    drop: true,
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
  breakers: { report: true, probe: true, get: true, list: true, standing: true, force: true } satisfies Record<keyof BreakerStore, true>,
  dead: { groups: true } satisfies Record<keyof DeadStore, true>,
  checkup: { look: true } satisfies Record<keyof CheckupStore, true>,
  schedules: {
    put: true,
    get: true,
    list: true,
    pause: true,
    resume: true,
    remove: true,
    tick: true,
    trigger: true,
    backfill: true,
    ticks: true,
    fired: true,
    trim: true,
  } satisfies Record<keyof ScheduleStore, true>,
  duties: { pulse: true, promote: true, expire: true, unblock: true, carryOut: true, fold: true, prune: true, restore: true } satisfies Record<
    keyof DutyStore,
    true
  >,
  records: { counts: true, standing: true, log: true, recall: true, record: true } satisfies Record<keyof RecordStore, true>,
  events: { watch: true, watched: true, append: true, read: true, trim: true } satisfies Record<keyof EventStore, true>,
  series: { read: true, trim: true } satisfies Record<keyof SeriesStore, true>,
  targets: { put: true, get: true, list: true, rotate: true, remove: true, gone: true, open: true } satisfies Record<keyof TargetStore, true>,
  apiKeys: { create: true, check: true, mark: true, get: true, list: true, rotate: true, revoke: true, touch: true } satisfies Record<
    keyof ApiKeyStore,
    true
  >,
  audit: { record: true, list: true, read: true, heads: true } satisfies Record<keyof AuditStore, true>,
  replies: { begin: true, finish: true, abandon: true } satisfies Record<keyof ReplyStore, true>,
  dataKeys: { add: true, newest: true, get: true, masters: true, notBy: true, rewrap: true } satisfies Record<keyof DataKeyStore, true>,
  purges: { begin: true, get: true, list: true, jobs: true, rest: true, end: true } satisfies Record<keyof PurgeStore, true>,
} as const;

type Noun = keyof typeof OPERATIONS;
/** "jobs.enqueue", "leases.settle" … */
export type Operation = { [N in Noun]: `${N}.${keyof (typeof OPERATIONS)[N] & string}` }[Noun];

/** Makes the call, before, after or instead of which it may do something of its own. */
export type Around = <T>(operation: Operation, call: () => Promise<T>) => Promise<T>;

/** A store whose every operation goes through `around`. */
export function aroundStore(store: Store, around: Around): Store {
  return {
    jobs: wrap("jobs", store.jobs, around),
    batches: wrap("batches", store.batches, around),
    leases: wrap("leases", store.leases, around),
    lanes: wrap("lanes", store.lanes, around),
    tasks: wrap("tasks", store.tasks, around),
    limits: wrap("limits", store.limits, around),
    policies: wrap("policies", store.policies, around),
    explain: wrap("explain", store.explain, around),
    ingest: wrap("ingest", store.ingest, around),
    workers: wrap("workers", store.workers, around),
    breakers: wrap("breakers", store.breakers, around),
    dead: wrap("dead", store.dead, around),
    checkup: wrap("checkup", store.checkup, around),
    schedules: wrap("schedules", store.schedules, around),
    duties: wrap("duties", store.duties, around),
    records: wrap("records", store.records, around),
    events: wrap("events", store.events, around),
    series: wrap("series", store.series, around),
    targets: wrap("targets", store.targets, around),
    apiKeys: wrap("apiKeys", store.apiKeys, around),
    audit: wrap("audit", store.audit, around),
    replies: wrap("replies", store.replies, around),
    dataKeys: wrap("dataKeys", store.dataKeys, around),
    purges: wrap("purges", store.purges, around),
    get engine() {
      return store.engine;
    },
    onHint: (listener) => store.onHint(listener),
    hint: (hint) => store.hint(hint),
    hearsOthers: () => store.hearsOthers(),
    ...(store.seats === undefined ? {} : { seats: store.seats }),
    ...(store.renewer === undefined ? {} : { renewer: store.renewer.bind(store) }),
    close: () => store.close(),
  };
}

type Verbs = Readonly<Record<string, (...given: readonly unknown[]) => Promise<unknown>>>;

function wrap<N extends Noun>(noun: N, verbs: Store[N], around: Around): Store[N] {
  const inner = verbs as unknown as Verbs;
  const outer: Record<string, (...given: readonly unknown[]) => Promise<unknown>> = {};
  for (const verb of Object.keys(OPERATIONS[noun])) {
    const operation = `${noun}.${verb}` as Operation;
    outer[verb] = (...given) => around(operation, async () => inner[verb]?.(...given));
  }
  return outer as unknown as Store[N];
}
