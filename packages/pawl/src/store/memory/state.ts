import type { StoredEntry } from "../../core/access/audit-entry.js";
import type { DeathPolicy } from "../../core/jobs/dependency.js";
import type { InstanceId, JobId, LeaseId } from "../../core/jobs/id.js";
import type { AttemptRecord, JobOptions, JobState, LogLine, RequestedIntent } from "../../core/jobs/job.js";
import type { Lane, LaneKey } from "../../core/jobs/lane.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { TaskRecord } from "../../core/jobs/task-record.js";
import type { UniqueRule } from "../../core/jobs/unique-key.js";
import type { IngestState } from "../../core/limits/ingest-limit.js";
import type { LimitKeyId, LimitReason, LimitRule } from "../../core/limits/limit-rule.js";
import type { StartRate } from "../../core/limits/start-rate.js";
import type { FiredTick, ScheduleRecord, TickGap } from "../../core/schedules/schedule.js";
import type { PolicyRecord } from "../../core/sharing/policy.js";
import { pawlError } from "../../core/values/error.js";
import type { DataKeyRecord } from "../port/access/data-keys.js";
import type { PurgeRecord } from "../port/access/purges.js";
import type { LiveWorker } from "../port/claim/workers.js";
import type { Wakeup } from "../port/index.js";
import type { MemoryApiKey } from "./access/api-keys.js";
import { JobFifo } from "./claim/fifo.js";
import { TimeHeap } from "./claim/time-heap.js";
import type { MemoryBatch } from "./jobs/batches.js";
import type { MemoryReply } from "./jobs/replies.js";
import type { MemoryTarget } from "./jobs/targets.js";
import type { MemoryBreaker } from "./limits/breakers.js";
import { LimitSlots } from "./limits/slots.js";
import { eventLog } from "./observe/events.js";
import type { MemorySeriesMinute } from "./observe/series.js";

/** Where a job is, and what belongs to being there. In Postgres, the table that holds its row. */
export type JobStatus =
  | { readonly state: "blocked" }
  | { readonly state: "scheduled"; readonly runAt: number }
  /** `admitted`: it was let in after it had waited at a limit key */
  | { readonly state: "ready"; readonly admitted?: true }
  /** `runAt` if it was paused while it waited for its time; `limitWait` if it waits at a limit key */
  | { readonly state: "parked"; readonly runAt?: number; readonly limitWait?: LimitWait }
  | { readonly state: "running"; readonly lease: LeaseId }
  | { readonly state: "succeeded" | "dead" | "cancelled" };

export interface MemoryJob {
  readonly id: JobId;
  readonly lane: Lane;
  options: JobOptions | undefined;
  readonly createdAt: number;
  readonly dueAt: number;
  /** a redrive may replace it */
  input: string;
  status: JobStatus;
  attempts: number;
  crashes: number;
  /** parents not satisfied yet */
  readonly waits: Set<JobId>;
  readonly onDependencyDeath: DeathPolicy;
  progress: string | undefined;
  /** its key in `keys`, if it took one */
  readonly key: string | undefined;
  readonly history: MemoryAttempt[];
  readonly logs: LogLine[];
  readonly effects: Map<string, { readonly value: string; readonly until: number }>;
}

/** The instance is the fence: it tells a repeated settle from a stale one after the lease is gone. */
export type MemoryAttempt = AttemptRecord & { readonly instance?: InstanceId };

export interface MemoryLease {
  readonly id: LeaseId;
  readonly worker: WorkerRef;
  readonly claimedAt: number;
  until: number;
  /** claimed as a suspect, so whatever happens to the worker happens because of this one job */
  readonly suspect: boolean;
  /** its jobs that are not settled */
  readonly open: Set<JobId>;
  /** those settled while it lasts */
  readonly settled: Set<JobId>;
}

