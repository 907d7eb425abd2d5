import type { StoredEntry } from "../../core/audit.js";
import type { IngestState } from "../../core/backpressure.js";
import type { DeathPolicy } from "../../core/dependency.js";
import { pawlError } from "../../core/error.js";
import type { BootId, JobId, LeaseId } from "../../core/id.js";
import type { Asked, AttemptRecord, JobOptions, LogLine, State } from "../../core/job.js";
import type { Lane, LaneKey } from "../../core/lane.js";
import type { WorkerRef } from "../../core/lease.js";
import type { GateKey, GateReason, LimitRule } from "../../core/limit.js";
import type { Pace } from "../../core/pace.js";
import type { PolicyRecord } from "../../core/policy.js";
import type { FiredTick, ScheduleRecord, TickGap } from "../../core/schedule.js";
import type { TaskRecord } from "../../core/task.js";
import type { UniqueRule } from "../../core/unique.js";
import type { Hint } from "../port.js";
import type { DataKeyRecord } from "../port-data-keys.js";
import type { PurgeRecord } from "../port-purges.js";
import type { LiveWorker } from "../port-workers.js";
import type { ApiKeyRow } from "./api-keys.js";
import type { BatchRow } from "./batches.js";
import type { BreakerRow } from "./breakers.js";
import { eventLog } from "./events.js";
import { Line } from "./line.js";
import type { ReplyRow } from "./replies.js";
import type { SeriesRow } from "./series.js";
import { Slots } from "./slots.js";
import type { TargetRow } from "./targets.js";
import { Timeline } from "./timeline.js";

/** Where a job is, and what belongs to being there. In Postgres, the table that holds its row. */
export type Place =
  | { readonly state: "blocked" }
  | { readonly state: "scheduled"; readonly runAt: number }
  /** `front`: it was let in after it had waited at a gate */
  | { readonly state: "ready"; readonly front?: true }
  /** `runAt` if it was paused while it waited for its time; `standing` if it waits at a gate */
  | { readonly state: "parked"; readonly runAt?: number; readonly standing?: Standing }
  | { readonly state: "running"; readonly lease: LeaseId }
  | { readonly state: "succeeded" | "dead" | "cancelled" };

export interface JobRow {
  readonly id: JobId;
  readonly lane: Lane;
  options: JobOptions | undefined;
  readonly createdAt: number;
  readonly dueAt: number;
  /** a redrive may replace it */
  input: string;
  place: Place;
  spent: number;
  crashes: number;
  /** parents not satisfied yet */
  readonly waits: Set<JobId>;
  readonly onDeath: DeathPolicy;
  progress: string | undefined;
  /** its place in `keys`, if it took one */
  readonly key: string | undefined;
  readonly history: HistoryRow[];
  readonly logs: LogLine[];
  readonly effects: Map<string, { readonly value: string; readonly until: number }>;
}

/** The boot is the fence: it tells a repeated settle from a stale one after the lease is gone. */
export type HistoryRow = AttemptRecord & { readonly boot?: BootId };

