import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { LimitKeyId } from "../../../core/limits/limit-rule.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import { ADMIT, type DutyStore, PROMOTE, REAP, TICK } from "../../port/duties/duties.js";
import { dutiesFrom, type PeriodicDuties, stepReport } from "../../port/duties/duty-table.js";
import { pruneReport, pruneRulesOf } from "../../port/duties/prune.js";
import { type EventStore, MAX_EVENTS } from "../../port/observe/events.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import type { StoreDb } from "../connection/db.js";
import { fold } from "../jobs/counters.js";
import type { AdmittedReport } from "../limits/admit.js";
import { admitDue } from "../limits/limits.js";
import { trimSeries } from "../observe/series.js";
import { tickSchedules } from "../schedules/tick.js";
import { trimSchedules } from "../schedules/tick-history.js";
import { carryOutIntents } from "../settle/carry-out-intents.js";
import { reap } from "../settle/reap.js";
import { expire } from "./expire.js";
import { CARRY_OUT, EXPIRE, FOLD, type MaintenancePollListener, poll, UNBLOCK } from "./poll.js";
import { promote } from "./promote.js";
import { prune } from "./prune.js";
import { unblock } from "./unblock.js";

export interface DutyDeps {
  readonly db: StoreDb;
  readonly watermarks: LowWatermarks;
  readonly onPoll: MaintenancePollListener;
  /** tells who may wait for these lanes */
  readonly ready: (lanes: readonly Lane[]) => void;
  readonly finished: (jobs: readonly JobId[]) => void;
  readonly admitted: (report: AdmittedReport) => void;
  /** does what follows a commit that left limit checks at these limit keys */
  readonly admitAt: (limitKeys: ReadonlySet<LimitKeyId>) => Promise<void>;
  /** does what follows every enqueue */
  readonly stored: (jobs: readonly NewJob[], answers: readonly Enqueued[], now: number) => Promise<void>;
}

/** The duties of this store. `unblock`, `carry out intents` and `fold counts` are mechanics of its own. */
export function postgresDuties({ db, watermarks, onPoll, ready, finished, admitted, admitAt, stored }: DutyDeps): DutyStore {
  const duties = dutiesFrom({
    [PROMOTE]: {
      dueBy: "poll",
      async step({ limit }) {
        const { lanes, count, nextIn, limitChecks } = await promote(db, watermarks, limit);
        await admitAt(limitChecks);
        ready(lanes);
        return { ...stepReport(count, limit), ...(nextIn === undefined ? {} : { nextIn }) };
      },
    },
    [REAP]: {
      dueBy: "poll",
      async step({ limit }) {
        const { leases, jobs, lanes } = await reap(db, watermarks, limit);
        ready(lanes);
        return { ...stepReport(jobs, limit, leases), counts: { leases, jobs } };
      },
    },
    [TICK]: {
      dueBy: "poll",
      maxLimit: DEFAULTS.schedule.batch,
      async step({ limit, idSuffixes }) {
        const { ticked, made } = await tickSchedules(db, watermarks, limit, idSuffixes);
        if (made !== undefined && made.jobs.length > 0) await stored(made.jobs, made.answers, made.now);
        const { nextIn, failures, ...counts } = ticked;
        const more = { ...(nextIn === undefined ? {} : { nextIn }), ...(failures === undefined ? {} : { failures }) };
        return { ...stepReport(counts.schedules, limit), ...more, counts };
      },
    },
    [ADMIT]: {
      dueBy: "poll",
      async step({ limit }) {
        const { count, limitKeys, nextIn } = await admitDue(db, watermarks, admitted, limit);
        return { ...stepReport(count, limit, limitKeys), ...(nextIn === undefined ? {} : { nextIn }) };
      },
    },
    [EXPIRE]: {
      dueBy: "poll",
      async step({ limit }) {
        const { readied, finished: ended } = await expire(db, watermarks, limit);
        ready(readied);
        if (ended.length > 0) finished(ended);
        return stepReport(ended.length, limit);
      },
    },
    [UNBLOCK]: {
      dueBy: "poll",
      async step({ limit }) {
        const { count, readied } = await unblock(db, limit);
        ready(readied);
        return stepReport(count, limit);
      },
    },
    [CARRY_OUT]: {
      dueBy: "poll",
      async step({ limit }) {
        const { count, readied } = await carryOutIntents(db, limit);
        ready(readied);
        return stepReport(count, limit);
      },
    },
    [FOLD]: { dueBy: "poll", step: async ({ limit }) => stepReport(await fold(db, watermarks, limit), limit) },
    prune: { dueBy: "period", step: async (request) => pruneReport(await prune(db, pruneRulesOf(request)), request.limit) },
    trim: { dueBy: "period", step: async ({ limit, keep }) => stepReport(await trimSchedules(db, limit, keep.dead), limit) },
    "trim series": {
      dueBy: "period",
      step: async ({ keep }) => ({ count: await trimSeries(db, keep.series, keep.seriesRows), more: false }),
    },
  });
  return { ...duties, poll: () => poll(db, watermarks, onPoll) };
}

/** The duties of what a service keeps. */
export function postgresServiceDuties(events: EventStore): PeriodicDuties {
  return dutiesFrom({
    "trim events": { dueBy: "period", step: async ({ keep }) => ({ count: await events.trim(keep.events, MAX_EVENTS), more: false }) },
  });
}