export interface MemoryUniqueKey {
  readonly job: JobId;
  readonly hold: UniqueRule["hold"];
  /** end of its period; only if it holds for one */
  readonly until: number;
  /** when the first of the jobs asked for it that each took over from the one before */
  readonly since: number;
}

/** One key of one limit, as long as somebody was under it. */
export interface MemoryLimitKey {
  rule: LimitRule;
  fullAt: number | undefined;
  pausedUntil: number | undefined;
  closed: boolean;
  /** the jobs that wait here, by rank and seq */
  readonly limitQueue: LimitQueueEntry[];
}

export interface LimitQueueEntry {
  readonly job: JobId;
  readonly rank: number;
  readonly seq: number;
}

/** At which limit key a parked job waits, and where in its queue. */
export interface LimitWait extends LimitQueueEntry {
  readonly limitKey: LimitKeyId;
  readonly reason: LimitReason;
}

export interface MemorySchedule {
  record: ScheduleRecord;
  /** jobs of its ticks that may be unfinished */
  open: readonly JobId[];
  /** by the tick's time */
  readonly fired: Map<number, FiredTick>;
  /** by a time of their own, which may be that of a tick */
  readonly triggered: Map<number, FiredTick>;
  gaps: readonly TickGap[];
}

/** Every table of the store, and the step in which they change. */
export class Tables {
  readonly jobs = new Map<JobId, MemoryJob>();
  /** ready jobs by lane: those that waited at a limit key, and the others */
  readonly lanes = new Map<LaneKey, { readonly lane: Lane; readonly admitted: JobFifo; readonly rest: JobFifo }>();
  /** lanes whose last claim took from the admitted section: the next one takes from the rest */
  readonly restIsNext = new Set<LaneKey>();
  /** ready jobs that are run alone */
  readonly suspects = new JobFifo();
  readonly scheduled = new TimeHeap();
  /** pending jobs with an expiry or a deadline */
  readonly timers = new TimeHeap();
  readonly leases = new Map<LeaseId, MemoryLease>();
  /** parent → the jobs that wait for it */
  readonly dependents = new Map<JobId, Set<JobId>>();
  /** asked of jobs, and not carried out yet */
  readonly intents = new Map<JobId, RequestedIntent>();
  readonly keys = new Map<string, MemoryUniqueKey>();
  readonly requests = new Map<string, { readonly job: JobId; readonly digest: string | undefined; readonly until: number }>();
  /** by name */
  readonly tasks = new Map<string, TaskRecord>();
  /** by instance */
  readonly workers = new Map<InstanceId, LiveWorker>();
  readonly breakers = new Map<string, MemoryBreaker>();
  readonly paused = { queue: new Set<string>(), task: new Set<string>(), tenant: new Set<string>() };
  /** how fast jobs are started, by queue and task */
  readonly startRates = new Map<string, StartRate>();
  /** by `policyKey` */
  readonly ingest = new Map<string, IngestState>();
  /** by `policyKey` */
  readonly policies = new Map<string, PolicyRecord>();
  /** counts their changes */
  policyVersion = 0;
  /** when the buckets of limits will be full again, by `policyKey` */
  readonly buckets = new Map<string, number>();
  readonly slots = new LimitSlots();
  readonly limitKeys = new Map<LimitKeyId, MemoryLimitKey>();
  /** limit keys to look at, and when */
  readonly limitChecks = new Map<LimitKeyId, number>();
  /** those of the step in hand, to be looked at before it ends */
  readonly limitKeysToCheck = new Set<LimitKeyId>();
  /** by `seedOf` */
  readonly schedules = new Map<string, MemorySchedule>();
  /** by `targetKey` */
  readonly targets = new Map<string, MemoryTarget>();
  readonly apiKeys = new Map<string, MemoryApiKey>();
  /** counts what makes a key that was good no longer so */
  apiKeyVersion = 0;
  /** chains by tenant; undefined: that of the store as a whole */
  readonly audit = new Map<string | undefined, readonly StoredEntry[]>();
  readonly replies = new Map<string, MemoryReply>();
  readonly dataKeys = new Map<string, DataKeyRecord>();
  readonly purges = new Map<string, PurgeRecord>();
  /** by tenant and idempotency key */
  readonly batches = new Map<string, MemoryBatch>();
  readonly events = eventLog();
  /** by minute, queue and task */
  readonly series = new Map<string, MemorySeriesMinute>();
  readonly counts = new Map<string, { readonly queue: string; readonly task: string; readonly counts: Record<JobState, number> }>();