export interface LeaseRow {
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

export interface KeyRow {
  readonly job: JobId;
  readonly hold: UniqueRule["hold"];
  /** end of its period; only if it holds for one */
  readonly until: number;
  /** when the first of the jobs asked for it that each took over from the one before */
  readonly since: number;
}

/** One key of one limit, as long as somebody was under it. */
export interface GateRow {
  rule: LimitRule;
  fullAt: number | undefined;
  pausedUntil: number | undefined;
  closed: boolean;
  /** who waits here, by rank and place */
  readonly line: LineEntry[];
}

export interface LineEntry {
  readonly job: JobId;
  readonly rank: number;
  readonly place: number;
}

/** Where in which line a parked job stands. */
export interface Standing extends LineEntry {
  readonly gate: GateKey;
  readonly reason: GateReason;
}

export interface ScheduleRow {
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
  readonly jobs = new Map<JobId, JobRow>();
  /** ready jobs by lane: those that waited at a gate, and the others */
  readonly lanes = new Map<LaneKey, { readonly lane: Lane; readonly front: Line; readonly line: Line }>();
  /** lanes whose last claim took from the front: the next one takes from the others */
  readonly othersTurn = new Set<LaneKey>();
  /** ready jobs that are run alone */
  readonly suspects = new Line();
  readonly scheduled = new Timeline();
  /** pending jobs with an expiry or a deadline */
  readonly timers = new Timeline();
  readonly leases = new Map<LeaseId, LeaseRow>();
  /** parent → the jobs that wait for it */
  readonly dependents = new Map<JobId, Set<JobId>>();
  /** asked of jobs, and not carried out yet */
  readonly intents = new Map<JobId, Asked>();
  readonly keys = new Map<string, KeyRow>();
  readonly requests = new Map<string, { readonly job: JobId; readonly digest: string | undefined; readonly until: number }>();
  /** by name */
  readonly tasks = new Map<string, TaskRecord>();
  /** by boot */
  readonly workers = new Map<BootId, LiveWorker>();
  readonly breakers = new Map<string, BreakerRow>();
  readonly paused = { queue: new Set<string>(), task: new Set<string>(), tenant: new Set<string>() };
  /** how fast jobs are started, by queue and task */
  readonly paces = new Map<string, Pace>();
  /** by `policyKey` */
  readonly ingest = new Map<string, IngestState>();
  /** by `policyKey` */
  readonly policies = new Map<string, PolicyRecord>();
  /** counts their changes */
  policyMark = 0;
  /** when the buckets of limits will be full again, by `policyKey` */
  readonly buckets = new Map<string, number>();
  readonly slots = new Slots();
  readonly gates = new Map<GateKey, GateRow>();
  /** gates to look at, and when */
  readonly knocks = new Map<GateKey, number>();
  /** those of the step in hand, to be looked at before it ends */
  readonly fresh = new Set<GateKey>();
  /** by `seedOf` */
  readonly schedules = new Map<string, ScheduleRow>();
  /** by `targetKey` */
  readonly targets = new Map<string, TargetRow>();
  readonly apiKeys = new Map<string, ApiKeyRow>();
  /** counts what makes a key that was good no longer so */
  apiKeyMark = 0;
  /** chains by tenant; undefined: that of the store as a whole */
  readonly audit = new Map<string | undefined, readonly StoredEntry[]>();
  readonly replies = new Map<string, ReplyRow>();
  readonly dataKeys = new Map<string, DataKeyRecord>();
  readonly purges = new Map<string, PurgeRecord>();
  /** by tenant and request id */
  readonly batches = new Map<string, BatchRow>();
  readonly events = eventLog();
  /** by minute, queue and task */
  readonly series = new Map<string, SeriesRow>();
  readonly counts = new Map<string, { readonly queue: string; readonly task: string; readonly counts: Record<State, number> }>();

  readonly listeners = new Set<(hint: Hint) => void>();
  readonly hints: HintBatch = {
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
  #lastPlace = 0;

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

  /** in the order in which jobs line up */
  nextPlace(): number {
    this.#lastPlace += 1;
    return this.#lastPlace;
  }

  nextLease(): LeaseId {
    this.#lastLease += 1;
    return String(this.#lastLease) as LeaseId;
  }

  #tell(): void {
    for (const hint of takeHints(this.hints, this.now)) {
      for (const listener of this.listeners) {
        try {
          listener(hint);
        } catch {
          // A listener's fault is not the step's, which is done.
        }
      }
    }
  }
}

/** What a step woke, gathered into one hint of each kind. */
interface HintBatch {
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

function takeHints(batch: HintBatch, now: number): Hint[] {
  const hints: Hint[] = [];
  if (batch.ready.size > 0) hints.push({ kind: "ready", lanes: [...batch.ready.values()] });
  if (batch.scheduledAt !== undefined) hints.push({ kind: "scheduled", dueIn: batch.scheduledAt - now });
  if (batch.tickAt !== undefined) hints.push({ kind: "tick", dueIn: batch.tickAt - now });
  if (batch.admitAt !== undefined) hints.push({ kind: "admit", dueIn: batch.admitAt - now });
  if (batch.intent) hints.push({ kind: "intent" });
  if (batch.finished.length > 0) hints.push({ kind: "finished", jobs: [...batch.finished] });
  if (batch.lanes) hints.push({ kind: "lanes" });
  if (batch.watch) hints.push({ kind: "watch" });
  if (batch.events) hints.push({ kind: "events" });
  batch.ready.clear();
  batch.finished.length = 0;
  batch.scheduledAt = undefined;
  batch.tickAt = undefined;
  batch.admitAt = undefined;
  batch.intent = false;
  batch.lanes = false;
  batch.watch = false;
  batch.events = false;
  return hints;
}