  readonly listeners = new Set<(wakeup: Wakeup) => void>();
  readonly wakeups: WakeupBatch = {
    ready: new Map(),
    finished: [],
    scheduledAt: undefined,
    tickAt: undefined,
    admitAt: undefined,
    intent: false,
    lanes: false,
    watch: false,
    events: false,
  };
  /** the time of the step in hand */
  now = 0;
  closed = false;
  readonly #clock: () => number;
  readonly #beforeEnd: (tables: Tables) => void;
  #lastLease = 0;
  #lastQueueSeq = 0;

  constructor(clock: () => number, beforeEnd: (tables: Tables) => void = () => {}) {
    this.#clock = clock;
    this.#beforeEnd = beforeEnd;
  }

  /** One verb. It runs to its end without a pause, so it is atomic; what it woke is told afterwards. */
  async step<T>(work: () => T): Promise<T> {
    if (this.closed) throw pawlError("closed", { what: "the store" });
    this.now = this.#clock();
    const answer = work();
    this.#beforeEnd(this);
    this.#tell();
    return answer;
  }

  /** in the order in which jobs are queued */
  nextQueueSeq(): number {
    this.#lastQueueSeq += 1;
    return this.#lastQueueSeq;
  }

  nextLease(): LeaseId {
    this.#lastLease += 1;
    return String(this.#lastLease) as LeaseId;
  }

  #tell(): void {
    for (const wakeup of takeWakeups(this.wakeups, this.now)) {
      for (const listener of this.listeners) {
        try {
          listener(wakeup);
        } catch {
          // A listener's fault is not the step's, which is done.
        }
      }
    }
  }
}

/** What a step woke, gathered into one wakeup of each kind. */
interface WakeupBatch {
  readonly ready: Map<LaneKey, Lane>;
  readonly finished: JobId[];
  scheduledAt: number | undefined;
  tickAt: number | undefined;
  admitAt: number | undefined;
  intent: boolean;
  lanes: boolean;
  watch: boolean;
  events: boolean;
}

function takeWakeups(batch: WakeupBatch, now: number): Wakeup[] {
  const wakeups: Wakeup[] = [];
  if (batch.ready.size > 0) wakeups.push({ kind: "ready", lanes: [...batch.ready.values()] });
  if (batch.scheduledAt !== undefined) wakeups.push({ kind: "scheduled", dueIn: batch.scheduledAt - now });
  if (batch.tickAt !== undefined) wakeups.push({ kind: "tick", dueIn: batch.tickAt - now });
  if (batch.admitAt !== undefined) wakeups.push({ kind: "admit", dueIn: batch.admitAt - now });
  if (batch.intent) wakeups.push({ kind: "intent" });
  if (batch.finished.length > 0) wakeups.push({ kind: "finished", jobs: [...batch.finished] });
  if (batch.lanes) wakeups.push({ kind: "lanes" });
  if (batch.watch) wakeups.push({ kind: "watch" });
  if (batch.events) wakeups.push({ kind: "events" });
  batch.ready.clear();
  batch.finished.length = 0;
  batch.scheduledAt = undefined;
  batch.tickAt = undefined;
  batch.admitAt = undefined;
  batch.intent = false;
  batch.lanes = false;
  batch.watch = false;
  batch.events = false;
  return wakeups;
}
